"""How sure a string is: the law of what noise gives, and how many are likely."""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import sqrt
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.accuracy.heavy_hitters import LOWER, six_letters, tally_of
from client_sdk.mechanisms.composite.pem import PEM
from collector.analytics.text.certainty import FALSE, Noise, likely, sorted_out
from collector.analytics.text.search import Plan, candidates
from collector.analytics.text.sketches import Sketch, law_of, measured, sketches_of

N: Final = 300_000  # devices
MECHANISM: Final = PEM("4", 6, step=3)
NOBODY: Final = 200_000  # strings that nobody holds
TAIL: Final = 1e-3
Z: Final = 6.2  # standard errors: beyond with a chance below 1e-9, to either side


def crowd() -> Counter[bytes]:
    """Return about N devices with 800 names of six letters, the common ones ten times as rare."""
    names = six_letters()
    weights = np.array([weight for _, weight in names])
    counts = np.rint(N * weights / weights.sum()).astype(int).tolist()
    return Counter(dict(zip([text for text, _ in names], counts, strict=True)))


@cache
def levels() -> tuple[Sketch, ...]:
    """Return the sketches of the crowd."""
    people = crowd()
    tally = tally_of(MECHANISM, list(people), list(people.values()), seed=7)
    return tuple(sketches_of(MECHANISM, tally, people.total()))


@cache
def of_nobody() -> Any:
    """Return the chances, and by a normal law, of random strings to have what they gather."""
    people, dice = crowd(), np.random.default_rng(8)
    drawn = np.unique(dice.choice(list(LOWER), size=(NOBODY, 6)).astype(np.uint8), axis=0)
    texts = [row.tobytes() for row in drawn if row.tobytes() not in people]
    own = measured(levels(), [*people, *texts], [5.0] * MECHANISM.levels)
    values = np.array([share.value for share in own.estimates[len(people) :]])
    sums, law = values * own.reports[len(people) :], law_of(own.rests[1:], people.total())
    scores = sums / law.reports / sqrt(law.level)
    normal = np.array([NormalDist().cdf(-score) for score in scores.tolist()])
    return Noise.of(own.rests[1:]).tails(sums), normal


def is_as_often(chances: Any) -> bool:
    """Return whether chances below TAIL are as many as they should be."""
    expected = len(chances) * TAIL
    return bool(abs((chances < TAIL).sum() - expected) < Z * sqrt(expected))


def test_strings_that_nobody_holds_have_the_chances_that_are_said() -> None:
    """One in a thousand has a chance of a thousandth; false alarm 1e-9, one run."""
    assert is_as_often(of_nobody()[0])


def test_a_normal_law_would_call_too_many_strings_likely() -> None:
    """The planted bug: strings that share cells skew the law, and the test sees it."""
    assert not is_as_often(of_nobody()[1])


def test_chances_fall_with_what_is_gathered_from_one_to_nothing() -> None:
    """Half of all strings gather less than the mean; none gathers what all devices hold."""
    chances = Noise.of(levels()[1:]).tails(np.array([-N, 0.0, 200.0, 600.0, N]))

    assert chances[0] == pytest.approx(1)
    assert 0.4 < chances[1] < 0.6
    assert (np.diff(chances) < 0).all()
    assert chances[-1] < 1e-12


def test_cells_that_hold_nothing_leave_nothing_to_chance() -> None:
    """Without a report no string is likely, and without noise any share is certain."""
    empty = sketches_of(MECHANISM, np.zeros(MECHANISM.tally_size, dtype=np.int64), 0)

    noise = Noise.of(empty)

    assert noise.tails(np.array([0.0, 1.0])).tolist() == [1.0, 0.0]
    assert noise.limits(0.01) == (0, 0)


@pytest.mark.parametrize("tail", [0.4, 1e-3, 1e-9])
def test_limits_are_where_the_chance_beyond_is_what_is_wanted(tail: float) -> None:
    """To either side, and one step less has more."""
    noise = Noise.of(levels()[1:])

    least, most = noise.limits(tail)

    assert noise.tails(most) <= tail < noise.tails(most - noise.step)
    assert 1 - noise.tails(least) <= tail < 1 - noise.tails(least + noise.step)


@pytest.mark.parametrize(
    ("chances", "looked_up", "count"),
    [
        ([], 1000, 0),
        ([1e-4], 1000, 1),  # a tenth of a string by noise
        ([1.1e-4], 1000, 0),
        ([1.9e-4, 1e-3, 1.9e-4], 1000, 2),  # two tenths, and two strings
        ([2e-4, 3e-4, 2.5e-4], 1000, 3),
        ([1e-4, 1e-4], 4000, 0),
    ],
)
def test_as_many_are_likely_as_let_noise_be_a_tenth(
    chances: list[float], looked_up: int, count: int
) -> None:
    """Stepping up: the last of k has a chance of k tenths of a string among those looked up."""
    assert likely(chances, looked_up) == count


def test_likely_strings_are_more_of_the_common_ones_and_hardly_ever_noise() -> None:
    """Three crowds: what is sure is held by somebody, and of the likely at least two in three are.

    A tenth is expected to be noise.  The runs are seeded, so that they always end alike.
    """
    people, truth = crowd(), [text for text, _ in crowd().most_common(32)]
    certain, probable = [], []
    for seed in range(3):
        tally = tally_of(MECHANISM, list(people), list(people.values()), seed)
        own, plan = sketches_of(MECHANISM, tally, people.total()), Plan(MECHANISM, LOWER, 1e-6)
        sure, others = sorted_out(own, plan, candidates(own, plan))
        assert all(share.ci_low <= 0 < share.value for share in others.values())
        certain += list(sure)
        probable += list(others)

    assert all(people[text] for text in certain)
    assert sum(not people[text] for text in probable) <= len(probable) / 3
    assert sum(text in truth for text in probable) >= 3
    assert FALSE == 0.1


def test_each_level_pays_only_for_what_was_looked_up_there() -> None:
    """Fewer strings than a search may look up at most, so intervals are narrower."""
    plan = Plan(MECHANISM, LOWER, 1e-6)

    search = candidates(levels(), plan)

    assert len(search.looked_up) == MECHANISM.levels
    assert search.looked_up[0] == sum(26**more for more in range(4))
    assert all(0 < many <= plan.tests for many in search.looked_up)
    assert all(plan.z_of(many) <= plan.z for many in search.looked_up)
