"""Devices that took part are counted exactly by epoch, and bounded beyond."""

from __future__ import annotations

from collections import Counter

import numpy as np

from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import AGE, exact


def days(*counts: int) -> list[Slice]:
    return [exact({"time": f"2026-03-0{i + 1}"}, 0.2, n, i) for i, n in enumerate(counts)]


def test_an_epoch_has_as_many_devices_as_reports() -> None:
    """Exactly; and the part of the expected devices is told."""
    found = ask("actives", days(250, 400))

    row = found.rows[0]
    assert (row.value, row.ci_low, row.ci_high, row.unit) == (250, 250, 250, "devices")
    assert row.note == "exact: counted in the clear; 2.5 % of the 10,000 expected"
    assert found.facts == {"expected_devices": 10_000}
    assert "without consent" in found.warnings[0].text


def test_several_epochs_together_lie_between_the_most_of_one_and_the_sum() -> None:
    """Whether the devices of two days are the same is not known, by design."""
    whole = ask("actives", days(250, 400, 300)).rows[-1]

    assert whole.dimensions == {"time": "(all)"}
    assert (whole.value, whole.ci_low, whole.ci_high) == (None, 400, 950)
    assert (whole.reason or "").startswith("no more than bounds is known")
    assert whole.note == "at least 4 % of the 10,000 expected"


def test_a_week_of_days_has_at_least_a_seventh_of_its_reports() -> None:
    """Some day has as many as the average day, rounded up."""
    (row,) = ask("actives", [exact({"time": "2026-03-02"}, 0.2, 701, *range(7))]).rows

    assert (row.ci_low, row.ci_high) == (101, 701)


def test_the_bounds_hold_whatever_devices_did() -> None:
    """Of 200 populations that report on days of their own choice."""
    chance = np.random.default_rng(20261121)
    for _ in range(200):
        devices, habit = int(chance.integers(100, 400)), chance.random()
        reported = chance.random((5, devices)) < habit
        per_day = reported.sum(axis=1).tolist()
        distinct = int(reported.any(axis=0).sum())
        one = exact({"time": "2026-03"}, 0.2, sum(per_day), *range(5))
        several = days(*(100 + n for n in per_day))  # each above the least

        (row,) = ask("actives", [one]).rows if one.n >= 100 else (None,)
        whole = ask("actives", several).rows[-1]

        assert row is None or (row.ci_low or 0) <= distinct <= (row.ci_high or 0)
        assert (whole.ci_low or 0) <= distinct + 100 <= (whole.ci_high or 0)


def test_segments_have_a_whole_of_their_own() -> None:
    """One row for each platform over all days."""
    parts = [
        exact({"time": f"2026-03-0{day}", "platform": platform}, 0.2, 100 * day, day)
        for day in (1, 2)
        for platform in ("linux", "mac")
    ]

    wholes = [row for row in ask("actives", parts).rows if row.dimensions["time"] == "(all)"]

    assert Counter(row.dimensions["platform"] for row in wholes) == {"linux": 1, "mac": 1}
    assert {(row.ci_low, row.ci_high) for row in wholes} == {(200, 300)}


def test_few_reports_are_counted_as_well_and_any_metric_will_do() -> None:
    """Also one of numbers: a count has no noise, and needs no least number of reports."""
    (row,) = ask("actives", days(60)).rows
    number = Slice(AGE, {"time": "2026-03-01"}, 600, np.array([36_000, 2_160_000, 0]), (0,))

    assert (row.value, row.n, row.reason) == (60, 60, None)
    assert ask("actives", [number]).rows[0].value == 600
    assert [row.n for row in ask("actives", days(30, 20)).rows] == [30, 20, 50]
