"""The items at the top, with intervals and ranks that hold for all items at once."""

from __future__ import annotations

import numpy as np
import pytest

from collector.analytics.verb import Slice
from collector.analytics.verbs.top_k import ranks
from tests.support.crowds.asking import ask
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import category, drawn, slice_of

LABELS = tuple(f"v{i}" for i in range(12))
HELD = (600, 500, 400, 300, 150, 50, 0, 0, 0, 0, 0, 0)
TRIALS = 800
ALPHA = 0.05


def test_rows_are_the_largest_shares_in_order() -> None:
    """Items stand by their unbiased shares, k of them a slice."""
    rows = ask("top_k", [slice_of(category(*LABELS), HELD)], options={"k": 3}).rows

    assert [row.item for row in rows] == ["v0", "v1", "v2"]
    assert all(row.simultaneous for row in rows)


def test_the_least_stand_first_if_asked_for() -> None:
    """The other end, smallest first."""
    options = {"k": 2, "order": "least"}
    held = (500, 5, 400, 300)

    rows = ask("top_k", [slice_of(category("a", "b", "c", "d"), held)], options=options).rows

    assert [row.item for row in rows] == ["b", "d"]


def test_intervals_are_as_wide_as_for_all_items_not_only_those_shown() -> None:
    """What is picked from many is judged as one of many."""
    one = slice_of(category(*LABELS), HELD)
    pointwise = {row.item: row for row in ask("frequency", [one], ALPHA / len(LABELS)).rows}

    for row in ask("top_k", [one], ALPHA, options={"k": 2}).rows:
        assert (row.ci_low, row.ci_high) == pytest.approx(
            (pointwise[row.item].ci_low, pointwise[row.item].ci_high)
        )
        assert row.alpha == ALPHA


def test_two_slices_share_the_level() -> None:
    """Intervals of the whole answer hold at once."""
    metric = category(*LABELS)
    (first, *_), both = (
        ask("top_k", [slice_of(metric, HELD, {"x": str(i)}) for i in range(count)]).rows
        for count in (1, 2)
    )

    assert both[0].ci_high is not None
    assert first.ci_high is not None
    assert both[0].ci_high > first.ci_high


def test_ranks_follow_from_intervals_that_lie_apart() -> None:
    """An item is behind those surely above it, and before those surely below."""
    low, high = np.array([0.5, 0.2, 0.25, 0.0]), np.array([0.6, 0.3, 0.4, 0.05])

    best, worst = ranks(low, high)
    assert list(zip(best.tolist(), worst.tolist(), strict=True)) == [(1, 1), (2, 3), (2, 3), (4, 4)]
    best, worst = ranks(low, high, "least")
    assert list(zip(best.tolist(), worst.tolist(), strict=True)) == [(4, 4), (2, 3), (2, 3), (1, 1)]


def test_items_that_noise_alone_may_have_made_are_marked_and_counted() -> None:
    """Six items are held by nobody."""
    found = ask("top_k", [slice_of(category(*LABELS, epsilon='"3"'), HELD)])

    (fact,) = found.facts["slices"]
    assert fact["items"] == len(LABELS)
    assert fact["not_distinguishable_from_zero"] == 6
    assert [("zero" in (row.note or "")) for row in found.rows] == [False] * 6 + [True] * 4
    assert found.rows[0].note is not None
    assert found.rows[0].note.startswith("rank 1")
    assert fact["ranks"]["v0"][0] == 1


def test_a_slice_that_is_too_small_does_not_tell_which_items_lead() -> None:
    """Rows without numbers stand as they are declared."""
    one = slice_of(category(*LABELS), (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200))

    found = ask("top_k", [one], options={"k": 2})

    assert [(row.item, row.value) for row in found.rows] == [("v0", None), ("v1", None)]
    assert found.facts == {"slices": []}


@pytest.mark.parametrize("level", [ALPHA, ALPHA * len(LABELS)], ids=["at once", "each alone"])
def test_all_intervals_hold_at_once_and_pointwise_ones_would_be_seen(level: float) -> None:
    """Bonferroni errs on the safe side: at least 95 % of 800 answers have no miss at all."""
    metric = category(*LABELS)
    truth = np.array(HELD) / sum(HELD)
    hits = 0

    for tally in drawn(metric.mechanism, HELD, TRIALS, 20261101):
        rows = ask("top_k", [Slice(metric, {}, sum(HELD), tally, (0,))], level, options={"k": 12})
        ends = [(row.ci_low, row.ci_high, truth[LABELS.index(row.item)]) for row in rows.rows]
        hits += all(low <= t <= high for low, high, t in ends)

    rate = hits / TRIALS
    holds = rate >= 1 - ALPHA or fits_rate(hits, TRIALS, 1 - ALPHA)
    assert holds == (level == ALPHA)
