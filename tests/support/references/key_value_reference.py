"""Counts of holders and sums of positions from PCKV reports by the textbook, in decimals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from tests.support.enumeration.formula import CONTEXT


class HeldPairs(dict[int, Fraction]):
    """A mapping of keys to positions that can be the key of a cache; nobody changes it."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return hash(frozenset(self.items()))


def parse_pairs(text: str) -> HeldPairs:
    """Return the pairs of a text such as ``0:1/2 3:5``."""
    pairs = (pair.split(":") for pair in text.split())
    return HeldPairs({int(key): Fraction(position) for key, position in pairs})


def totals_and_variances(
    numbers: dict[str, Decimal], size: int, pad: int, top: int, supported: Sequence[Iterable[int]]
) -> tuple[list[Decimal], list[Decimal]]:
    """Return holders of *size* keys, then sums of positions, and their variances.

    Args: numbers: the textbook's ``same``, ``opposite`` and ``foreign``.
          supported: of each report the cells, plus by key, then minus by key.
    """
    seen = Counter(cell for cells in supported for cell in cells)
    ones = [
        _of_key(numbers, pad, len(supported), seen[key], seen[size + key]) for key in range(size)
    ]
    half = CONTEXT.divide(Decimal(top), Decimal(2))
    totals = [one[0] for one in ones] + [half * (one[0] + one[1]) for one in ones]
    spreads = [half**2 * (one[2] + one[3] + 2 * one[4]) for one in ones]
    return totals, [one[2] for one in ones] + spreads


def _of_key(
    numbers: dict[str, Decimal], pad: int, n: int, plus: int, minus: int
) -> tuple[Decimal, Decimal, Decimal, Decimal, Decimal]:
    """Return holders, sum of 2x-1, their variances and their covariance."""
    same, opposite, foreign = (numbers[name] for name in ("same", "opposite", "foreign"))
    noise = 2 * foreign
    gap = CONTEXT.divide(same + opposite - noise, Decimal(pad))
    gain = CONTEXT.divide(same - opposite, Decimal(pad))
    holders = CONTEXT.divide(plus + minus - n * noise, gap)
    lean = CONTEXT.divide(Decimal(plus - minus), gain)
    likely = min(max(holders, Decimal(0)), Decimal(n))
    known = min(max(lean, -likely), likely)
    held = noise + gap
    least = CONTEXT.divide(known**2, likely) if likely else Decimal(0)
    coins = likely * held * (1 - held) + (n - likely) * noise * (1 - noise)
    signs = likely * held + (n - likely) * noise - gain**2 * least
    return (
        holders,
        lean,
        CONTEXT.divide(coins, gap**2),
        CONTEXT.divide(signs, gain**2),
        CONTEXT.divide((1 - held) * known, gap),
    )
