"""Uniform subsets of many places, as the bits of one number: all places are drawn at once.

Derived: places are first raised by coins of one chance that leaves a few missing, then one at a
time; where too many are raised, places are lowered one at a time.  Each step treats all places
alike and looks at nothing but how many are raised, so all subsets with the same number of places
are equally likely after it, also at the end, when that number is the one asked for.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

from ..core.randomness import Randomness

DIGITS: Final = 2  # of a coin's chance after its leading zeros; each costs a read of all places
SINGLES: Final = 12  # places; so few are raised sooner one at a time than by coins


def draw_subset(size: int, n: int, randomness: Randomness, singles: int = SINGLES) -> int:
    """Return *n* bits of which *size* are 1, uniform over all such numbers; 0 < size < n."""
    bits, missing = 0, size
    while missing > singles:
        bits |= randomness.bernoulli_bits(_chance(missing, n - size + missing), n)
        missing = size - bits.bit_count()
    while missing:
        place = 1 << randomness.uniform(n)
        if bool(bits & place) == (missing < 0):
            bits ^= place
            missing += 1 if missing < 0 else -1
    return bits


@lru_cache(maxsize=1 << 10)
def _chance(missing: int, open_places: int) -> Fraction:
    """Return missing / open_places, rounded down to DIGITS binary digits."""
    shift = DIGITS + (open_places // missing).bit_length() - 1
    return Fraction((missing << shift) // open_places, 1 << shift)
