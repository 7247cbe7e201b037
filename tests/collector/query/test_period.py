"""The period before: as many epochs as the window, just before it, as a stretch of its own."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.errors import QueryError
from collector.query import Plan, Query, plan, run
from tests.support.crowds.uploads import NOON, TODAY, registry
from tests.support.store.memory_storage import MemoryStorage

REGISTRY = registry(min_reports=100)
PAGE = REGISTRY.metric("page")


def day(number: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()


def asked(metric: str, first: int, last: int, **more: Any) -> Plan:
    query = Query([metric], date_range=(day(first), day(last)), dimensions=["time:period"], **more)
    return plan(query, Catalog([REGISTRY]), NOON)


def test_the_window_and_the_period_before_it_are_two_stretches() -> None:
    """Of the same length, next to each other, each named by its first and last day."""
    (reading,) = asked("page", TODAY - 6, TODAY).readings

    assert list(reading.epochs) == list(range(TODAY - 13, TODAY + 1))
    assert reading.label is not None
    assert [reading.label(TODAY - 7), reading.label(TODAY - 6)] == [
        f"{day(TODAY - 13)}/{day(TODAY - 7)}",
        f"{day(TODAY - 6)}/{day(TODAY)}",
    ]


def test_a_single_epoch_is_named_once() -> None:
    """Yesterday and the day before."""
    (reading,) = asked("page", TODAY - 1, TODAY - 1).readings

    assert reading.label is not None
    assert [reading.label(epoch) for epoch in reading.epochs] == [day(TODAY - 2), day(TODAY - 1)]


def test_compare_tells_a_window_from_the_period_before_it() -> None:
    """Home was first for 20 % of its devices, and is for 40 %."""
    storage = MemoryStorage()
    for epoch, tally in ((TODAY - 3, [1_500, 2_500, 2_000]), (TODAY - 1, [2_200, 1_900, 1_900])):
        cell = Cell(PAGE.digest, epoch, segment_text(PAGE, {}))
        storage.put({cell: list(enumerate([sum(tally), *tally]))})

    found = run(asked("page", TODAY - 1, TODAY, verb="compare"), storage)

    home = found.rows[0]
    assert home.dimensions["time"] == f"{day(TODAY - 1)}/{day(TODAY)}"
    assert home.dimensions["against"] == f"{day(TODAY - 3)}/{day(TODAY - 2)}"
    assert home.value == pytest.approx((2_200 - 1_500) / 6_000 / (0.5761 - 0.2119), abs=1e-3)
    assert home.p_value is not None
    assert home.p_value < 1e-6


@pytest.mark.parametrize(
    ("metric", "first", "message"),
    [
        ("opted_in", TODAY, "reported once"),
        ("crashed", TODAY - 300, "must leave at most 5000 epochs"),
        ("page", TODAY - 9_999, "must leave at most 5000 epochs"),
    ],
)
def test_a_period_that_cannot_be_read_is_refused(metric: str, first: int, message: str) -> None:
    """With what would work."""
    with pytest.raises(QueryError, match=message):
        asked(metric, first, TODAY)


def test_no_period_begins_before_the_first_day() -> None:
    """Epochs are not negative."""
    with pytest.raises(QueryError, match="room for as long a period after 1970-01-01"):
        asked("page", 3, 9)
