"""Counts from reports of a hierarchy: constrained least squares, solved whole in ``decimal``."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tests.support.enumeration.formula import CONTEXT
from tests.support.references.linear_algebra import dot, inverse

_HALF = Decimal("0.5")


def counts_and_variances(
    p: Decimal, items: int, fanout: int, reports: Sequence[int]
) -> tuple[list[Decimal], list[Decimal]]:
    """Return the count of each item and its variance, by Gauss-Jordan on the normal equations.

    One equation a node, of weight n_l (2p-1)^2, and one for certain: leaves add up to the whole.
    A level without reports has node shares of 0 and the weight of half a report.
    """
    leaves, gain = fanout, 2 * p - 1
    while leaves < items:
        leaves *= fanout
    places = range(leaves + 1)  # the last is that of the certain equation
    matrix = [[Decimal((i == leaves) != (j == leaves)) for j in places] for i in places]
    right = [Decimal(0)] * leaves + [Decimal(1)]
    first, nodes = 0, fanout
    while nodes <= leaves:
        told = [r - first for r in reports if first <= r < first + 2 * nodes]
        weight = max(Decimal(len(told)), _HALF) * gain**2
        width = leaves // nodes
        for node in range(nodes):
            signs = sum(_sign(report, node) for report in told)
            share = CONTEXT.divide(Decimal(signs), max(len(told), 1) * gain)
            below = range(node * width, (node + 1) * width)
            for i in below:
                right[i] += weight * share
                for j in below:
                    matrix[i][j] += weight
        first, nodes = first + 2 * nodes, nodes * fanout
    undone = inverse(matrix)
    n = len(reports)
    counts = [n * dot(row, right) for row in undone[:items]]
    return counts, [n**2 * undone[item][item] for item in range(items)]


def _sign(report: int, node: int) -> int:
    """Return the sign of a report times that of *node* in its row."""
    row, positive = divmod(report, 2)
    agrees = bin(row & node).count("1") % 2 == 0
    return 1 if agrees == bool(positive) else -1
