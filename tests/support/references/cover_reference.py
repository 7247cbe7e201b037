"""Counts from reports of a cover, by the decoder of least squares in ``decimal``."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tests.support.enumeration.formula import CONTEXT
from tests.support.references.linear_algebra import dot, inverse


def rows_of(sets: int, domain_size: int) -> list[tuple[int, set[int]]]:
    """Return weight and items of every report of the table *sets*, completed."""
    digits, rows = f"{sets:x}", list[tuple[int, set[int]]]()
    length = 2 * (2 + -(-domain_size // 8))
    digits = digits.zfill(-(-len(digits) // length) * length)
    for start in range(0, len(digits), length):
        weight, bits = digits[start : start + 4], digits[start + 4 : start + length]
        held = bin(int(bits, 16))[:1:-1]
        rows.append((int(weight, 16), {item for item, bit in enumerate(held) if bit == "1"}))
    covered = [sum(w for w, items in rows if item in items) for item in range(domain_size)]
    most = max(covered)
    return rows + [(most - here, {item}) for item, here in enumerate(covered) if here < most]


def weights_of(sets: int, domain_size: int) -> tuple[int, int]:
    """Return the weights of the reports that hold an item, and of all others."""
    rows = rows_of(sets, domain_size)
    inside = sum(weight for weight, items in rows if 0 in items)
    return inside, sum(weight for weight, _ in rows) - inside


def counts_and_variances(
    odds: Decimal, sets: int, domain_size: int, reports: Sequence[int]
) -> tuple[list[Decimal], list[Decimal]]:
    """Return the unbiased count of every item and its variance, by Gauss-Jordan elimination."""
    items, rows = range(domain_size), rows_of(sets, domain_size)
    inside, outside = weights_of(sets, domain_size)
    p = CONTEXT.divide(odds * inside, odds * inside + outside)
    chances = (CONTEXT.divide(1 - p, Decimal(outside)), CONTEXT.divide(p, Decimal(inside)))
    channel = [[weight * chances[item in held] for item in items] for weight, held in rows]
    sums = [sum(row, Decimal(0)) for row in channel]
    products = [
        [
            sum(
                (
                    CONTEXT.divide(row[i] * row[j], total)
                    for row, total in zip(channel, sums, strict=True)
                ),
                Decimal(0),
            )
            for j in items
        ]
        for i in items
    ]
    undone = inverse(products)
    decoder = [
        [CONTEXT.divide(dot(line, row), total) for row, total in zip(channel, sums, strict=True)]
        for line in undone
    ]
    counted = [reports.count(report) for report in range(len(rows))]
    counts = [dot(line, counted) for line in decoder]
    variances = []
    for item, line in enumerate(decoder):
        squares = [entry * entry for entry in line]
        laws = [
            max(dot(squares, [row[held] for row in channel]) - int(held == item), Decimal(0))
            for held in items
        ]
        likely = dot(laws, counts)
        n = len(reports)
        variances.append(min(max(likely, n * min(laws)), n * max(laws)))
    return counts, variances
