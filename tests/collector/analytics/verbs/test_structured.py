"""Funnels, retention and maps: sums over the items of a joint answer."""

from __future__ import annotations

import numpy as np
import pytest

from client_sdk.registry.metric import Metric
from collector.analytics.sums import BOUND_NOTE, Shares
from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.device.registries import FUNNEL
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import drawn, metric_of
from tests.support.known import known

TRIALS = 1_000
ALPHA = 0.05


def grr(fields: dict[str, str], **changes: str | None) -> Metric:
    return metric_of(fields, mechanism='"grr"', **changes)


@pytest.mark.parametrize("forgets", [False, True])
def test_intervals_of_ratios_cover_and_forgetting_that_parts_depend_would_be_seen(
    forgets: bool,
) -> None:
    """The share of 50 among 60 in 100, whose errors go together."""
    metric = grr(FUNNEL, values='["visit", "paid"]', epsilon='"2"')
    held, members = (1_200, 300, 1_500), np.array([[0, 0, 1], [0, 1, 1]], dtype=bool)
    truth, hits = 1_500 / 1_800, 0

    for tally in drawn(metric.mechanism, held, TRIALS, 20261104):
        found = Shares.of(metric.mechanism, tally, sum(held))
        ratio = known(found.ratio(members[0], members[1], ALPHA))
        reach = 1.959964 * ratio.std_error
        if forgets:
            part, whole = found.variances(members.astype(float))
            value = ratio.value
            reach = 1.959964 * np.sqrt(part + whole * value**2) / (members[1] @ found.values)
            hits += abs(value - truth) <= reach
        else:
            hits += ratio.ci_low <= truth <= ratio.ci_high

    assert fits_rate(hits, TRIALS, 1 - ALPHA) == (not forgets)


@pytest.mark.parametrize(("tally", "end"), [((2_000, 0, 1_000), 1.0), ((2_000, 1_000, 0), 0.0)])
def test_a_ratio_beyond_what_it_can_be_is_not_known_for_sure(
    tally: tuple[int, int, int], end: float
) -> None:
    """Law: noise can lead all of the interval beyond 0 or 1; what is cut off is no point there."""
    metric = grr(FUNNEL, values='["visit", "paid"]', epsilon='"2"')
    found = Shares.of(metric.mechanism, np.array(tally), sum(tally))
    members = np.array([[0, 0, 1], [0, 1, 1]], dtype=bool)

    ratio = known(found.ratio(members[0], members[1], ALPHA))

    assert ratio.value == end
    assert 0 <= ratio.ci_low <= end <= ratio.ci_high <= 1
    assert ratio.ci_high - ratio.ci_low > ratio.std_error


def test_a_ratio_whose_dependence_is_unknown_takes_the_worst() -> None:
    """It is never narrower than with errors that cancel."""
    metric = metric_of(FUNNEL, mechanism='"dbitflip"')
    tally = np.array([9_000, 9_000, 9_000, 9_000, 3_000, 3_800, 4_200, 4_800])
    found = Shares.of(metric.mechanism, tally, 9_000)
    part, whole = np.array([[0, 0, 0, 1], [0, 0, 1, 1]], dtype=bool)

    ratio = known(found.ratio(part, whole, ALPHA))

    errors = np.sqrt(found.variances(np.array([part, whole], dtype=float)))
    least = (errors[0] + ratio.value * errors[1]) / (whole @ found.values)
    assert ratio.std_error == pytest.approx(least)
    rows = ask("funnel", [Slice(metric, {}, 9_000, tally, (0,))]).rows
    assert {row.note for row in rows if row.value is not None} == {BOUND_NOTE}
