"""How little a report proves, in numbers that people can weigh.  Pure; always rounded up."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp


def odds(spent: Fraction) -> str:
    """Return by how much a report of this ε may shift anybody's odds, such as "2.8 to 1"."""
    return f"{ceil(10 * exp(float(spent)) - 1e-9) / 10:,.1f} to 1"


def guesses(spent: Fraction) -> int:
    """Return how often of 100 times the best guess between two answers is right at most."""
    ratio = exp(float(spent))
    return min(ceil(100 * ratio / (1 + ratio) - 1e-9), 100)


def epsilon(amount: Fraction) -> str:
    """Return an amount of ε, rounded up to a thousandth: a cost is never stated too low."""
    return f"{-(-amount * 1000 // 1) / 1000:,.10g}"
