"""Groups that reported over other days, and many comparisons at once."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.analytics.comparing.mix import APART, uneven
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.remarks import Code
from collector.demo.fleet import PLATFORMS, VERSIONS, population
from collector.demo.past import PAST_DAYS
from collector.estimation.significance import any_of, chi_square_tail, each_of, holm
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


A_DAY = str(np.datetime64(TODAY - 2, "D"))


@pytest.mark.parametrize("verb", QUESTIONS)
@pytest.mark.parametrize(
    ("mac", "more", "is_warned"),
    [
        (LATER, {}, True),
        # Groups of equal mixes are not warned of, however large one is.
        (EVEN, {}, False),
        ([7 * n for n in EVEN], {}, False),
        # Nor is anything within a day: both ways that the warning names end it.
        (LATER, {"dimensions": ["time", "platform"], "along": True}, False),
        (LATER, {"date_range": (A_DAY, A_DAY)}, False),
    ],
)
def test_a_group_that_has_more_of_the_later_days_is_warned_of(
    verb: str, mac: list[int], more: dict[str, Any], is_warned: bool
) -> None:
    options = {"options": _along(verb)} if more.get("along") else {}
    asked = {name: value for name, value in more.items() if name != "along"}

    assert warned(verb, mac, **asked, **options) == is_warned


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


def test_a_difference_is_said_from_ten_points_on() -> None:
    half = {0: 50_000, 1: 50_000}

    assert not uneven(half, {0: round(100_000 * (0.5 + APART)) - 100, 1: 40_100})
    assert uneven(half, {0: round(100_000 * (0.5 + APART)) + 100, 1: 39_900})


@pytest.fixture(scope="module")
def demo_reports() -> dict[str, Counter[int]]:
    """Return the reports by day of the demo's platforms and versions, over all its days."""
    reports: dict[str, Counter[int]] = defaultdict(Counter)
    for days_ago in range(PAST_DAYS + 1):
        for person in population(1_100, random.Random(days_ago), days_ago):
            for name in ("platform", "version"):
                reports[person.segment[name]][-days_ago] += 1
    return reports


def test_platforms_that_all_report_daily_are_not_warned_of(
    demo_reports: dict[str, Counter[int]],
) -> None:
    """In the demo the part of phones falls a little, by a redesign that makes people stay."""
    pairs = combinations(PLATFORMS, 2)

    assert not any(uneven(demo_reports[first], demo_reports[second]) for first, second in pairs)


def test_versions_that_replace_one_another_are_warned_of(
    demo_reports: dict[str, Counter[int]],
) -> None:
    assert uneven(*(demo_reports[version] for version in VERSIONS))


@given(st.lists(st.tuples(*[st.integers(1, 1_000)] * 2, st.floats(0, 1)), min_size=2, max_size=9))
def test_groups_alike_on_each_day_differ_by_a_tenth_of_the_change_unless_it_is_said(
    days: list[tuple[int, int, float]],
) -> None:
    """Abel's summation: the difference over all is at most APART times the way of the number."""
    first, second, shares = zip(*days, strict=True)
    means = [np.average(shares, weights=group) for group in (first, second)]
    way = sum(abs(after - before) for before, after in pairwise(shares))

    # So many reports that luck is no excuse.
    many = [{day: 10_000 * n for day, n in enumerate(group)} for group in (first, second)]
    assert uneven(*many) or abs(means[0] - means[1]) <= APART * way + 1e-12


def test_groups_of_which_no_days_are_known_are_not_judged() -> None:
    assert not uneven({}, {0: 1_000})


def test_intervals_of_independent_numbers_hold_together_exactly_as_often_as_asked() -> None:
    """(1 - a)^m = 1 - α."""
    assert (1 - each_of(0.05, 20)) ** 20 == pytest.approx(0.95)
    assert each_of(0.05, 1) == pytest.approx(0.05)
    assert each_of(1e-6, 50_000) == pytest.approx(2e-11, rel=1e-3)


def test_the_smallest_of_many_chances_counts_them_all() -> None:
    """The inverse of the correction of levels."""
    assert any_of(each_of(0.05, 20), 20) == pytest.approx(0.05)
    assert any_of(1.0, 3) == 1


def test_holm_multiplies_by_what_is_left_and_never_falls() -> None:
    """The worked example of a step-down: 3, 2 and 1 times, in order of size."""
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("value", "freedom", "tail"),
    [
        (3.841458820694124, 1, 0.05),
        (18.307038053275146, 10, 0.05),
        (23.20925115895436, 10, 0.01),
        (2.0, 2, 0.36787944117144233),  # e^-1
        (4.0, 4, 3 * 0.1353352832366127),  # e^-2 (1 + 2)
        (60.0, 2, 9.357622968840175e-14),  # e^-30
        (0.0, 3, 1.0),
    ],
)
def test_the_chi_square_tail_agrees_with_tables_and_closed_forms(
    value: float, freedom: int, tail: float
) -> None:
    """Of even degrees the tail is a finite sum; others are in every table."""
    assert chi_square_tail(value, freedom) == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 5, 30, 364])
def test_the_chi_square_tail_falls_where_its_two_forms_meet(freedom: int) -> None:
    """Series and fraction agree at the seam, to what a step of 1e-6 explains."""
    below, above = (chi_square_tail(freedom + 2 + step, freedom) for step in (-1e-6, 1e-6))

    assert 0 <= below - above < 1e-6
