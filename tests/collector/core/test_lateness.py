"""A class of lateness ends on a known day; from then on its version never changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.epoch import DAY, EVERY, HOUR, LENGTHS, ONCE, epoch_of
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from collector.core.cells import BEYOND, LAST_DAYS, LAST_VERSION, MARGIN, class_of, ends, version_of

DAY_0 = 20_000  # a Friday
TIMES = st.integers(0, 400 * DAY).map(lambda seconds: DAY_0 * DAY + seconds)


@pytest.mark.parametrize(
    ("days", "lateness"),
    [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (7, 2), (8, 3), (29, 3), (30, BEYOND), (300, BEYOND)],
)
def test_a_class_is_the_days_between_the_end_of_the_epoch_and_the_fold(
    days: int, lateness: int
) -> None:
    """Up to 1, 3, 7 days and the horizon, from the first to the last second of a day."""
    first = (DAY_0 + days) * DAY

    assert [class_of("1d", DAY_0, t)[0] for t in (first, first + DAY - 1)] == [lateness] * 2


def test_hours_weeks_and_months_are_late_by_the_day_on_which_they_end() -> None:
    """All hours of a day, and the week or four weeks whose last day it is, share their days."""
    hours = {ends("1h", DAY_0 * 24 + hour) for hour in range(24)}
    sunday = epoch_of("7d", (DAY_0 + 2) * DAY)
    month = epoch_of("28d", DAY_0 * DAY)

    assert hours == {ends("1d", DAY_0)}
    assert ends("7d", sunday) == ends("1d", DAY_0 + 2)
    assert ends("28d", month) == ends("7d", 4 * month + 3)


def test_a_metric_asked_once_is_never_late_and_never_published() -> None:
    """Its one epoch has no end."""
    assert class_of(ONCE, 0, 10**10) == (0, None)
    assert version_of(ONCE, [0], 10**10) is None


def test_the_last_class_covers_all_that_the_intake_takes() -> None:
    """Sealed as late as a report may be, taken as late as an upload may be, folded a day later."""
    latest = (DAY_0 + 2 * MAX_REPORT_AGE + 1) * DAY

    assert class_of("1d", DAY_0, latest)[0] == LAST_VERSION
    assert list(LAST_DAYS) == sorted(set(LAST_DAYS))
    assert MAX_CLOCK_SKEW * DAY > MARGIN


@given(every=st.sampled_from([e for e in EVERY if e != ONCE]), now=TIMES, later=TIMES)
def test_what_is_folded_after_a_version_is_published_is_of_a_later_class(
    every: str, now: int, later: int
) -> None:
    """So a published version never changes, even by a clock that is MARGIN behind."""
    now, later = sorted((now, later))
    epoch = epoch_of(every, DAY_0 * DAY)
    version = version_of(every, [epoch], now)

    lateness, _ = class_of(every, epoch, later - MARGIN)

    assert lateness > (-1 if version is None else version)


@given(every=st.sampled_from(sorted(LENGTHS)), now=TIMES)
def test_the_end_of_a_class_is_when_the_next_one_begins(every: str, now: int) -> None:
    """Which a fold that is classified before its day is over must know."""
    epoch = epoch_of(every, DAY_0 * DAY)
    lateness, ending = class_of(every, epoch, now)

    if ending is None:
        assert lateness == BEYOND
    else:
        assert ending > now
        assert class_of(every, epoch, ending - 1)[0] == lateness
        assert class_of(every, epoch, ending)[0] == lateness + 1


def test_a_window_is_published_when_its_last_epoch_is() -> None:
    """Class after class, MARGIN after each one has ended."""
    window = range(DAY_0 - 5, DAY_0 + 1)
    moments = [end + MARGIN for end in ends("1d", DAY_0)]

    assert [version_of("1d", window, t) for t in moments] == [0, 1, 2, 3]
    assert [version_of("1d", window, t - 1) for t in moments] == [None, 0, 1, 2]
    assert all(b - a > HOUR for a, b in pairwise(moments))
