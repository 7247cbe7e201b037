"""Linear equations in decimals, for references that must not lean on floats."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tests.support.enumeration.formula import CONTEXT

Matrix = Sequence[Sequence[Decimal]]


def dot(row: Sequence[Decimal], column: Sequence[Decimal | int]) -> Decimal:
    """Return the inner product."""
    return sum((a * b for a, b in zip(row, column, strict=True)), Decimal(0))


def inverse(matrix: Matrix) -> list[list[Decimal]]:
    """Return the inverse by Gauss-Jordan elimination with the largest pivot of each column.

    Raises: ZeroDivisionError: there is none.
    """
    size = len(matrix)
    rows = [[*row, *(Decimal(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        best = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        pivot = rows[i][i]
        rows[i] = [CONTEXT.divide(entry, pivot) for entry in rows[i]]
        for k in range(size):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [
                    CONTEXT.subtract(entry, CONTEXT.multiply(factor, above))
                    for entry, above in zip(rows[k], rows[i], strict=True)
                ]
    return [row[size:] for row in rows]
