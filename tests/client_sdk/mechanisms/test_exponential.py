"""Facts about the exponential mechanism: its exact law, and a debiasing that undoes it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from client_sdk.mechanisms.items.exponential import UNSEEN, Exponential
from tests.support.enumeration.coverage import covered, fits_rate
from tests.support.enumeration.enumeration import exp_below

EPSILONS = ["0.01", "1", "4", "16"]
TRIALS = 20_000
PEOPLE = np.array([500, 900, 2600, 1700, 300])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 40])
def test_the_ends_reach_the_whole_epsilon_and_nothing_exceeds_it(epsilon: str, size: int) -> None:
    mechanism = Exponential(epsilon, size)
    laws = [mechanism.channel_law(value) for value in range(size)]

    worst = max(max(chances) / min(chances) for chances in zip(*laws, strict=True))

    assert worst <= exp_below(mechanism.spent)
    assert worst >= exp_below(mechanism.epsilon) * (1 - Fraction(1, 1 << 90))


def test_nearer_items_are_likelier() -> None:
    law = Exponential("2", 9).channel_law(3)

    assert all(a < b for a, b in pairwise(law[:4]))
    assert all(a > b for a, b in pairwise(law[3:]))


@pytest.mark.parametrize("value", range(4))
def test_a_tally_that_follows_the_law_is_debiased_to_the_truth(value: int) -> None:
    mechanism, n = Exponential("2", 4), 1 << 30
    tally = np.array([round(p * n) for p in mechanism.channel_law(value)])
    tally[value] += n - tally.sum()  # what rounding to whole reports left over

    totals, variances = mechanism.debias(tally, n, np)

    assert totals == pytest.approx([n * (item == value) for item in range(4)], abs=20)
    assert (variances > 0).all()


@pytest.mark.parametrize("size", [2, 3, 30])
def test_the_closed_form_is_the_inverse_of_the_channel_matrix(size: int) -> None:
    mechanism = Exponential("3", size)
    matrix = np.array([[float(p) for p in mechanism.channel_law(i)] for i in range(size)]).T
    tally = np.random.default_rng(size).integers(0, 1000, size)
    n = int(tally.sum())

    totals, variances = mechanism.debias(tally, n, np)

    inverse = np.linalg.inv(matrix)
    assert totals == pytest.approx(np.linalg.solve(matrix, tally))
    assert variances == pytest.approx(inverse**2 @ (tally + UNSEEN) - inverse @ tally)
    evenly = inverse**2 @ matrix.mean(axis=1) - 1 / size
    assert mechanism.predict(100) == pytest.approx(math.sqrt(evenly.mean() / 100))


def hits(shrunk: float) -> list[int]:
    """Return in how many trials the 95 % interval of each item holds its true count."""
    mechanism, chance = Exponential("3", PEOPLE.size), np.random.default_rng(20260602)
    laws = [np.array([float(p) for p in mechanism.channel_law(i)]) for i in range(PEOPLE.size)]
    parts = [
        chance.multinomial(held, law / law.sum(), size=TRIALS)
        for held, law in zip(PEOPLE, laws, strict=True)
    ]
    shares = covered(mechanism, np.sum(parts, axis=0), int(PEOPLE.sum()), PEOPLE, shrunk=shrunk)
    return [round(share * TRIALS) for share in shares]


def test_intervals_of_every_item_cover_at_the_stated_rate() -> None:
    found = hits(1.0)

    assert all(0.94 <= hit / TRIALS <= 0.96 for hit in found)
    assert all(fits_rate(hit, TRIALS, 0.95) for hit in found)


def test_intervals_of_half_the_variance_would_not_cover() -> None:
    assert not any(fits_rate(hit, TRIALS, 0.95) for hit in hits(0.5))


@pytest.mark.parametrize(("epsilon", "size"), [("16", 16), ("8", 64), ("4", 64)])
def test_intervals_cover_also_where_chance_leaves_cells_empty(epsilon: str, size: int) -> None:
    """Two crowded items and many empty ones, a thousand devices: no interval covers too little.

    The rate is 0.947 at the least; 0.938 is missed by chance with probability below 1e-9.  The law
    fails on the variance that takes an empty cell for certain.
    """
    mechanism, chance = Exponential(epsilon, size), np.random.default_rng(20260602)
    people = np.zeros(size)
    people[size // 4], people[size // 2] = 600, 400
    laws = np.array([[float(p) for p in mechanism.channel_law(i)] for i in range(size)])
    tallies = chance.multinomial(600, laws[size // 4] / laws[size // 4].sum(), size=TRIALS)
    tallies += chance.multinomial(400, laws[size // 2] / laws[size // 2].sum(), size=TRIALS)
    inverse = np.linalg.inv(laws.T)
    totals = tallies @ inverse.T

    def least(unseen: float) -> float:
        variances = np.maximum((tallies + unseen) @ (inverse**2).T - totals, 0)
        return float((np.abs(totals - people) <= 1.959964 * np.sqrt(variances)).mean(axis=0).min())

    found = mechanism.debias(tallies[0], 1_000, np)
    assert found.variances == pytest.approx(inverse**2 @ (tallies[0] + UNSEEN) - totals[0])
    assert least(UNSEEN) >= 0.938
    assert epsilon == "4" or least(0) < 0.9
