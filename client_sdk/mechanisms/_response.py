"""Randomized response: tell one of n symbols truly, or any of the others.

Source: Warner, JASA 1965 (two symbols); Kairouz, Bonawitz, Ramage, ICML 2016 (n symbols).
Proof: a symbol is told by its holders with p and by anybody else with (1-p)/(n-1), so the ratio is
    p (n-1)/(1-p).  It is at most the odds o if p is at most o/(o+n-1): truths are rounded down to
    the grid, and flips, which are 1-p for two symbols, up.
"""

from __future__ import annotations

from fractions import Fraction

from ..core.randomness import Randomness
from ._exact import ceil_to_grid, exp_floor, floor_to_grid


def truth_chance(odds: Fraction, others: int, precision: int) -> Fraction:
    """Return odds/(odds + others), rounded down: the chance of the truth among *others* lies."""
    return floor_to_grid(odds / (odds + others), precision)


def flip_chance(epsilon: Fraction, precision: int) -> Fraction:
    """Return 1/(e^ε + 1), rounded up: the chance that a bit is flipped."""
    return ceil_to_grid(1 / (exp_floor(epsilon) + 1), precision)


def respond(symbol: int, symbols: int, truth: Fraction, randomness: Randomness) -> int:
    """Return *symbol*, one of 0 … symbols - 1, with probability *truth*, else another."""
    if randomness.bernoulli(truth):
        return symbol
    other = randomness.uniform(symbols - 1)
    return other + (other >= symbol)  # skips the symbol
