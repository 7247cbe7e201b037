"""Counts from reports of the exponential mechanism, by inverting its matrix in ``decimal``."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from .formula import CONTEXT


def counts_and_variances(
    decay: Decimal, domain_size: int, reports: Sequence[int]
) -> tuple[list[Decimal], list[Decimal]]:
    """Return the unbiased count of every item and its variance, by Gauss-Jordan elimination."""
    items = range(domain_size)
    weights = [[decay ** abs(report - item) for item in items] for report in items]
    totals = [sum((row[item] for row in weights), Decimal(0)) for item in items]
    matrix = [[CONTEXT.divide(row[item], totals[item]) for item in items] for row in weights]
    inverse = _inverse(matrix)
    counted = [reports.count(item) for item in items]
    counts = [_dot(row, counted) for row in inverse]
    squares = [_dot([a * a for a in row], counted) for row in inverse]
    variances = [max(s - c, Decimal(0)) for s, c in zip(squares, counts, strict=True)]
    return counts, variances


def _dot(row: Sequence[Decimal], counted: Sequence[int]) -> Decimal:
    return sum((a * t for a, t in zip(row, counted, strict=True)), Decimal(0))


def _inverse(matrix: Sequence[Sequence[Decimal]]) -> list[list[Decimal]]:
    size = len(matrix)
    rows = [[*row, *(Decimal(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = rows[i][i]
        rows[i] = [CONTEXT.divide(entry, pivot) for entry in rows[i]]
        for k in range(size):
            if k != i:
                factor = rows[k][i]
                rows[k] = [
                    CONTEXT.subtract(entry, CONTEXT.multiply(factor, above))
                    for entry, above in zip(rows[k], rows[i], strict=True)
                ]
    return [row[size:] for row in rows]
