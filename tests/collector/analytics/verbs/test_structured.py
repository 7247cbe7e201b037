"""Shares between two ends, funnels, retention, maps and devices that took part."""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry.metric import Metric
from collector.analytics.poisoning.findings import impossible, with_influence
from collector.analytics.sums import Shares
from collector.analytics.verb import Slice
from collector.analytics.verbs.vector import largest_square
from collector.core.remarks import WORDS, Code
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import exact
from tests.support.crowds.truths import vector_truth
from tests.support.device.registries import FUNNEL, VECTOR
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import (
    WAVE,
    category,
    drawn,
    metric_of,
    reported,
    slice_of,
)
from tests.support.enumeration.seeded import SeededRandomness
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
    assert {row.note for row in rows if row.value is not None} == {WORDS[Code.BOUND]}


FEW: Final = {"mechanism": '"codebook"', "parameters": "{ words = 16 }"}  # it takes less
NAMED: Final = {
    **FEW,
    "length": None,
    "values": '["speed", "size"]',
    "bound": "2",
    "min_reports": "100",
}
CROWD: Final = (([1.5, -0.5], 300), ([0.5, 0], 200), ([0, 0.25], 100))
RUNS: Final = 100


def named(**changes: str | None) -> Metric:
    return metric_of(VECTOR, **{**NAMED, **changes})


def part_of(
    metric: Metric, crowd: Any = CROWD, seed: str = "0", dimensions: Any = None, epoch: int = 0
) -> Slice:
    values = [value for value, devices in crowd for _ in range(devices)]
    tally, n = reported(metric, values, seed)
    return Slice(metric, dimensions or {}, n, tally, (epoch,))


def test_the_rows_are_the_means_of_the_coordinates_in_their_unit() -> None:
    """Seeded; 6.5 standard errors hold two means but for 2e-10."""
    metric = named(epsilon='"4"')
    truth = vector_truth(metric, {tuple(value): devices for value, devices in CROWD})

    rows = ask("vector", [part_of(metric)]).rows

    assert [(row.item, row.unit, row.n) for row in rows] == [
        ("speed", "points", 600),
        ("size", "points", 600),
    ]
    assert truth == pytest.approx({"speed": 550 / 600, "size": -125 / 600}, abs=1e-5)
    for row in rows:
        assert abs(known(row.value) - truth[row.item]) < 6.5 * known(row.std_error)
        bias = metric.mechanism.bias * 4  # type: ignore[attr-defined]  # it is of vectors
        assert known(row.value) - known(row.ci_low) == pytest.approx(
            1.959964 * known(row.std_error) + bias
        )


def test_too_few_reports_give_the_reason_and_no_ellipsoid() -> None:
    metric = named(min_reports="1000")

    findings = ask("vector", [part_of(metric)])

    assert [row.value for row in findings.rows] == [None, None]
    assert all("not enough reports" in (row.reason or "") for row in findings.rows)
    assert "ellipsoids" not in findings.facts


@pytest.mark.parametrize(
    ("degrees", "alpha", "quantile"),
    [(2, 0.05, 5.9915), (10, 0.05, 18.3070), (10, 0.01, 23.2093), (100, 0.05, 124.342)],
)
def test_without_a_stretch_the_ellipsoid_is_that_of_chi_square(
    degrees: int, alpha: float, quantile: float
) -> None:
    """The table of the chi-square law; a square is averaged over 200 parts of a normal law."""
    assert largest_square(degrees, 0.0, alpha) == pytest.approx(quantile, rel=5e-3)


def test_a_stretch_makes_the_ellipsoid_larger_and_never_so_large_as_of_all_lines() -> None:
    for stretch in (0.1, 1.0, 3.0):
        plain, wide = (largest_square(8, part, 0.05) for part in (0.0, stretch))
        assert plain < wide < (1 + stretch) * plain


def test_the_ellipsoid_holds_the_mean_in_as_many_runs_as_it_says() -> None:
    """Seeded runs; of 100, 95 % hold it but for 6 standard errors of that share, 13 points."""
    metric = metric_of(VECTOR, length="6", min_reports="100", epsilon='"4"', **FEW)
    mechanism: Any = metric.mechanism
    randomness, value = SeededRandomness(b"ellipsoid"), [0.5, -0.5, 0.25, 0, 0, 0]
    encoded, n = metric.encode(value), 100
    reports = [mechanism.randomize(encoded, randomness) for _ in range(RUNS * n)]
    held = 0
    for run in range(RUNS):
        tally = mechanism.tally(b"".join(reports[run * n : (run + 1) * n]), np)
        findings = ask("vector", [Slice(metric, {}, n, tally, (0,))])
        (ellipsoid,) = findings.facts["ellipsoids"]
        off = [(row.value or 0) - x for row, x in zip(findings.rows, value, strict=True)]
        held += sum((x / a) ** 2 for x, a in zip(off, ellipsoid["half_axes"], strict=True)) <= 1

    assert held / RUNS >= 0.95 - 6 * sqrt(0.05 * 0.95 / RUNS)


def test_segments_and_differences_are_of_one_coordinate() -> None:
    """A difference of 1.5 of a range of 4 stands out of 600 reports a side at epsilon 4."""
    metric = named(epsilon='"4"', segments='["platform"]')
    parts = [
        part_of(metric, [([place, 0.0], 600)], name, {"platform": name})
        for name, place in (("linux", 1.0), ("mac", -0.5))
    ]

    segments = ask("segments", parts, options={"item": "speed"})
    compared = ask("compare", parts, options={"item": "speed"})

    assert [(row.value or 0) > 0 for row in segments.rows] == [True, False]
    (difference,) = compared.rows[:1]
    assert difference.unit == "points"
    assert known(difference.p_value) < 1e-6
    assert difference.value == pytest.approx(1.5, abs=6.5 * (difference.std_error or 0))
    assert difference.fakes_to_flip is not None


def test_the_influence_of_a_coordinate_is_that_of_the_farthest_word() -> None:
    metric = named()
    part = part_of(metric)
    rows = with_influence(ask("vector", [part]).rows, metric)
    reach = known(metric.mechanism.share_reach(0, np))

    for row in rows:
        most = max(4 * reach.high - 2 - (row.value or 0), (row.value or 0) - 4 * reach.low + 2)
        assert row.influence == pytest.approx(0.01 * most)


def test_a_mean_beyond_its_bound_is_called_impossible_and_an_honest_one_is_not() -> None:
    metric = named(epsilon='"4"')
    honest = part_of(metric, [([2, 0], 400)])
    words = honest.tally.copy()
    words[0] *= 2
    words[2] *= 4
    fake = Slice(metric, {}, honest.n, words, (0,))

    assert not list(impossible(honest))
    (text,) = map(str, impossible(fake))
    assert "the mean of 'speed'" in text
    assert "above 2" in text


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


def days(*counts: int) -> list[Slice]:
    return [exact({"time": f"2026-03-0{i + 1}"}, 0.2, n, i) for i, n in enumerate(counts)]


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
