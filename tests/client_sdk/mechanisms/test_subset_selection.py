"""Subset selection: ranks and bits name every subset once, and all are equally likely."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms.items.subset_selection import SubsetSelection, best_size, draw_subset
from tests.support.enumeration.enumeration import Path, distribution
from tests.support.enumeration.seeded import SeededRandomness


@pytest.mark.parametrize(("k", "size"), [(5, 1), (5, 2), (8, 4), (9, 8)])
def test_ranks_name_every_subset_once(k: int, size: int) -> None:
    mechanism = SubsetSelection("1", k, subset_size=size)

    subsets = [list(subset) for subset in combinations(range(k), size)]
    payloads = [mechanism.pack_subset(subset) for subset in subsets]

    assert len(set(payloads)) == mechanism.subsets == len(subsets)
    assert [sorted(mechanism.supports(payload)) for payload in payloads] == subsets
    assert {mechanism.reason(payload) for payload in payloads} == {None}


def test_a_subset_too_large_for_a_rank_is_sent_as_bits() -> None:
    mechanism = SubsetSelection("1", 130)

    payload = mechanism.pack_subset([0, 7, 129, *range(10, 42)])

    assert mechanism.subset_size == 35
    assert mechanism.payload_size == 17
    assert sorted(mechanism.supports(payload)) == [0, 7, *range(10, 42), 129]
    assert mechanism.reason(payload) is None


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2.5", "4"])
@pytest.mark.parametrize("k", [2, 3, 10, 40])
def test_no_other_subset_size_has_a_smaller_predicted_error(epsilon: str, k: int) -> None:
    best = SubsetSelection(epsilon, k)

    errors = [SubsetSelection(epsilon, k, subset_size=s).predict(1) for s in range(1, k)]

    assert best.subset_size == best_size(best.epsilon, k)
    assert best.predict(1) == pytest.approx(min(errors), rel=1e-12)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_fit_takes_the_best_size_whose_reports_fit(bits: int) -> None:
    fitted = SubsetSelection.fit("1", 100, bits)

    sizes = range(1, SubsetSelection("1", 100).subset_size + 1)
    able = [SubsetSelection("1", 100, subset_size=s) for s in sizes]
    short = [m for m in able if m.is_ranked and m.payload_size * 8 <= bits]
    assert fitted.payload_size * 8 <= bits
    assert fitted.predict(1) == min(m.predict(1) for m in short)


LEAST_MASS = Fraction(1, 10**5)


def masses_are_even(size: int, n: int, path: type[Path] = Path) -> None:
    """Hold every subset to the same mass, of paths cut where they weigh too little."""

    def draw(randomness: Randomness) -> int:
        return draw_subset(size, n, randomness, singles=1)

    pmf, rest = distribution(draw, LEAST_MASS, path)

    subsets = {sum(1 << place for place in places) for places in combinations(range(n), size)}
    assert pmf.keys() == subsets
    assert set(pmf.values()) == {(1 - rest) / comb(n, size)}
    assert rest < Fraction(1, 20)


@pytest.mark.parametrize(("size", "n"), [(1, 3), (2, 3), (2, 4), (3, 4), (2, 5)])
def test_all_subsets_of_a_size_have_exactly_the_same_mass(size: int, n: int) -> None:
    """Coins, singles and lowered places treat all places alike, so no subset is favoured."""
    masses_are_even(size, n)


class _LastPlaceShunned(Path):
    """Planted fault: the last place is never drawn on its own."""

    def uniform(self, n: int) -> int:
        return super().uniform(n - 1)


def test_a_place_that_is_never_drawn_on_its_own_makes_the_masses_uneven() -> None:
    """The law above fails on a fault in the single draws."""
    with pytest.raises(AssertionError):
        masses_are_even(2, 4, _LastPlaceShunned)


@pytest.mark.parametrize("n", [33, 64, 1023])
def test_a_subset_has_the_size_asked_for(n: int) -> None:
    """Whatever the coins raise, the singles make it right."""
    for size in {1, 12, 13, n // 4, n // 2, n - 13, n - 1}:
        randomness = SeededRandomness(bytes([size % 256]))

        drawn = [draw_subset(size, n, randomness) for _ in range(20)]

        assert all(bits.bit_count() == size and bits < 1 << n for bits in drawn)


@pytest.mark.parametrize("value", [0, 1, 64, 128, 129])
def test_a_long_report_holds_its_item_when_the_coin_says_so(value: int) -> None:
    """The bits of the other items make room for the item's own, wherever it stands."""
    mechanism = SubsetSelection("1", 130)
    assert mechanism.is_long

    for holds in (False, True):
        randomness = _Tossed(bytes([value]), holds)
        payload = mechanism.randomize(value, randomness)

        assert mechanism.reason(payload) is None
        assert (value in set(mechanism.supports(payload))) is holds


class _Tossed(SeededRandomness):
    """Seeded randomness whose single coins all fall the same way."""

    def __init__(self, seed: bytes, side: bool) -> None:
        super().__init__(seed)
        self._side = side

    def bernoulli(self, p: Fraction) -> bool:
        return self._side
