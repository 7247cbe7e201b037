"""How little a report proves, in numbers that people can weigh.  Pure; always rounded up."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp
from typing import Final

_PURE: Final = Fraction(0)
_ROUNDING: Final = 1e-9  # of floats: an exact number is not rounded up to the next


def odds(spent: Fraction, delta: Fraction = _PURE) -> str:
    """Return by how much a report of this ε may shift anybody's odds, such as "2.8 to 1"."""
    shift = f"{ceil(10 * exp(float(spent)) - _ROUNDING) / 10:,.1f} to 1"
    return f"{shift}, but for a chance of {float(delta):.1g}" if delta else shift


def guesses(spent: Fraction, delta: Fraction = _PURE) -> int:
    """Return how often of 100 times the best guess between two answers is right at most.

    Source: Kairouz, Oh, Viswanath, ICML 2015: under (ε, δ) it is (e^ε + δ) / (1 + e^ε).
    """
    ratio = exp(float(spent))
    return min(ceil(100 * (ratio + float(delta)) / (1 + ratio) - _ROUNDING), 100)


def epsilon(amount: Fraction) -> str:
    """Return an amount of ε, rounded up to a thousandth: a cost is never stated too low."""
    return f"{-(-amount * 1000 // 1) / 1000:,.10g}"
