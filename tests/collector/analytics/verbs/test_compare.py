"""Comparisons and segments: intervals that hold together, all of them counted."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from collector.analytics.comparing.differences import compared, pairs_of
from collector.analytics.comparing.numbers import numbers_of
from collector.analytics.rows import RAW
from collector.analytics.verb import Slice
from collector.analytics.verbs.segments import POOLED, pool_of
from collector.estimation.significance import each_of
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import PAGE, drawn, exact, is_at_most
from tests.support.enumeration.coverage import fits_rate
from tests.support.known import known

ALPHA: Final = 0.05


def platforms(*parts: tuple[str, float, int]) -> list[Slice]:
    return [exact({"platform": name}, share, n) for name, share, n in parts]


def test_a_difference_says_how_many_fakes_could_turn_it() -> None:
    """As many more as it is larger."""
    small, large = (
        ask("compare", platforms(("linux", 0.3, 4_000), ("mac", share, 4_000))).rows[0]
        for share in (0.4, 0.5)
    )

    assert 0 < (small.fakes_to_flip or 0) < (large.fakes_to_flip or 0)


def test_all_items_of_all_pairs_are_counted() -> None:
    """Three items of one pair are three comparisons, so each interval is wider than alone."""
    pages = [
        Slice(PAGE, {"platform": name}, 600, np.array(tally), (0,))
        for name, tally in (("linux", [300, 200, 100]), ("mac", [200, 200, 200]))
    ]

    every = ask("compare", pages, options={"against": "linux"})
    one = ask("compare", pages, options={"against": "linux", "item": "news"})

    assert every.facts["comparisons"] == 3
    widths = [(row.ci_high or 0) - (row.ci_low or 0) for row in (every.rows[1], *one.rows)]
    assert widths[0] == pytest.approx(widths[1] * 2.3880 / 1.9600, rel=1e-3)


def test_devices_that_reported_leave_out_which_of_them_happened_to() -> None:
    """Of 50 % at ε 1 the noise is 0.92 a report, drawing adds 0.25, and once for each epoch."""
    one = exact({}, 0.5, 4_000)
    noise, both = (
        numbers_of(one, ("true",), who, in_time=False)["true"].variance
        for who in ("reported", "drawn")
    )
    fortnight = numbers_of(exact({}, 0.5, 4_000, *range(14)), ("true",), "drawn", in_time=False)[
        "true"
    ]

    assert noise == pytest.approx(0.9207 / 4_000, rel=1e-3)
    assert both - noise == pytest.approx(0.25 / 4_000, rel=1e-3)
    assert fortnight.variance - noise == pytest.approx(14 * 0.25 / 4_000, rel=1e-3)


def test_a_longer_period_is_worth_its_reports_and_a_segment_those_of_a_day() -> None:
    """Beside the same devices at another time what they repeat cancels; beside others it stays."""
    of_days = [
        exact({"time": f"2026-0{i + 1}"}, 0.5, 4_000, *range(14 * i, 14 * i + 14)) for i in (0, 1)
    ]
    of_devices = [exact({"platform": name}, 0.5, 4_000, *range(14)) for name in ("mac", "win")]

    (time,) = ask("compare", of_days).rows
    (device,) = ask("compare", of_devices, options={"against": "mac"}).rows

    assert time.std_error == pytest.approx((2 * (0.9207 + 0.25) / 4_000) ** 0.5, rel=1e-3)
    assert device.std_error == pytest.approx((2 * (0.9207 + 3.5) / 4_000) ** 0.5, rel=1e-3)


def test_of_equal_segments_none_is_called_different_more_often_than_alpha() -> None:
    """Of 300 answers about six segments; without the correction one in four errs."""
    chance = np.random.default_rng(20261121)
    rounds, false, naive = 300, 0, 0
    for _ in range(rounds):
        parts = [drawn({"v": str(i)}, 0.2, 400 + 300 * i, chance) for i in range(6)]
        pairs = pairs_of(parts, "v", "0")
        found = compared(pairs, ("true",), "drawn", ALPHA)
        false += any(not one.difference.ci_low <= 0 <= one.difference.ci_high for one in found)
        alone = (compared([pair], ("true",), "drawn", ALPHA)[0] for pair in pairs)
        naive += any(one.p_value <= ALPHA for one in alone)

    assert is_at_most(false, rounds, ALPHA)
    assert not is_at_most(naive, rounds, ALPHA)


def regions(*parts: tuple[float, int]) -> list[Slice]:
    return [exact({"region": str(i)}, share, n) for i, (share, n) in enumerate(parts)]


def test_each_segment_has_its_number_with_intervals_that_hold_together() -> None:
    """Two segments: each of level sqrt(0.95)."""
    found = ask("segments", regions((0.2, 900), (0.4, 300)))

    assert [row.value for row in found.rows] == pytest.approx([0.2, 0.4], abs=2e-3)
    assert {(row.simultaneous, row.alpha, row.postprocess) for row in found.rows} == {
        (True, ALPHA, RAW)
    }
    (alone,) = ask("estimate", regions((0.2, 900)), alpha=each_of(ALPHA, 2)).rows
    assert (found.rows[0].ci_low, found.rows[0].ci_high) == (alone.ci_low, alone.ci_high)


def test_pooled_numbers_keep_the_raw_one_and_its_interval() -> None:
    """Nothing but the number itself is changed, and it says so."""
    parts = regions((0.20, 900), (0.30, 300), (0.22, 500), (0.18, 120))
    raw = ask("segments", parts).rows

    found = ask("segments", parts, postprocess=POOLED)

    assert [row.raw for row in found.rows] == [row.value for row in raw]
    for name in ("ci_low", "ci_high", "std_error", "n"):
        assert [getattr(row, name) for row in found.rows] == [getattr(row, name) for row in raw]
    assert {row.postprocess for row in found.rows} == {POOLED}
    assert all("drawn towards the mean" in (row.note or "") for row in found.rows)
    (fact,) = found.facts["pooling"]
    for row in found.rows:
        assert abs((row.value or 0) - fact["mean"]) <= abs((row.raw or 0) - fact["mean"])


def test_equal_numbers_of_unequal_errors_become_their_mean() -> None:
    """Where errors explain all, segments do not differ: weights are those of least variance."""
    found = known(pool_of([0.1, 0.2, 0.3], [0.04, 0.01, 0.04]))

    assert found.between == 0
    assert found.values == pytest.approx((0.2, 0.2, 0.2))


def test_sure_numbers_stay() -> None:
    """Where errors explain nothing, nothing is moved."""
    found = known(pool_of([0.1, 0.5, 0.9], [1e-9] * 3))

    assert found.values == pytest.approx((0.1, 0.5, 0.9), abs=1e-6)
    assert found.between == pytest.approx(0.16)  # the sample variance


def test_the_variance_between_segments_is_that_worked_out_by_hand() -> None:
    """Weights 1, 1 and 1/4 about their mean 4/3, two degrees of freedom."""
    found = known(pool_of([0.0, 3.0, 0.0], [1.0, 1.0, 4.0]))

    apart = 1 * (4 / 3) ** 2 + 1 * (5 / 3) ** 2 + (4 / 3) ** 2 / 4
    assert found.between == pytest.approx((apart - 2) / (2.25 - 2.0625 / 2.25))


@pytest.mark.parametrize("scatter", [0.0, 0.02, 0.2])
def test_pooling_errs_less_over_all_segments_together(scatter: float) -> None:
    """Of 300 sets of 20 segments; drawing all to the mean errs more where they truly differ."""
    chance = np.random.default_rng(20261121)
    risks: dict[str, list[float]] = {"raw": [], "pooled": [], "mean": []}
    for _ in range(300):
        truth = 0.4 + chance.normal(0, scatter, 20)
        errors = chance.uniform(0.02, 0.1, 20)
        raw = chance.normal(truth, errors)
        found = known(pool_of(raw.tolist(), (errors**2).tolist()))
        for name, values in (("raw", raw), ("pooled", found.values), ("mean", [found.mean] * 20)):
            risks[name].append(float(((np.array(values) - truth) ** 2).sum()))
    gain = np.array(risks["raw"]) - risks["pooled"]
    lead: Any = gain.mean() / (gain.std() / 300**0.5)

    assert lead > (6 if scatter < 0.2 else -2)
    if scatter == 0.2:
        assert sum(risks["mean"]) > 5 * sum(risks["pooled"])


def test_intervals_of_all_segments_hold_at_once_as_often_as_they_say() -> None:
    """Of 200 answers about eight segments of the noise alone; pointwise ones are caught."""
    chance = np.random.default_rng(20261122)
    rounds, held, pointwise = 200, 0, 0
    for _ in range(rounds):
        parts = [drawn({"region": str(i)}, 1.0, 400, chance) for i in range(8)]
        rows = [ask("segments", parts).rows, *([ask("estimate", parts).rows])]
        both = [all((r.ci_low or 0) <= 1 <= (r.ci_high or 0) for r in found) for found in rows]
        held, pointwise = held + both[0], pointwise + both[1]

    assert fits_rate(held, rounds, 1 - ALPHA)
    assert not fits_rate(pointwise, rounds, 1 - ALPHA)
