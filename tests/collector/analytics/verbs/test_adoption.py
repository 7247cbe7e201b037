"""Adoption is counted in the clear, and so exact; a value within it is estimated."""

from __future__ import annotations

import pytest

from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import exact

JANUARY, FEBRUARY = {"time": "2026-01"}, {"time": "2026-02"}


def versions() -> list[Slice]:
    return [
        exact({**JANUARY, "version": "1"}, 0.2, 900, 0),
        exact({**JANUARY, "version": "2"}, 0.4, 300, 0),
        exact({**FEBRUARY, "version": "1"}, 0.2, 250, 1),
        exact({**FEBRUARY, "version": "2"}, 0.4, 750, 1),
    ]


def test_a_version_has_its_exact_share_of_the_reports_of_its_time() -> None:
    """No noise was added to it, so that its interval is a point."""
    found = ask("adoption", versions())

    assert [row.value for row in found.rows] == [0.75, 0.25, 0.25, 0.75]
    assert all(row.ci_low == row.value == row.ci_high for row in found.rows)
    assert {row.std_error for row in found.rows} == {0.0}
    assert all((row.note or "").startswith("exact: counted in the clear") for row in found.rows)
    assert found.facts == {"exact": True}


def test_an_item_is_estimated_within_each_version() -> None:
    """With an interval, as anywhere."""
    found = ask("adoption", versions(), options={"item": "true"})

    assert [row.value for row in found.rows] == pytest.approx([0.2, 0.4, 0.2, 0.4], abs=5e-3)
    assert {row.item for row in found.rows} == {"true"}
    assert all((row.ci_low or 0) < (row.ci_high or 0) for row in found.rows)


def test_shares_are_of_the_same_platform_where_there_are_several() -> None:
    """Each value of another dimension is a whole of its own."""
    parts = [
        exact({**JANUARY, "platform": platform, "version": version}, 0.2, n)
        for platform, version, n in (("mac", "1", 300), ("mac", "2", 100), ("win", "1", 600))
    ]

    found = ask("adoption", parts, options={"dimension": "version"})

    assert [row.value for row in found.rows] == [0.75, 0.25, 1.0]


def test_a_version_with_few_reports_is_counted_but_has_no_estimate() -> None:
    """A count has no noise, and obeys no least number of reports."""
    parts = [*versions()[:2], exact({**JANUARY, "version": "3"}, 0.5, 60)]

    counted, estimated = (
        ask("adoption", parts, options=options).rows for options in ({}, {"item": "true"})
    )

    assert [row.value for row in counted] == [900 / 1_260, 300 / 1_260, 60 / 1_260]
    assert estimated[2].value is None
    assert "not enough reports" in (estimated[2].reason or "")


def test_reports_under_several_definitions_are_counted_together() -> None:
    """What the mechanism was does not matter to a count."""
    found = ask("adoption", [*versions(), *versions()[:1]])

    assert [row.value for row in found.rows[:2]] == [1_800 / 2_100, 300 / 2_100]
