"""A mean over sources that a few of them cannot move far, and what it costs."""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np
import pytest

from collector.analytics.poisoning.sources import (
    LEAST_KEPT,
    Tallied,
    _trimmed_mean,
    least_sources,
    trimmed,
)
from tests.collector.analytics.poisoning.test_sources import LAW, METRIC, TARGET, epoch
from tests.support.known import known

ALPHA: Final = 0.05
PART: Final = 0.1


def sources(seed: int, count: int = 20, **fields: Any) -> list[Tallied]:
    return list(epoch(np.random.default_rng(seed), sources=count, **fields).values())


def test_a_wrong_source_for_each_that_is_dropped_cannot_move_it_beyond_the_others() -> None:
    honest = sources(1)
    wrong = [Tallied(np.full_like(part.tally, end), part.n) for part, end in
             zip(honest[:2], (0, honest[1].n), strict=True)]  # fmt: skip
    own = np.array([METRIC.mechanism.debias(p.tally, p.n, np).totals / p.n for p in honest[2:]])

    mean = known(trimmed(METRIC, [*wrong, *honest[2:]], PART, ALPHA))

    assert (mean.dropped, mean.of) == (2, 20)
    assert (mean.values >= own.min(axis=0)).all()
    assert (mean.values <= own.max(axis=0)).all()


def test_one_more_wrong_source_than_are_dropped_moves_it() -> None:
    """It breaks down: said on the page, and true."""
    honest = sources(1)
    wrong = [Tallied(np.full_like(part.tally, part.n), part.n) for part in honest[:3]]
    own = np.array([METRIC.mechanism.debias(p.tally, p.n, np).totals / p.n for p in honest[3:]])

    mean = known(trimmed(METRIC, [*wrong, *honest[3:]], PART, ALPHA))

    assert (mean.values > own.mean(axis=0) + 0.1).all()


def test_fakes_under_one_key_move_the_mean_of_all_and_hardly_the_trimmed_one() -> None:
    attacked = sources(2, fakes={0: 1_400})
    whole = Tallied(
        np.asarray(sum(part.tally for part in attacked)), sum(part.n for part in attacked)
    )
    truth = LAW[TARGET]
    plain = METRIC.mechanism.debias(whole.tally, whole.n, np).totals[TARGET] / whole.n

    mean = known(trimmed(METRIC, attacked, PART, ALPHA))

    assert plain - truth > 0.1
    assert abs(mean.values[TARGET] - truth) < 0.05
    assert mean.low[TARGET] < truth < mean.high[TARGET]


def test_its_interval_holds_the_truth_as_often_as_it_says_and_costs_as_much_as_is_said() -> None:
    """Law: 20,000 rounds of 20 normal sources.  A level of 0.95 falls below 0.94, or rises above
    0.96, with a chance below 1e-9; a winsorized variance without its factor is the planted bug.
    """
    draws = np.random.default_rng(3).normal(0.0, 1.0, (20, 20_000))

    mean = _trimmed_mean(draws, PART, ALPHA)

    held = ((mean.low < 0) & (mean.high > 0)).mean()
    assert 0.94 < held < 0.96
    reach = (mean.high - mean.values) * (1 - 2 * PART)
    assert (np.abs(mean.values) < reach).mean() < 0.94
    cost = mean.values.var() * 20
    assert 1 < cost < 1 / (1 - 2 * PART)


@pytest.mark.parametrize(("part", "count"), [(0.1, 10), (0.05, 20), (0.25, 8), (0.4, 20)])
def test_a_mean_of_too_few_sources_is_none(part: float, count: int) -> None:
    assert least_sources(part) <= count
    assert trimmed(METRIC, sources(4, least_sources(part)), part, ALPHA) is not None
    assert trimmed(METRIC, sources(4, least_sources(part) - 1), part, ALPHA) is None


@pytest.mark.parametrize("part", [0.0, -0.1, 0.5, 0.9, float("nan")])
def test_a_part_that_leaves_nothing_or_drops_nothing_is_refused(part: float) -> None:
    with pytest.raises(ValueError, match=rf"^must be .* leave {LEAST_KEPT} of"):
        least_sources(part)


def test_the_standard_error_of_equal_sources_is_that_of_their_spread() -> None:
    """By hand: 10 sources, one dropped at each end, winsorized to 1 … 8 with both ends twice."""
    mean = _trimmed_mean(np.arange(10.0)[:, None], PART, ALPHA)

    winsorized = np.array([1.0, 1, 2, 3, 4, 5, 6, 7, 8, 8])
    error = winsorized.std(ddof=1) * sqrt(10) / 8
    assert mean.values[0] == 4.5
    assert mean.high[0] - 4.5 == pytest.approx(2.364624 * error, rel=1e-5)  # Student, 7 degrees
