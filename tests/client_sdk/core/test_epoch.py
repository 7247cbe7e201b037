"""Epochs are integers of UTC: weeks begin on Mondays, and no window holds part of one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.epoch import (
    DAY,
    EVERY,
    LENGTHS,
    day_of,
    day_of_date,
    epoch_label,
    epoch_of,
    epoch_start,
    epochs_between,
    is_date,
)
from client_sdk.core.errors import InvalidParameterError

seconds = st.integers(-(10**10), 10**11)
every = st.sampled_from(sorted(LENGTHS))


def at(text: str) -> float:
    """Return the Unix time of a UTC date and time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@given(every, seconds)
def test_an_epoch_holds_exactly_the_seconds_from_its_start_to_the_next(e: str, now: int) -> None:
    epoch = epoch_of(e, now)

    assert epoch_start(e, epoch) <= now < epoch_start(e, epoch + 1)
    assert epoch_start(e, epoch + 1) - epoch_start(e, epoch) == LENGTHS[e]


@pytest.mark.parametrize(
    ("every", "label"),
    [
        ("1h", "2024-02-29T13:00Z"),
        ("1d", "2024-02-29"),
        ("7d", "2024-02-26"),
        ("28d", "2024-02-12"),
        ("once", "once"),
    ],
)
def test_a_label_is_the_beginning_of_the_epoch(every: str, label: str) -> None:
    assert epoch_label(every, epoch_of(every, at("2024-02-29T13:59:59"))) == label


@given(seconds)
def test_four_whole_weeks_make_an_epoch_of_28_days(now: int) -> None:
    start = epoch_start("28d", epoch_of("28d", now))
    weeks = [epoch_start("7d", epoch_of("7d", start) + week) for week in range(5)]

    assert (weeks[0], weeks[4]) == (start, epoch_start("28d", epoch_of("28d", now) + 1))


@pytest.mark.parametrize("now", [-1e9, 0.0, 1e9, 4e9])
def test_once_is_one_epoch_that_never_ends(now: float) -> None:
    assert epoch_of("once", now) == 0
    assert epoch_start("once", 0) == 0


def test_time_before_1970_counts_downwards() -> None:
    assert (day_of(-1), day_of(0), day_of(DAY - 0.5), day_of(DAY)) == (-1, 0, 0, 1)


@pytest.mark.parametrize("day", [date(1969, 12, 31), date(1970, 1, 1), date(2024, 10, 4)])
def test_a_date_is_the_epoch_day_of_all_its_seconds(day: date) -> None:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()

    assert {day_of(midnight), day_of(midnight + DAY - 1)} == {day_of_date(day)}
    assert epoch_of("1h", -1) == -1


@given(every, st.dates(date(1980, 1, 1), date(2100, 1, 1)), st.integers(0, 400))
def test_a_window_holds_the_epochs_that_begin_within_it(e: str, first: date, days: int) -> None:
    last = first + timedelta(days=days)

    epochs = epochs_between(e, first, last)

    midnight = at(first.isoformat())
    end = at(last.isoformat()) + DAY
    assert all(midnight <= epoch_start(e, epoch) < end for epoch in epochs)
    assert epoch_start(e, epochs.start - 1) < midnight
    assert epoch_start(e, epochs.stop) >= end


def test_a_window_of_once_is_its_one_epoch() -> None:
    assert list(epochs_between("once", date(2024, 1, 1), date(2024, 1, 2))) == [0]


@pytest.mark.parametrize("unknown", ["2d", "", "1D", "week"])
def test_an_unknown_length_is_refused_by_every_function(unknown: str) -> None:
    today = date(2024, 1, 1)
    rule = rf"^every={unknown}: must be one of {', '.join(EVERY)}$"

    for refused in (
        lambda: epoch_of(unknown, 0),
        lambda: epoch_start(unknown, 0),
        lambda: epoch_label(unknown, 0),
        lambda: epochs_between(unknown, today, today),
    ):
        with pytest.raises(InvalidParameterError, match=rule):
            refused()


def written(text: str) -> bool:
    """Whether ``datetime`` would write *text* for a day."""
    try:
        return str(date.fromisoformat(text)) == text
    except ValueError:
        return False


@given(st.dates(), st.integers(0, 9), st.sampled_from("0123456789-/ ٣"))
def test_a_date_is_what_the_standard_library_writes(day: date, place: int, letter: str) -> None:
    changed = str(day)[:place] + letter + str(day)[place + 1 :]

    assert is_date(str(day))
    assert is_date(changed) == written(changed)


@pytest.mark.parametrize("year", [1, 1900, 2000, 2023, 2024, 9999])
def test_a_date_has_a_month_and_a_day_of_the_calendar(year: int) -> None:
    texts = [f"{year:04}-{month:02}-{day:02}" for month in range(14) for day in range(33)]

    assert list(map(is_date, texts)) == list(map(written, texts))


@pytest.mark.parametrize("text", ["0000-01-01", "2024-1-01", "20240101", "2024-W01-1", "", None, 7])
def test_what_is_no_date_is_refused(text: object) -> None:
    assert not is_date(text)


@given(st.dates())
def test_the_day_of_a_date_counts_from_1970(day: date) -> None:
    assert day_of_date(day) == (day - date(1970, 1, 1)).days
