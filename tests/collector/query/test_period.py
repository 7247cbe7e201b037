"""Earlier ranges beside the window, and whole periods where the running one cannot answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pytest

from client_sdk.registry.contract import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.config import RelayTerms
from collector.core.errors import QueryError
from collector.core.remarks import Code, remark
from collector.query import Answer, Plan, Query, earlier, plan, run
from collector.query.cache import key_of
from tests.support.crowds.uploads import NOON, TODAY, registry
from tests.support.device.registries import BOOLEAN, file_with
from tests.support.known import known
from tests.support.store.memory_storage import MemoryStorage

REGISTRY = registry(min_reports=100)
PAGE = REGISTRY.metric("page")
CATALOG = Catalog([REGISTRY])


def day(number: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()


def asked(metric: str, first: int, last: int, **more: Any) -> Plan:
    query = Query([metric], date_range=(day(first), day(last)), dimensions=["time:period"], **more)
    return plan(query, Catalog([REGISTRY]), NOON)


def compared(first: int, last: int, against: Any, **more: Any) -> Plan:
    days = day(first), day(last)
    return plan(Query(["page"], date_range=days, against=against, **more), CATALOG, NOON)


YEAR_AGO: Final = Query(["page"], date_range=("2024-02-01", "2024-02-29"), against="year")


@pytest.mark.parametrize(
    ("made", "epochs", "labels"),
    [
        # Of the same length, next to each other, each named by its first and last day.
        (
            asked("page", TODAY - 6, TODAY),
            [*range(TODAY - 13, TODAY + 1)],
            [(TODAY - 13, TODAY - 7), (TODAY - 6, TODAY)],
        ),
        (asked("page", TODAY - 1, TODAY - 1), [TODAY - 2, TODAY - 1], [(TODAY - 2,), (TODAY - 1,)]),
        # The days between are of neither.
        (
            compared(TODAY - 6, TODAY, (day(TODAY - 40), day(TODAY - 31))),
            [*range(TODAY - 40, TODAY - 30), *range(TODAY - 6, TODAY + 1)],
            [(TODAY - 40, TODAY - 31), (TODAY - 6, TODAY)],
        ),
        # A month is held against the month of that name; of a leap day the day before.
        (
            plan(YEAR_AGO, CATALOG, NOON),
            [*range(19_389, 19_417), *range(19_754, 19_783)],
            [(19_389, 19_416), (19_754, 19_782)],
        ),
    ],
)
def test_two_stretches_are_named_by_their_first_and_last_day(
    made: Plan, epochs: list[int], labels: list[tuple[int, ...]]
) -> None:
    (reading,) = made.readings

    label = known(reading.label)
    assert list(reading.epochs) == epochs
    assert [*dict.fromkeys(map(label, epochs))] == ["/".join(map(day, each)) for each in labels]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: asked("opted_in", TODAY, TODAY), "reported once"),
        (lambda: asked("crashed", TODAY - 300, TODAY), "must leave at most 5000 epochs"),
        (lambda: asked("page", TODAY - 9_999, TODAY), "must leave at most 5000 epochs"),
        (lambda: asked("page", 3, 9), "room for as long a period after 1970-01-01"),
        # Each is one row; a chart asks for both by itself.
        *(
            (
                lambda verb=verb: compared(
                    TODAY, TODAY, "previous", verb=verb, dimensions=["time:day"]
                ),
                r"against: .*ask for each range by itself",
            )
            for verb in ("trend", "estimate")
        ),
    ],
)
def test_a_period_that_cannot_be_read_is_refused_with_what_would_work(
    ask: Callable[[], Plan], message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        ask()


def test_against_needs_no_dimension_and_is_the_period_where_it_is_the_previous() -> None:
    """What was asked as time:period is asked so, too."""
    named = compared(TODAY - 6, TODAY, "previous")
    over_time = compared(TODAY - 6, TODAY, "previous", verb="trend")
    before = asked("page", TODAY - 6, TODAY)

    assert named.dimensions == before.dimensions == ("time",)
    assert named.readings[0].epochs == before.readings[0].epochs
    assert over_time.dimensions == ("time",)
    label = over_time.readings[0].label
    assert label is not None
    assert len({label(epoch) for epoch in over_time.readings[0].epochs}) == 2
    assert compared(TODAY, TODAY, "previous", dimensions=["platform"]).dimensions == (
        "time",
        "platform",
    )


def test_compare_tells_two_ranges_apart_and_leaves_out_what_lies_between() -> None:
    """Days between would pull the difference towards 0."""
    storage = MemoryStorage()
    days = ((TODAY - 40, 1_500), (TODAY - 20, 5_000), (TODAY - 1, 2_200))
    for epoch, count in days:
        cell = Cell(PAGE.digest, epoch, segment_text(PAGE, {}))
        storage.put({cell: list(enumerate([6_000, count, 6_000 - count, 0]))})

    answer = run(
        compared(TODAY - 1, TODAY, (day(TODAY - 41), day(TODAY - 40)), verb="compare"), storage
    )

    home = answer.rows[0]
    assert home.dimensions["against"] == f"{day(TODAY - 41)}/{day(TODAY - 40)}"
    assert (home.n, answer.meta.n) == (12_000, 12_000)
    assert any(
        f"{day(TODAY - 39)} to {day(TODAY - 2)} lies between both ranges" in remark.text
        for remark in answer.meta.warnings
    )
    assert home.value == pytest.approx((2_200 - 1_500) / 6_000 / (0.5761 - 0.2119), abs=1e-3)


@pytest.mark.parametrize(
    ("first", "against", "message"),
    [
        (TODAY - 6, (TODAY - 10, TODAY - 6), "against=.*: must end before .*; name the earlier"),
        (TODAY - 6, (TODAY + 1, TODAY + 2), "against=.*: must end before"),
        (TODAY - 6, (TODAY - 20, TODAY - 21), "against=.*: must not be after"),
        (TODAY - 400, "year", "against=.*: must end before .*; take a shorter one"),
        (TODAY - 600, (TODAY - 10_500, TODAY - 601), "against=.*: must leave at most 10000"),
        (0, "year", "against=year: must leave room for a year after 1970"),
    ],
)
def test_a_range_that_cannot_be_held_against_is_refused(
    first: int, against: Any, message: str
) -> None:
    """With what would work."""
    ends = tuple(map(day, against)) if isinstance(against, tuple) else against
    with pytest.raises(QueryError, match=message):
        compared(first, min(TODAY, first + 600), ends)


def test_the_question_of_the_earlier_range_alone_is_for_a_chart() -> None:
    """As long, in the same dimensions, and itself a question that can be asked."""
    days = day(TODAY - 6), day(TODAY)
    query = Query(["page"], "trend", days, against="previous", dimensions=["time:day"])

    before = earlier(query, CATALOG, NOON)

    assert before.date_range == (day(TODAY - 13), day(TODAY - 7))
    (reading,) = plan(before, CATALOG, NOON).readings
    assert (len(reading.epochs), reading.is_open) == (7, False)


def test_answers_against_different_ranges_are_kept_apart() -> None:
    """The first and the last day of all may be the same, and those between differ."""
    keys = {
        key_of(
            compared(TODAY - 59, TODAY - 55, against, verb="compare"),
            "json",
            "contents",
            RelayTerms(),
        )
        for against in (
            (day(TODAY - 90), day(TODAY - 80)),
            (day(TODAY - 90), day(TODAY - 70)),
            (day(TODAY - 90), day(TODAY - 60)),
        )
    }
    split = {
        key_of(
            compared(TODAY - begin, TODAY - 55, against, verb="compare"),
            "json",
            "contents",
            RelayTerms(),
        )
        for begin, against in (
            (59, (day(TODAY - 90), day(TODAY - 60))),
            (58, (day(TODAY - 90), day(TODAY - 59))),
        )
    }

    assert None not in keys | split
    assert (len(keys), len(split)) == (3, 2)


# A Tuesday; four weeks began on 2026-02-09, and are running.
NOW: Final = datetime(2026, 3, 3, 10, tzinfo=UTC).timestamp()
SUMS: Final = {"aggregate": '"any"', "otherwise": "false", "mechanism": '"grr"'}


def catalog_of(every: str, more: dict[str, str]) -> Catalog:
    form = {**BOOLEAN, "every": f'"{every}"', "min_reports": "100", **more}
    return Catalog([Registry.from_text(file_with(form))])


def answer(
    every: str, adds_up: bool, days: Any, stored: dict[int, int] | None = None, **more: Any
) -> Answer:
    """Return the answer over *days* at NOW, of a store with reports by their epoch."""
    catalog, storage = catalog_of(every, SUMS if adds_up else {}), MemoryStorage()
    for epoch, n in (stored or {}).items():
        storage.put({Cell(catalog.metric("m").digest, epoch, ""): [(0, n), (1, n), (2, 0)]})
    return run(plan(Query(["m"], date_range=days, **more), catalog, NOW), storage)


@pytest.mark.parametrize(
    ("every", "adds_up", "words", "window"),
    [
        ("7d", True, "7d", ("2026-02-23", "2026-02-23")),
        ("7d", True, "day", ("2026-02-23", "2026-02-23")),
        ("7d", True, "28d", ("2026-02-02", "2026-02-23")),
        ("7d", True, "month", ("2026-02-23", "2026-02-23")),
        ("7d", True, "year", ("2026-01-05", "2026-02-23")),
        ("28d", True, "7d", ("2026-01-12", "2026-01-12")),
        ("28d", True, "28d", ("2026-01-12", "2026-01-12")),
        ("1d", True, "day", ("2026-03-02", "2026-03-02")),
        ("1d", True, "7d", ("2026-02-24", "2026-03-02")),
        ("1h", True, "day", ("2026-03-03T00:00Z", "2026-03-03T23:00Z")),
        ("7d", False, "7d", ("2026-03-02", "2026-03-02")),
        ("1d", False, "7d", ("2026-02-25", "2026-03-03")),
    ],
)
def test_what_adds_up_is_asked_of_whole_periods(
    every: str, adds_up: bool, words: str, window: tuple[str, str]
) -> None:
    """Law: it is reported when a period is over, so the running one has no report ever."""
    (basis,) = answer(every, adds_up, words).meta.metrics

    assert (basis.window.first, basis.window.last) == window


@pytest.mark.parametrize("adds_up", [False, True])
@pytest.mark.parametrize("against", ["previous", "year"])
@pytest.mark.parametrize("words", ["day", "7d", "14d", "28d", "30d", "91d"])
@pytest.mark.parametrize("every", ["1h", "1d", "7d", "28d"])
def test_a_comparison_takes_equal_stretches_of_whole_periods(
    every: str, words: str, against: Any, adds_up: bool
) -> None:
    """Law: as many periods on either side, the later of them over."""
    catalog = catalog_of(every, SUMS if adds_up else {})
    query = Query(["m"], verb="compare", date_range=words, against=against)

    (reading,) = plan(query, catalog, NOW).readings

    assert reading.earlier is not None
    assert 2 * len(reading.earlier) == len(reading.epochs)
    assert not reading.is_open


def test_dates_stay_as_they_are_given_and_a_period_that_runs_says_why_it_is_empty() -> None:
    found = answer("7d", True, ("2026-03-02", "2026-03-03"))

    assert found.meta.metrics[0].window.first == "2026-03-02"
    assert remark(Code.SENT_LATER, "m") in found.meta.warnings


def test_an_earlier_range_without_reports_is_named_by_its_days() -> None:
    """Law: no row of last year is no silence about last year."""
    week = 2930  # begins on 2026-02-23
    found = answer("7d", False, "7d", {week: 500, week - 1: 500}, against="year")

    assert "m: 2025-02-24 to 2025-03-02: no reports" in map(str, found.meta.warnings)
    found = answer("7d", False, "7d", {week: 500, week - 1: 500}, against="previous")
    assert Code.NO_EARLIER_REPORTS not in [each.code for each in found.meta.warnings]


def test_the_whole_periods_count_what_came_late_for_each_of_them() -> None:
    """Law: that the last period ended yesterday leaves no report of the ones before it out."""
    catalog, storage = catalog_of("7d", SUMS), MemoryStorage()
    for epoch, lateness in ((2930, 0), (2930, 1), (2929, 3), (2928, 2)):  # 2930 ended on Sunday
        cell = Cell(catalog.metric("m").digest, epoch, "", lateness)
        storage.put({cell: [(0, 500), (1, 500), (2, 0)]})

    reply = run(plan(Query(["m"], date_range="28d"), catalog, NOW), storage)

    assert reply.meta.n == 2_000
    assert reply.meta.metrics[0].version is None
