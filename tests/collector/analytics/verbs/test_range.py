"""Shares between two ends, of numbers and of items in their declared order."""

from __future__ import annotations

import numpy as np
import pytest

from collector.analytics.verb import Slice
from collector.core.remarks import WORDS, Code
from tests.support.crowds.asking import ask
from tests.support.enumeration.populations import WAVE, category, metric_of, slice_of
from tests.support.enumeration.seeded import SeededRandomness

HELD = [1_000 if 10 <= i <= 20 else 100 for i in range(48)]
SIZES = category("none", "some", "many", "all")


def test_both_ends_of_a_range_of_numbers_are_counted_in() -> None:
    """10 to 20 holds eleven numbers of the grid; ends between two numbers hold what is inside."""
    options = {"ranges": [[10, 20], [9.5, 20.9], [None, 9], [21, None], [None, None]]}

    rows = ask("range", [slice_of(metric_of(WAVE), HELD)], options=options).rows

    names = ["10 to 20", "9.5 to 20.9", "up to 9", "from 21", "all"]
    assert [row.item for row in rows] == names
    inside, between, below, above, whole = (row.value or 0.0 for row in rows)
    assert inside == between == pytest.approx(11 / 14.7, abs=0.05)
    assert below + inside + above == pytest.approx(1, abs=1e-9)
    assert whole == pytest.approx(1)


def test_a_range_of_items_is_their_sum_with_a_score_interval() -> None:
    """In the declared order, both ends counted in; parts add up to the whole."""
    options = {"ranges": [["some", "many"], ["none", "none"], ["all", None], [None, None]]}

    rows = ask("range", [slice_of(SIZES, (100, 200, 300, 400))], options=options).rows

    assert [row.value for row in rows] == pytest.approx([0.5, 0.1, 0.4, 1], abs=2e-3)
    assert [row.item for row in rows] == ["some to many", "none to none", "from all", "all"]
    assert rows[3].ci_low == pytest.approx(1)
    assert rows[3].ci_high == pytest.approx(1)
    assert sum(row.value or 0 for row in rows[:3]) == pytest.approx(1, abs=1e-12)


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


def test_a_bound_is_called_one() -> None:
    """Where pairs of items are not known, the row says that its interval is wider."""
    metric = category("a", "b", "c", mechanism="dbitflip")
    one = Slice(metric, {}, 900, np.array([900, 900, 900, 300, 400, 450]), (0,))

    (row,) = ask("range", [one], options={"high": "b"}).rows

    assert row.note == WORDS[Code.BOUND]


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
        assert rows[0].value is not None
        assert rows[1].value is not None
        widths.append(rows[0].std_error)
        sums.append(rows[0].value + rows[1].value - (rows[2].value or 0))
        assert {row.note for row in rows} == {None}

    assert widths[0] < 0.6 * widths[1]  # type: ignore[operator]
    assert sums == pytest.approx([0, 0], abs=1e-9)
