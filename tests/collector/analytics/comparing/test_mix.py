"""Groups that did not report over the same days are said to be so, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.analytics.comparing.mix import APART, uneven
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.remarks import Code
from collector.query import Query, plan, run
from tests.support.crowds.uploads import NOON, TODAY, registry
from tests.support.store.memory_storage import MemoryStorage

REGISTRY = registry(min_reports=100)
PAGE = REGISTRY.metric("page")
DAYS = 10
EVEN = [300] * DAYS
LATER = [30 * (day + 1) for day in range(DAYS)]  # as users move to a version
QUESTIONS: dict[str, dict[str, Any]] = {
    "lift": {"options": {"dimension": "platform", "control": "linux", "item": "home"}},
    "segments": {"options": {"item": "home"}},
    "compare": {"options": {"item": "home"}},
}


def warned(verb: str, mac: list[int], **more: Any) -> bool:
    """Return whether an answer on two platforms warns, of which linux reports the same each day."""
    storage = MemoryStorage()
    for platform, counts in (("linux", EVEN), ("mac", mac)):
        for day, n in enumerate(counts):
            cell = Cell(PAGE.digest, TODAY - DAYS + day, segment_text(PAGE, {"platform": platform}))
            storage.put({cell: [(0, n), (1, n // 3), (2, n // 3), (3, n // 3)]})
    query = Query(["page"], verb, dimensions=["platform"], **QUESTIONS[verb])
    fields = {name: getattr(query, name) for name in query.__struct_fields__}
    answer = run(plan(Query(**{**fields, **more}), Catalog([REGISTRY]), NOON), storage)
    assert any(row.value is not None for row in answer.rows)
    return Code.UNEVEN in [each.code for each in answer.meta.warnings]


@pytest.mark.parametrize("verb", QUESTIONS)
def test_a_group_that_has_more_of_the_later_days_is_warned_of(verb: str) -> None:
    assert warned(verb, LATER)


@pytest.mark.parametrize("verb", QUESTIONS)
def test_groups_of_equal_mixes_are_not_however_large_one_is(verb: str) -> None:
    assert not warned(verb, EVEN)
    assert not warned(verb, [7 * n for n in EVEN])


@pytest.mark.parametrize("verb", QUESTIONS)
def test_within_a_day_nothing_is_to_be_said(verb: str) -> None:
    """Law: both ways that the warning names end it."""
    assert not warned(verb, LATER, dimensions=["time", "platform"], options=_along(verb))
    day = str(np.datetime64(TODAY - 2, "D"))
    assert not warned(verb, LATER, date_range=(day, day))


def _along(verb: str) -> dict[str, Any]:
    options: dict[str, Any] = QUESTIONS[verb].get("options", {})
    return {**options, "by": "platform"} if verb == "compare" else options


def test_a_comparison_in_time_is_of_different_days_on_purpose() -> None:
    assert not warned("compare", LATER, dimensions=["time:week"])


def test_days_that_differ_by_chance_alone_are_not_warned_of() -> None:
    """Each of 2,000 pairs of one law by chance below 1e-3, so 20 of them below 1e-9 of times."""
    chance = np.random.default_rng(7)

    def draw() -> dict[int, int]:
        return dict(enumerate(chance.multinomial(400, [0.1] * 10).tolist()))

    alarms = sum(uneven(draw(), draw()) for _ in range(2_000))

    assert alarms <= 20


def test_a_difference_is_said_from_five_points_on() -> None:
    half = {0: 50_000, 1: 50_000}

    assert not uneven(half, {0: round(100_000 * (0.5 + APART)) - 100, 1: 45_100})
    assert uneven(half, {0: round(100_000 * (0.5 + APART)) + 100, 1: 44_900})


def test_groups_of_which_no_days_are_known_are_not_judged() -> None:
    assert not uneven({}, {0: 1_000})
