"""Counts of items from the items that reports support, by the textbook in decimals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

from tests.support.enumeration.formula import CONTEXT


def of_supports(
    size: int, supported: Sequence[Iterable[int]], p: Decimal, q: Decimal
) -> tuple[list[Decimal], list[Decimal]]:
    """Return the count of each of *size* items and its variance: pure protocols."""
    n = len(supported)
    seen = Counter(item for items in supported for item in items)
    counts = [CONTEXT.divide(seen[item] - n * q, p - q) for item in range(size)]
    held = (min(max(count, Decimal(0)), Decimal(n)) for count in counts)
    spreads = (h * p * (1 - p) + (n - h) * q * (1 - q) for h in held)
    return counts, [CONTEXT.divide(spread, (p - q) ** 2) for spread in spreads]
