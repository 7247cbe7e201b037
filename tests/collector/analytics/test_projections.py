"""Projections return the nearest point of their set: against brute force, and by its conditions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.analytics.monotone import isotonic
from collector.analytics.postprocess import simplex_l1, simplex_l2

SHARES: Final = st.lists(st.floats(-2, 2), min_size=1, max_size=12)
COUNTS: Final = st.lists(st.integers(-16, 24).map(lambda i: i / 4), min_size=1, max_size=4)
CURVES: Final = st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=12)
CLOSE: Final = 1e-9  # of numbers around 1


def rescaled(values: Any, total: float = 1.0) -> Any:
    """Return what a naive cleanup gives: cut off at 0, then divided by the sum."""
    kept = np.maximum(values, 0)
    return kept * (total / kept.sum()) if kept.sum() else np.full(len(kept), total / len(kept))


def histograms(n: int, items: int) -> Iterator[tuple[int, ...]]:
    """Return every way in which *n* devices can hold *items* items."""
    return (counts for counts in product(range(n + 1), repeat=items) if sum(counts) == n)


def nearest_histogram(counts: list[float], n: int) -> tuple[int, ...]:
    """Return the nearest in L1, of these in L2, of these that with the most in early items."""
    return min(
        histograms(n, len(counts)),
        key=lambda found: (
            sum(abs(a - b) for a, b in zip(found, counts, strict=True)),
            sum((a - b) ** 2 for a, b in zip(found, counts, strict=True)),
            tuple(-a for a in found),
        ),
    )


def is_nearest_shares(found: Any, values: Any) -> bool:
    """Whether *found* meets the conditions of Karush, Kuhn and Tucker for the nearest shares."""
    moved = np.asarray(values) - found
    shift = moved[found > 0].mean()
    return bool(
        found.min() >= 0
        and abs(found.sum() - 1) < CLOSE
        and np.abs(moved[found > 0] - shift).max() < CLOSE
        and np.all(moved[found == 0] <= shift + CLOSE)
    )


def is_nearest_curve(found: Any, values: Any, weights: Any) -> bool:
    """Whether *found* rises, and no rising curve is nearer: each level is its own mean."""
    pull = np.asarray(weights) * (np.asarray(values) - found)
    levels = [found == level for level in np.unique(found)]
    tails = np.cumsum(pull)
    return bool(
        np.all(np.diff(found) >= 0)
        and all(abs(pull[level].sum()) < CLOSE * np.sum(weights) for level in levels)
        and np.all(tails >= -CLOSE * np.sum(weights))
    )


@given(SHARES)
def test_the_nearest_shares_meet_the_conditions_of_the_nearest(values: list[float]) -> None:
    """They are not negative, sum to 1, and are the given ones less one constant, cut off at 0."""
    assert is_nearest_shares(simplex_l2(values), values)


def test_shares_that_are_cut_off_and_rescaled_are_not_the_nearest() -> None:
    """The planted bug: the usual cleanup fails the conditions."""
    values = np.array([0.5, 0.4, 0.3, -0.1])

    assert not is_nearest_shares(rescaled(values), values)


@given(SHARES)
def test_the_nearest_shares_keep_the_order_and_stay_where_they_are(values: list[float]) -> None:
    """No item overtakes another, and a second projection changes nothing."""
    found = simplex_l2(values)

    assert np.all(np.diff(found[np.argsort(values, kind="stable")]) >= 0)
    assert simplex_l2(found) == pytest.approx(found, abs=CLOSE)


@given(COUNTS, st.integers(0, 6))
def test_the_nearest_histogram_is_that_of_brute_force(counts: list[float], n: int) -> None:
    """Of all histograms of n devices: nearest in L1, then in L2, then with the most early."""
    assert tuple(simplex_l1(counts, n).tolist()) == nearest_histogram(counts, n)


@pytest.mark.parametrize("seed", range(20))
def test_a_histogram_of_many_devices_is_no_further_in_l1_than_any_other(seed: int) -> None:
    """The distance is that of the linear program: what must be taken off, or given, or rounded."""
    chance = np.random.default_rng(seed)
    k, n = int(chance.integers(2, 300)), int(chance.integers(1, 10**6))
    counts = chance.normal(n / k, chance.choice([0.01, 1, 10]) * n / k, k)

    found = simplex_l1(counts, n)

    assert found.min() >= 0
    assert found.sum() == n
    assert np.abs(found - counts).sum() == pytest.approx(least_distance(counts, n), rel=1e-9)


def least_distance(counts: Any, n: int) -> float:
    """Return the least L1 distance to a histogram of *n*: the n cheapest steps, one by one."""
    kept = np.maximum(counts, 0)
    whole, rest = np.floor(kept), kept - np.floor(kept)
    rounding = np.sort(1 - 2 * rest[rest > 0])
    below, steps = int(min(n, whole.sum())), max(n - int(whole.sum()), 0)
    costs = [-below, rounding[:steps].sum(), max(steps - rounding.size, 0)]
    return float(np.abs(counts).sum() + sum(costs))


def test_a_histogram_whose_rest_goes_to_the_largest_item_is_not_the_nearest() -> None:
    """The planted bug: the rest after rounding down belongs to the largest fractional parts."""
    counts = np.array([50.1, 24.9, 24.9, 0.1])

    found = np.floor(counts)
    found[0] += 100 - found.sum()

    assert found.sum() == 100
    assert np.abs(found - counts).sum() > least_distance(counts, 100) + 1


@given(COUNTS, st.integers(0, 6))
def test_a_histogram_is_its_own_nearest(counts: list[float], n: int) -> None:
    """A second projection changes nothing."""
    found = simplex_l1(counts, n)

    assert simplex_l1(found, n).tolist() == found.tolist()


@given(st.data())
def test_the_nearest_rising_curve_meets_the_conditions_of_the_nearest(data: st.DataObject) -> None:
    """It rises, and every level is the weighted mean of what it replaces."""
    values = data.draw(CURVES)
    weights = data.draw(
        st.lists(st.floats(0.1, 10), min_size=len(values), max_size=len(values)), label="weights"
    )

    found = isotonic(values, weights, -1, 2)

    assert is_nearest_curve(np.array(found), values, weights)


def test_a_running_maximum_is_not_the_nearest_rising_curve() -> None:
    """The planted bug: a curve that only ever goes up drifts to its largest error."""
    values = [0.1, 0.4, 0.2, 0.6, 0.5]

    assert not is_nearest_curve(np.maximum.accumulate(values), values, np.ones(5))


@given(CURVES)
def test_a_curve_stays_within_its_bounds_and_stays_where_it_is(values: list[float]) -> None:
    """It is cut off at 0 and 1, and a second projection changes nothing."""
    found = isotonic(values)

    assert min(found, default=0) >= 0
    assert max(found, default=1) <= 1
    assert isotonic(found) == pytest.approx(found)


def test_a_curve_without_points_has_none() -> None:
    """Nothing in, nothing out."""
    assert isotonic([]) == []
