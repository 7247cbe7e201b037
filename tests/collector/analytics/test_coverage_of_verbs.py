"""Intervals of verbs hold the truth of real people as often as they say, and half of them not."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.lib.questions import Measured, Scenario, measure, rate_seen
from benchmarks.lib.scenarios import scenarios
from tests.support.crowds.boolean_slices import is_at_most
from tests.support.enumeration.coverage import fits_rate

ALPHA = 0.05
TIMES = 400  # answers; the same each time, so a test that passes passes always
SINGLE = ("frequency", "mean", "variance", "histogram", "range", "crosstab")
AT_ONCE = ("cdf", "compare", "funnel", "lift")
HALF = 0.5  # of every interval and standard error: the bug that is planted
NEAR = 0.25  # of an error over the predicted one; 400 answers of one row scatter it by 0.035


@cache
def scenario_of(verb: str) -> Scenario:
    return next(one for one in scenarios() if one.verb == verb)


@cache
def asked(verb: str, narrowed: float = 1.0) -> Measured:
    return measure(scenario_of(verb), TIMES, narrowed=narrowed)


@pytest.mark.parametrize("verb", SINGLE)
def test_an_interval_holds_as_often_as_it_says_and_half_of_it_would_be_seen(verb: str) -> None:
    """The first row, which is chosen beforehand: its answers are independent of each other.

    A right interval fails with a chance of 1e-9 over seeds, by the bound of ``fits_rate``.
    """
    right, half = (asked(verb, narrowed).first_held for narrowed in (1.0, HALF))

    assert fits_rate(right, TIMES, 1 - ALPHA)
    assert not fits_rate(half, TIMES, 1 - ALPHA)


@pytest.mark.parametrize("verb", AT_ONCE)
def test_intervals_hold_together_at_least_as_often_as_they_say(verb: str) -> None:
    """All rows of an answer at once; they may hold more often, half of them must not pass.

    Fails with a chance of 1e-9 over seeds where they hold as often as they say.
    """
    right, half = (round(TIMES * (1 - asked(verb, n).covered)) for n in (1.0, HALF))

    assert is_at_most(right, TIMES, ALPHA)
    assert not is_at_most(half, TIMES, ALPHA)


@pytest.mark.parametrize("verb", [*SINGLE, *AT_ONCE])
def test_the_error_is_the_stated_one(verb: str) -> None:
    """Root mean square error over the predicted one, rows of an answer together.

    A ratio of one normal row is off by more than NEAR with a chance below 1e-9 (its square times
    400 is chi-square); errors of half the size, stated for whole ones, would make it 2.
    """
    right, half = (asked(verb, narrowed).ratio for narrowed in (1.0, HALF))

    assert right is not None
    assert half is not None
    assert abs(right - 1) < NEAR
    assert abs(half - 1) > NEAR


@pytest.mark.parametrize("verb", ["trend", "compare", "lift"])
def test_where_there_is_no_difference_few_answers_find_one(verb: str) -> None:
    """At most alpha of them, or so few more that chance explains it, but for 1e-9."""
    scenario = scenario_of(verb)
    nothing = next(iter(scenario.beside.values()))

    found = round(TIMES * rate_seen(scenario, nothing, TIMES))

    assert is_at_most(found, TIMES, ALPHA)
