"""Rows are made fast, and are the same rows."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.epoch import epoch_label, epoch_start
from collector.analytics.rows import Period, Row, flat, moment, row_of
from collector.core.remarks import Code, remark
from collector.estimation.estimate import Estimate

SO_FAR = remark(Code.NOTE, text="so far")
FOUND = Estimate(0.5, 0.01, 0.48, 0.52)


def test_a_row_of_an_estimate_is_the_row_of_its_fields() -> None:
    numbers = (0.5, 0.48, 0.52, 0.01)

    made = row_of({"item": "a"}, FOUND, 900, 0.05, "share", notes=(SO_FAR,), is_open=True)

    same = Row({"item": "a"}, *numbers, 900, 0.05, "good", "share", notes=(SO_FAR,), is_open=True)
    assert made == same
    assert list(flat(made)) == list(flat(same))


def test_a_row_cannot_be_changed() -> None:
    row = row_of({}, FOUND, 900, 0.05, "share")

    with pytest.raises(AttributeError):
        row.value = 1.0  # type: ignore[misc]


@given(st.sampled_from(["1h", "1d", "7d"]), st.integers(0, 20_000))
def test_the_labels_of_epochs_are_read_as_their_beginnings(every: str, epoch: int) -> None:
    period = Period.read(epoch_label(every, epoch), every)

    assert period is not None
    assert period.hours == epoch_start(every, epoch) / 3600


@pytest.mark.parametrize(
    ("label", "stretch", "words"),
    [
        ("2026-11-22", "1d", "2026-11-22"),
        ("2026-11-22", "7d", "the week of 2026-11-22"),
        ("2026-11-22/2026-11-28", "7d", "the week of 2026-11-22"),
        ("2026-11-22/2026-12-19", "28d", "the four weeks from 2026-11-22"),
        ("2026-11-22/2026-11-29", "7d", "2026-11-22/2026-11-29"),  # two weeks
        ("2026-11-22T09:00Z", "1h", "2026-11-22T09:00Z"),
        ("2026-11", "7d", "2026-11"),
    ],
)
def test_a_week_is_named_by_its_first_day(label: str, stretch: str, words: str) -> None:
    assert moment(label, stretch) == words


@pytest.mark.parametrize(
    ("label", "hours", "days"),
    [
        ("2026-11-02", "2026-11-02", ("2026-11-02", "2026-11-08")),
        ("2026-11-02/2026-11-09", "2026-11-02", ("2026-11-02", "2026-11-15")),
        ("2026-11", "2026-11-01", None),
        ("2026-11-02T09:00Z", "2026-11-02T09:00", None),
    ],
)
def test_a_period_of_weeks_has_its_first_and_its_last_day(
    label: str, hours: str, days: tuple[str, str] | None
) -> None:
    period = Period.read(label, "7d")

    assert period is not None
    assert period.hours == datetime.fromisoformat(f"{hours}+00:00").timestamp() / 3600
    assert period.days == (days and tuple(date.fromisoformat(day) for day in days))


@pytest.mark.parametrize(
    "text", ["", "once", "2026-13-01", "yesterday", "9999999-01-01", "2026-13"]
)
def test_what_is_no_time_is_no_period(text: str) -> None:
    assert Period.read(text) is None
