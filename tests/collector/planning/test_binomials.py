"""Binomial laws against counts of all outcomes, exactly."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from collector.planning.binomials import binomial, halves


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 40, 300])
@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(1, 10), Fraction(1), Fraction(0)])
def test_every_chance_is_right_to_twelve_digits(size: int, chance: Fraction) -> None:
    counts = np.arange(-1.0, size + 2)
    exact = [float(comb(size, n) * chance**n * (1 - chance) ** (size - n)) for n in range(size + 1)]

    assert binomial(float(size), counts, float(chance)) == pytest.approx([0, *exact, 0], rel=1e-12)
    if chance == Fraction(1, 2):
        law = halves(np.full(counts.shape, float(size)), counts)
        assert law == pytest.approx([0, *exact, 0], rel=1e-12)
