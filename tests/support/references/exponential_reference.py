"""Counts from reports of the exponential mechanism, by inverting its matrix in ``decimal``."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tests.support.enumeration.formula import CONTEXT
from tests.support.references.linear_algebra import dot, inverse


def counts_and_variances(
    decay: Decimal, domain_size: int, reports: Sequence[int]
) -> tuple[list[Decimal], list[Decimal]]:
    """Return the unbiased count of every item and its variance, by Gauss-Jordan elimination.

    Variances count half a report more in every cell.
    """
    items = range(domain_size)
    weights = [[decay ** abs(report - item) for item in items] for report in items]
    totals = [sum((row[item] for row in weights), Decimal(0)) for item in items]
    matrix = [[CONTEXT.divide(row[item], totals[item]) for item in items] for row in weights]
    undone = inverse(matrix)
    counted = [reports.count(item) for item in items]
    counts = [dot(row, counted) for row in undone]
    likely = [count + Decimal("0.5") for count in counted]
    squares = [dot([a * a for a in row], likely) for row in undone]
    variances = [s - c for s, c in zip(squares, counts, strict=True)]
    return counts, variances
