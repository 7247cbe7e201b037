"""Dimensions in words: a yes, the others, stretches of days; and what is left as it is."""

from __future__ import annotations

from datetime import date

import pytest
from msgspec.structs import replace

from collector.analytics.rows import AGAINST, REST, Chart, empty_row
from collector.core.remarks import Code, remark
from collector.rendering.wording import days_in_words, last_day, remark_text, worded


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["2026-11-10/2026-11-16"], ["10 to 16 Nov"]),
        (["2026-10-28/2026-11-03"], ["28 Oct to 3 Nov"]),
        (
            ["2026-11-10/2026-11-16", "2025-11-10/2025-11-16"],
            ["10 to 16 Nov 2026", "10 to 16 Nov 2025"],
        ),
        (["2025-12-29/2026-01-04"], ["29 Dec 2025 to 4 Jan 2026"]),
        (["2026-11-16", "2026-11-10/2026-11-12"], ["16 Nov", "10 to 12 Nov"]),
    ],
)
def test_stretches_of_days_are_words(labels: list[str], words: list[str]) -> None:
    assert [days_in_words(labels)[label] for label in labels] == words


@pytest.mark.parametrize(
    ("label", "every", "words"),
    [
        ("2026-11-02/2026-11-09", "7d", "2 to 15 Nov"),
        ("2026-11-02/2026-11-02", "7d", "2 to 8 Nov"),
        ("2026-10-05/2026-11-02", "28d", "5 Oct to 29 Nov"),
        ("2026-11-10/2026-11-16", "1d", "10 to 16 Nov"),
    ],
)
def test_a_stretch_ends_on_the_last_day_of_its_last_epoch(
    label: str, every: str, words: str
) -> None:
    """Law: days are told that reports are of, and not the days on which their epochs began."""
    assert days_in_words([label], every) == {label: words}
    assert last_day(label.partition("/")[2], every)[-2:].lstrip("0") == words.split()[-2]


@pytest.mark.parametrize(("today", "words"), [(11, "2 to 11 Nov"), (16, "2 to 15 Nov")])
def test_a_stretch_that_is_running_ends_today(today: int, words: str) -> None:
    """Law: no report is of a day that is yet to come."""
    label = "2026-11-02/2026-11-09"

    assert days_in_words([label], "7d", today=date(2026, 11, today)) == {label: words}


def test_one_week_against_another_is_told_in_days_and_on_an_axis_by_its_first() -> None:
    week = {"time": "2026-11-09"}
    rows = [empty_row({**week, AGAINST: "2026-11-02"}, 0, 0.05, "share", remark(Code.BOUNDS))]

    assert worded(rows, every="7d")[0].dimensions == {"time": "9 to 15 Nov", AGAINST: "2 to 8 Nov"}
    assert worded([replace(rows[0], dimensions=week)], every="7d")[0].dimensions == week
    assert worded(rows, every="1d") == rows
    web = replace(rows[0], dimensions={**week, AGAINST: "web"})
    assert worded([web], every="7d") == [web]


@pytest.mark.parametrize("label", ["once", "2026-01-05T07:00Z", "2026-01-05"])
def test_a_label_that_is_no_longer_epoch_is_its_own_last_day(label: str) -> None:
    assert last_day(label, "1h" if "T" in label else "once") == label


@pytest.mark.parametrize(
    "label", ["2026-11-16", "input/output", "2026-01-05T07:00Z/2026-01-05T09:00Z"]
)
def test_days_alone_hours_and_other_labels_stay(label: str) -> None:
    assert days_in_words([label]) == {}


def test_a_boolean_says_yes_and_a_list_that_has_true_in_it_does_not() -> None:
    rows = [empty_row({"item": "true", AGAINST: REST}, 0, 0.05, "share", remark(Code.BOUNDS))]

    assert worded(rows, is_boolean=True)[0].dimensions == {"item": "yes", AGAINST: "the others"}
    assert worded(rows)[0].dimensions == {"item": "true", AGAINST: "the others"}
    assert rows[0].dimensions == {"item": "true", AGAINST: REST}


def test_the_middle_quantile_is_the_median_and_an_item_of_that_name_stays() -> None:
    rows = [
        empty_row({"item": name}, 3, 0.05, "ms", remark(Code.BOUNDS)) for name in ("p50", "p95")
    ]

    assert [row.item for row in worded(rows, chart=Chart.QUANTILES)] == ["median", "p95"]
    assert [row.item for row in worded(rows, chart=Chart.ROWS)] == ["p50", "p95"]


def test_a_title_is_spelled_as_it_is_declared_and_a_sentence_begins_with_a_capital() -> None:
    """Law: "iOS start" is no "IOS start", whether it is named or left away."""
    about = remark(Code.IN_PROGRESS, "start")
    of_all = remark(Code.NOT_DRAWN, group="platform")

    assert remark_text(about, {"start": "iOS start"}).startswith("iOS start: in progress: ")
    assert remark_text(about, {"start": ""}).startswith("In progress: ")
    assert remark_text(about, {}).startswith("start: in progress: ")
    assert remark_text(of_all, {"start": "iOS start"}).startswith("Platform: arms that ")
    assert remark_text(about, {}).endswith(" is not complete.")
