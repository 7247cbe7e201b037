"""A range in words ends with the last whole period where the running one cannot answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from client_sdk.registry.contract import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.remarks import Code, remark
from collector.query import Answer, Query, plan, run
from tests.support.device.registries import BOOLEAN, file_with
from tests.support.store.memory_storage import MemoryStorage

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
