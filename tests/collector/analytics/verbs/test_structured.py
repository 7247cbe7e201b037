"""Funnels, retention and maps: sums over the items of a joint answer."""

from __future__ import annotations

import numpy as np
import pytest

from client_sdk.registry.metric import Metric
from client_sdk.registry.types.joint import RetentionDomain
from collector.analytics.sums import Shares
from collector.analytics.verb import Slice
from collector.core.remarks import WORDS, Code
from tests.support.crowds.asking import ask
from tests.support.device.registries import FUNNEL, LOCATION, RETENTION
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import drawn, metric_of, slice_of

FURTHEST = (2_000, 3_000, 1_500, 500)  # no step, visit, cart, paid
TRIALS = 1_000
ALPHA = 0.05


def grr(fields: dict[str, str], **changes: str | None) -> Metric:
    return metric_of(fields, mechanism='"grr"', **changes)


def test_a_funnel_tells_how_many_reached_each_step_and_came_from_the_one_before() -> None:
    """Tails of the furthest step, and ratios of tails."""
    rows = ask("funnel", [slice_of(grr(FUNNEL), FURTHEST)]).rows

    assert [(row.item, row.dimensions["measure"]) for row in rows] == [
        *((step, "reached") for step in ("visit", "cart", "paid")),
        *((step, "of the step before") for step in ("cart", "paid")),
    ]
    truth = [5 / 7, 2 / 7, 0.5 / 7, 2 / 5, 1 / 4]
    assert [row.value for row in rows] == pytest.approx(truth, abs=2e-3)
    assert all(row.simultaneous and row.ci_low < row.value < row.ci_high for row in rows)  # type: ignore[operator]


def test_a_conversion_from_a_step_that_perhaps_nobody_reached_has_a_reason() -> None:
    """A share of nothing is no number."""
    rows = ask("funnel", [slice_of(grr(FUNNEL), (4_000, 1_000, 5, 1))]).rows

    assert rows[-1].value is None
    assert "not sure" in str(rows[-1].reason)
    assert rows[2].value is not None


def test_retention_tells_who_was_active_and_who_of_the_first_period_came_back() -> None:
    """Bits of the joint answer, and their joint with the first."""
    metric = grr(RETENTION, periods='["w0", "w1", "w2"]')
    assert isinstance(metric.domain, RetentionDomain)
    held = [500, 0, 400, 0, 3_000, 500, 800, 1_800]  # 000, 001, 010, 011, 100, 101, 110, 111

    rows = ask("retention", [slice_of(metric, held)]).rows

    truth = [6_100 / 7_000, 3_000 / 7_000, 2_300 / 7_000, 2_600 / 6_100, 2_300 / 6_100]
    assert [row.value for row in rows] == pytest.approx(truth, abs=2e-3)
    assert [(row.item, row.dimensions["measure"]) for row in rows] == [
        *((period, "active") for period in ("w0", "w1", "w2")),
        *((period, "of the first period") for period in ("w1", "w2")),
    ]


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
        ratio = found.ratio(members[0], members[1], ALPHA)
        assert ratio is not None
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

    ratio = found.ratio(members[0], members[1], ALPHA)

    assert ratio is not None
    assert ratio.value == end
    assert 0 <= ratio.ci_low <= end <= ratio.ci_high <= 1
    assert ratio.ci_high - ratio.ci_low > ratio.std_error


def test_a_ratio_whose_dependence_is_unknown_takes_the_worst() -> None:
    """It is never narrower than with errors that cancel."""
    metric = metric_of(FUNNEL, mechanism='"dbitflip"')
    tally = np.array([9_000, 9_000, 9_000, 9_000, 3_000, 3_800, 4_200, 4_800])
    found = Shares.of(metric.mechanism, tally, 9_000)
    part, whole = np.array([[0, 0, 0, 1], [0, 0, 1, 1]], dtype=bool)

    ratio = found.ratio(part, whole, ALPHA)

    assert ratio is not None
    errors = np.sqrt(found.variances(np.array([part, whole], dtype=float)))
    least = (errors[0] + ratio.value * errors[1]) / (whole @ found.values)
    assert ratio.std_error == pytest.approx(least)
    rows = ask("funnel", [Slice(metric, {}, 9_000, tally, (0,))]).rows
    assert {row.note for row in rows if row.value is not None} == {WORDS[Code.BOUND]}


def test_a_map_has_a_row_a_cell_and_tells_its_corners() -> None:
    """Rows from the south, columns from the west; all intervals hold at once."""
    held = [0, 0, 0, 0, 500, 0, 3_000, 1_500]
    found = ask("map", [slice_of(grr(LOCATION, epsilon='"2"'), held)])

    assert [row.item for row in found.rows] == [f"{r},{c}" for r in range(2) for c in range(4)]
    assert found.facts["box"] == [-10, 45.5, 30, 47.5]
    assert found.facts["cells"]["1,2"] == [10, 46.5, 20, 47.5]
    noise = WORDS[Code.NOISE]
    assert [row.note for row in found.rows] == [noise] * 4 + [None, noise, None, None]
    assert {row.simultaneous for row in found.rows} == {True}


def test_a_coarser_map_sums_its_cells_and_keeps_what_is_left_at_the_edge() -> None:
    """Areas of three by three cells, of which the grid has less."""
    held = [0, 0, 0, 0, 500, 0, 3_000, 1_500]

    found = ask("map", [slice_of(grr(LOCATION), held)], options={"coarsen": 3})

    assert [row.item for row in found.rows] == ["0,0", "0,1"]
    assert [row.value for row in found.rows] == pytest.approx([0.7, 0.3], abs=2e-3)
    assert found.facts["cells"]["0,1"] == [20, 45.5, 30, 47.5]


def test_a_map_can_be_cut_to_what_is_surely_there() -> None:
    """Post-processed by name."""
    held = [0, 0, 0, 0, 500, 0, 3_000, 1_500]

    rows = ask("map", [slice_of(grr(LOCATION, epsilon='"2"'), held)], postprocess="base_cut").rows

    assert sum(row.value == 0 for row in rows) == 5
