"""PrivSet: every set of a size has one law, and none that is not cut is counted wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest

from benchmarks.accuracy.set_errors import SETTINGS, error, fixed_size
from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms.composite.privset import MAX_PAD, PrivSet, best_width


@pytest.mark.parametrize(("epsilon", "pad"), [("0.5", 1), ("1", 6), ("4", 6), ("2", 32), ("16", 3)])
def test_the_width_is_the_one_of_the_least_variance(epsilon: str, pad: int) -> None:
    def variance(width: int) -> Fraction:
        p, q = PrivSet(epsilon, 40, pad=pad, prime=251, width=width).channel.p, Fraction(width, 251)
        return q * (1 - q) / (p - q) ** 2

    best = min(range(1, 120), key=variance)

    assert best_width(Fraction(epsilon), pad, 251) == best


def test_auto_cuts_no_set_unless_the_registry_says_how_many_items_are_expected() -> None:
    with pytest.raises(InvalidParameterError, match=r"^pad=none: must be given: expected_size"):
        PrivSet.fit("1", 100, 256)


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_the_errors_of_a_large_vocabulary_are_those_of_the_published_mechanism(
    epsilon: str,
) -> None:
    """Subsets of one size, as published, of 3,340 items and six slots: the best of all sizes."""
    published, _ = fixed_size(epsilon, SETTINGS[0])

    assert error("privset", epsilon) == pytest.approx(published, rel=0.03)


def test_the_most_slots_keep_a_report_of_many_items_short() -> None:
    assert PrivSet("1", 1 << 24, pad=MAX_PAD).payload_size < 128
