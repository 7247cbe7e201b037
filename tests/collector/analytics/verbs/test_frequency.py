"""Shares of items, of all and of those at the top, with intervals that hold for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from client_sdk.mechanisms import FrequencyOracle
from collector.analytics.postprocess import OF_PARTS
from collector.analytics.rows import Findings
from collector.analytics.verb import Slice
from collector.analytics.verbs.top_k import rank_of, ranks
from collector.core.errors import QueryError
from tests.support.crowds.asking import ask
from tests.support.device.registries import KEY_VALUE, SET
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import category, drawn, metric_of, slice_of
from tests.support.known import known

LABELS = ("a", "b", "c", "d")
HELD = (900, 90, 10, 0)


@pytest.mark.parametrize("name", OF_PARTS)
def test_each_post_processing_is_named_and_keeps_the_raw_number(name: str) -> None:
    """A row says what was done to it; its interval stays that of the raw number."""
    one = slice_of(category(*LABELS), HELD)
    raw = ask("frequency", [one]).rows

    found = ask("frequency", [one], postprocess=name).rows

    assert {row.postprocess for row in found} == {name}
    for before, after in zip(raw, found, strict=True):
        assert after.raw == (None if name == "raw" else before.value)
        assert replace(after, value=before.value, raw=None, postprocess="raw") == before


@pytest.mark.parametrize("name", ["norm_sub", "simplex_l2", "simplex_l1"])
def test_shares_made_one_whole_sum_to_one(name: str) -> None:
    """Also in a boolean, whose two items have rows here."""
    rows = ask("frequency", [slice_of(category(*LABELS), HELD)], postprocess=name).rows

    values = [row.value or 0.0 for row in rows]
    assert sum(values) == pytest.approx(1)
    assert min(values) >= 0


@pytest.mark.parametrize("fields", [SET, KEY_VALUE], ids=["set", "key_value"])
def test_items_of_which_a_device_holds_many_are_not_made_one_whole(fields: dict[str, str]) -> None:
    """Their shares do not sum to 1, and nothing is said of what is left."""
    metric = metric_of(fields)
    tally = np.zeros(metric.mechanism.tally_size, dtype=np.int64)
    tally[0] = 1_000
    one = Slice(metric, {}, 1_000, tally, (0,))

    with pytest.raises(QueryError, match=r"postprocess: must be one of raw, base_cut"):
        ask("frequency", [one], postprocess="norm_sub")
    assert "unallocated" not in ask("frequency", [one], postprocess="base_cut").facts


def test_what_is_left_of_the_whole_is_told_with_its_interval() -> None:
    """Randomized response always sums to 1; reports that support many items do not."""
    (exact,) = ask("frequency", [slice_of(category(*LABELS), HELD)]).facts["unallocated"]
    unary = category(*LABELS, mechanism="oue")
    tally = np.array([500, 300, 280, 270])
    (found,) = ask("frequency", [Slice(unary, {"x": "y"}, 1_000, tally, (0,))]).facts["unallocated"]

    assert exact == {"dimensions": {}, **dict.fromkeys(("value", "ci_low", "ci_high"), 0)} or (
        abs(exact["value"]) < 1e-12
    )
    rows = ask("frequency", [Slice(unary, {}, 1_000, tally, (0,))]).rows
    assert found["dimensions"] == {"x": "y"}
    assert found["value"] == pytest.approx(1 - sum(row.value or 0 for row in rows))
    assert found["ci_low"] < found["value"] < found["ci_high"]


TWELVE = tuple(f"v{i}" for i in range(12))
FALLING = (600, 500, 400, 300, 150, 50, 0, 0, 0, 0, 0, 0)
TRIALS = 800
ALPHA = 0.05


def test_intervals_are_as_wide_as_for_all_items_not_only_those_shown() -> None:
    """What is picked from many is judged as one of many."""
    one = slice_of(category(*TWELVE), FALLING)
    pointwise = {row.item: row for row in ask("frequency", [one], ALPHA / len(TWELVE)).rows}

    for row in ask("top_k", [one], ALPHA, options={"k": 2}).rows:
        assert (row.ci_low, row.ci_high) == pytest.approx(
            (pointwise[row.item].ci_low, pointwise[row.item].ci_high)
        )
        assert row.alpha == ALPHA


def test_two_slices_share_the_level() -> None:
    """Intervals of the whole answer hold at once."""
    metric = category(*TWELVE)
    (first, *_), both = (
        ask("top_k", [slice_of(metric, FALLING, {"x": str(i)}) for i in range(count)]).rows
        for count in (1, 2)
    )

    assert known(both[0].ci_high) > known(first.ci_high)


def test_ranks_follow_from_intervals_that_lie_apart() -> None:
    """An item is behind those surely above it, and before those surely below."""
    low, high = np.array([0.5, 0.2, 0.25, 0.0]), np.array([0.6, 0.3, 0.4, 0.05])

    best, worst = ranks(low, high)
    assert list(zip(best.tolist(), worst.tolist(), strict=True)) == [(1, 1), (2, 3), (2, 3), (4, 4)]
    best, worst = ranks(low, high, "least")
    assert list(zip(best.tolist(), worst.tolist(), strict=True)) == [(4, 4), (2, 3), (2, 3), (1, 1)]


@pytest.mark.parametrize(
    ("best", "worst", "count", "words"),
    [
        (1, 1, 17, "rank 1 of 17"),
        (2, 3, 3, "rank between 2 and 3 of 3"),
        (2, 17, 17, "rank unsure: too few reports"),
        (1, 2, 2, "rank unsure: too few reports"),
        (1, 1, 1, "rank 1 of 1"),
    ],
)
def test_a_rank_that_may_be_nearly_any_is_none(
    best: int, worst: int, count: int, words: str
) -> None:
    """Two thirds of all ranks say that there are too few reports, and nothing of the item."""
    assert rank_of(best, worst, count).text == words


def asked_of(held: Sequence[int], order: str = "most") -> tuple[Findings, Any]:
    """Return the first 20 of many items, and the true share of each."""
    metric = category(*(f"v{i}" for i in range(len(held))), mechanism="oue", epsilon='"2"')
    assert isinstance(metric.mechanism, FrequencyOracle)
    chance, counts = np.random.default_rng(7), np.array(held)
    p, q = metric.mechanism.chances
    tally = chance.binomial(counts, p) + chance.binomial(counts.sum() - counts, q)
    one = Slice(metric, {}, int(counts.sum()), tally, (0,))
    found = ask("top_k", [one], options={"k": 20, "order": order})
    return found, np.array([held[int(row.item[1:])] for row in found.rows]) / counts.sum()


@pytest.mark.parametrize("order", ["most", "least"])
def test_of_many_alike_those_shown_are_said_to_be_misleading(order: str) -> None:
    """Of 400 items with 0.25 % each, the 20 largest are so by noise: the likelier share is near."""
    found, truth = asked_of([100] * 400, order)

    likely = np.array([row.shrunken for row in found.rows], dtype=float)
    shown = np.array([row.value for row in found.rows], dtype=float)
    (warning,) = [each.text for each in found.warnings]
    assert f"20 of the 20 shares shown are probably {'over' if order == 'most' else 'under'}" in (
        warning
    )
    assert f"{100 * likely.sum():.3g} % is likelier" in warning
    assert abs(likely - truth).max() < abs(shown - truth).min()
    for row, share in zip(found.rows, likely, strict=True):
        assert max(known(row.ci_low), 0) <= share <= known(row.ci_high)


def test_of_shares_that_stand_clear_of_noise_nothing_is_said() -> None:
    """20 items share all devices: each is known to a few percent of itself."""
    found, _ = asked_of([20_000] * 20 + [0] * 380)

    assert found.warnings == ()
    assert [row.shrunken for row in found.rows] == [None] * 20


def test_only_rows_that_mislead_have_a_likelier_share_beside() -> None:
    """Ten stand clear; behind them come ten of 390 alike, which are there by noise."""
    found, _ = asked_of([20_000] * 10 + [100] * 390)

    assert [row.shrunken is None for row in found.rows] == [True] * 10 + [False] * 10
    assert "10 of the 20 shares shown" in found.warnings[0].text


@pytest.mark.parametrize("level", [ALPHA, ALPHA * len(TWELVE)], ids=["at once", "each alone"])
def test_all_intervals_hold_at_once_and_pointwise_ones_would_be_seen(level: float) -> None:
    """Bonferroni errs on the safe side: at least 95 % of 800 answers have no miss at all."""
    metric = category(*TWELVE)
    truth = np.array(FALLING) / sum(FALLING)
    hits = 0

    for tally in drawn(metric.mechanism, FALLING, TRIALS, 20261101):
        rows = ask(
            "top_k", [Slice(metric, {}, sum(FALLING), tally, (0,))], level, options={"k": 12}
        )
        ends = [(row.ci_low, row.ci_high, truth[TWELVE.index(row.item)]) for row in rows.rows]
        hits += all(low <= t <= high for low, high, t in ends)

    rate = hits / TRIALS
    holds = rate >= 1 - ALPHA or fits_rate(hits, TRIALS, 1 - ALPHA)
    assert holds == (level == ALPHA)
