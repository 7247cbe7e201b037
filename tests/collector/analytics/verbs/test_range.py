"""Shares between two ends, of numbers and of items in their declared order."""

from __future__ import annotations

import numpy as np
import pytest

from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.enumeration.populations import WAVE, category, metric_of, slice_of
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.known import known

HELD = [1_000 if 10 <= i <= 20 else 100 for i in range(48)]


def test_one_range_is_asked_for_by_its_ends() -> None:
    """Without a list of ranges."""
    one = slice_of(metric_of(WAVE), HELD)

    (short,) = ask("range", [one], options={"low": 3, "high": 7.5}).rows
    (listed,) = ask("range", [one], options={"ranges": [[3, 7.5]]}).rows

    assert short == listed


def test_intervals_that_hold_at_once_are_wider() -> None:
    """Over all ranges."""
    ranges = {"ranges": [[0, 10], [10, 20]]}
    one = slice_of(metric_of(WAVE), HELD)

    alone = ask("range", [one], options=ranges).rows
    at_once = ask("range", [one], options={**ranges, "simultaneous": True}).rows

    assert at_once[0].ci_high > alone[0].ci_high  # type: ignore[operator]
    assert {row.simultaneous for row in at_once} == {True}


def test_ranges_of_a_hierarchy_are_narrower_than_sums_and_add_up_alike() -> None:
    """Read off the tree, whose error does not grow with the items of a range."""
    labels = [f"v{i}" for i in range(64)]
    ranges = [["v0", "v39"], ["v40", "v63"], [None, None]]
    widths, sums = [], []
    for mechanism in ("hierarchy", "hadamard"):
        metric, randomness = category(*labels, mechanism=mechanism), SeededRandomness(b"tree")
        payloads = [metric.mechanism.randomize(i % 64, randomness) for i in range(3_000)]
        tally = metric.mechanism.tally(b"".join(payloads), np)
        one = Slice(metric, {}, 3_000, tally, (0,))
        rows = ask("range", [one], options={"ranges": ranges}).rows
        widths.append(rows[0].std_error)
        sums.append(known(rows[0].value) + known(rows[1].value) - (rows[2].value or 0))
        assert {row.note for row in rows} == {None}

    assert widths[0] < 0.6 * widths[1]  # type: ignore[operator]
    assert sums == pytest.approx([0, 0], abs=1e-9)
