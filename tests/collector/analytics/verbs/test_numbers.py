"""Numbers: their mean, sum and variance, quantiles, cumulative distributions and histograms."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from client_sdk.mechanisms.numbers.square_wave import SquareWave
from client_sdk.registry.types.numbers import NumberDomain
from collector.analytics.distribution import Curve
from collector.analytics.rows import LOWER, UPPER
from collector.analytics.verb import Slice
from collector.analytics.verbs.quantile import name_of
from collector.analytics.verbs.variance import moment_weights, population_variance
from collector.core.errors import QueryError
from collector.estimation.estimate import Estimate
from tests.support.crowds.asking import ask, holds
from tests.support.crowds.boolean_slices import is_at_most
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import ROUGH, WAVE, drawn, metric_of, slice_of

ALPHA = 0.05
TRIALS = 400
BINS = 48
PEAKS = np.array([200 if 10 <= i < 20 else 50 if 30 <= i < 40 else 0 for i in range(BINS)])
TWO_PEAKS = np.array([9_000 if i == 8 else 6_000 if i == 30 else 0 for i in range(BINS)])
UNEVEN = np.array([40 + 3 * i for i in range(BINS)])


def variance_of(held: Any) -> float:
    """Return the true variance of devices in bins."""
    places = np.arange(len(held))
    return float(np.average((places - np.average(places, weights=held)) ** 2, weights=held))


def test_the_sum_is_the_mean_times_the_reports_with_its_interval() -> None:
    """The number of reports is exact, so nothing is added to the error."""
    one = slice_of(metric_of(WAVE), UNEVEN.tolist())
    (mean,), (total,) = ask("mean", [one]).rows, ask("sum", [one]).rows

    for field in ("value", "ci_low", "ci_high", "std_error"):
        assert getattr(total, field) == pytest.approx(one.n * getattr(mean, field))
    assert (total.quality, total.unit) == (mean.quality, "minutes")
    assert "devices that reported" in str(total.note)


def test_the_sum_of_several_epochs_is_one_of_reports() -> None:
    """A device may have sent one in each."""
    metric = metric_of(WAVE)
    one = slice_of(metric, UNEVEN.tolist())

    (row,) = ask("sum", [Slice(metric, {}, one.n, one.tally, (3, 4, 5))]).rows

    assert "3 epochs" in str(row.note)


@pytest.mark.parametrize("held", [PEAKS, UNEVEN], ids=["peaks", "slope"])
def test_the_variance_is_that_of_the_population_without_its_noise(held: Any) -> None:
    """The expected tally gives the true variance, up to its rounding and the variance of a mean."""
    one = slice_of(metric_of(WAVE), (held * 100).tolist())

    (row,) = ask("variance", [one]).rows

    assert row.unit == "minutes²"
    assert row.value == pytest.approx(variance_of(held), rel=2e-3)
    assert "standard deviation" in str(row.note)


@cache
def variances() -> tuple[Estimate, ...]:
    """Return what is found of two peaks inside the range, drawn TRIALS times."""
    metric = metric_of(WAVE)
    domain, mechanism = metric.domain, metric.mechanism
    assert isinstance(domain, NumberDomain)
    assert isinstance(mechanism, SquareWave)
    return tuple(
        population_variance(mechanism, domain, tally, TWO_PEAKS.sum().item(), ALPHA)
        for tally in drawn(mechanism, TWO_PEAKS.tolist(), TRIALS, 20261102)
    )


@pytest.mark.parametrize("narrower", [1.0, 0.6])
def test_intervals_of_variances_cover_at_their_level_and_narrower_ones_are_seen(
    narrower: float,
) -> None:
    """The upper half-width on either side, as the lower one is widened for rounding."""
    truth = variance_of(TWO_PEAKS)

    hits = sum(abs(v.value - truth) <= narrower * (v.ci_high - v.value) for v in variances())

    assert fits_rate(hits, TRIALS, 1 - ALPHA) == (narrower == 1)


ALIKE = np.array([2_000 if i == 24 else 0 for i in range(BINS)])
AT_THE_ENDS = np.array([1_000 if i in (0, BINS - 1) else 0 for i in range(BINS)])


@pytest.mark.parametrize("held", [ALIKE, AT_THE_ENDS], ids=["alike", "at the ends"])
def test_a_variance_is_one_that_numbers_can_have_and_within_its_interval(held: Any) -> None:
    """Unbiased ones are often below 0, or above the most; they stay beside, as raw."""
    metric, truth, most = metric_of(WAVE), variance_of(held), (BINS - 1) ** 2 / 4
    mechanism: Any = metric.mechanism
    rows = [
        ask("variance", [Slice(metric, {}, int(held.sum()), tally, (0,))]).rows[0]
        for tally in drawn(mechanism, held.tolist(), TRIALS, 20261122)
    ]

    missed, moved = 0, 0
    for row in rows:
        value, low, high = (number or 0.0 for number in (row.value, row.ci_low, row.ci_high))
        assert 0 <= low <= value <= high <= most * (1 + 1e-12)
        missed += not low <= truth <= high * (1 + 1e-12)
        moved += row.raw is not None
        assert (row.postprocess == "possible") == (row.raw is not None)
    assert is_at_most(missed, TRIALS, ALPHA)
    assert moved > TRIALS / 4


@pytest.mark.parametrize(("bins", "epsilon"), [(2, "1"), (7, "0.5"), (48, "1"), (128, "4")])
def test_the_weights_of_moments_are_met_by_every_bin_exactly(bins: int, epsilon: str) -> None:
    """A bin i is met with i by one, and with i^2 by the other."""
    mechanism = SquareWave(epsilon, bins)

    met = [mechanism.gather(weights, np) for weights in moment_weights(mechanism)]

    places = np.arange(bins)
    assert met[0] == pytest.approx(places, abs=1e-6 * bins)
    assert met[1] == pytest.approx(places**2, abs=1e-6 * bins**2)


def test_reports_that_meet_no_parabola_are_refused() -> None:
    """Rather than a number that is something else."""

    class Crooked(SquareWave):
        def gather(self, weights: Any, np: Any) -> Any:
            return super().gather(weights, np) * (1 + np.arange(self.bins) % 2)

    with pytest.raises(QueryError, match="does not tell a variance"):
        moment_weights(Crooked("1", 48))


def test_the_registry_of_these_tests_has_a_bin_a_number() -> None:
    """So the truth of a bin is that of its number."""
    mechanism = metric_of(WAVE).mechanism
    assert isinstance(mechanism, SquareWave)
    assert mechanism.bins == mechanism.domain_size == BINS


PLACES = np.arange(BINS)
BELL = np.rint(20_000 * np.exp(-0.5 * ((PLACES - 17) / 5) ** 2) / 12.5).astype(int)
CURVES = ("quantile", "cdf", "histogram")


def curve_slice(dimensions: dict[str, str] | None = None) -> Slice:
    return slice_of(metric_of(WAVE), BELL.tolist(), dimensions)


@pytest.mark.parametrize(("place", "end"), [(0, LOWER), (BINS - 1, UPPER)])
@pytest.mark.parametrize("verb", ["quantile", "estimate"])
def test_a_quantile_whose_interval_is_an_end_of_the_range_says_so(
    verb: str, place: int, end: str
) -> None:
    """Law: an interval without length is of a range that ends there, and no certainty."""
    held = [0] * BINS
    held[place] = 200_000

    options = {"levels": [0.1, 0.5, 0.9]} if verb == "quantile" else {}
    rows = ask(verb, [slice_of(metric_of(ROUGH, shape='"grid"'), held)], options=options).rows
    points = [row for row in rows if row.ci_low == row.ci_high]

    assert points
    assert {row.end for row in points} == {end}
    assert all(row.end is None for row in rows if row.ci_low != row.ci_high)


@pytest.mark.parametrize(("level", "name"), [(0.5, "p50"), (0.07, "p7"), (0.9999, "p99.99")])
def test_a_quantile_is_named_by_its_level_in_percent(level: float, name: str) -> None:
    """Without the noise of binary fractions."""
    assert name_of(level) == name


def test_a_cdf_without_points_runs_from_one_end_to_the_other() -> None:
    """Rising numbers that the grid has."""
    found = ask("cdf", [curve_slice()]).rows

    points = [float(row.item) for row in found]
    assert (points[0], points[-1], len(points)) == (0, 47, 41)
    assert points == sorted(points)


def test_an_isotonic_cdf_never_falls_and_keeps_the_raw_numbers() -> None:
    """Post-processing is named; the interval stays that of the raw number."""
    few = drawn(metric_of(WAVE).mechanism, (BELL // 20).tolist(), 1, 3)[0]
    one = Slice(metric_of(WAVE), {}, int(few.sum()), few, (0,))

    raw = [row.value for row in ask("cdf", [one]).rows]
    found = ask("cdf", [one], postprocess="isotonic").rows

    values = [row.value or 0.0 for row in found]
    assert raw != values
    assert values == sorted(values)
    assert [row.raw for row in found] == raw


def test_the_buckets_of_a_histogram_adjoin_and_their_shares_add_up_to_one() -> None:
    """They are differences of one curve."""
    found = ask("histogram", [curve_slice()], options={"buckets": 8})

    edges = found.facts["edges"]
    assert [row.item for row in found.rows] == [f"{a:.12g}–{b:.12g}" for a, b in pairwise(edges)]
    assert (edges[0], edges[-1], len(edges)) == (0, 47, 9)
    assert sum(row.value or 0 for row in found.rows) == pytest.approx(1, abs=1e-9)


def test_ranges_that_adjoin_add_up_exactly() -> None:
    """So do nested ones: all are read off one curve."""
    one = curve_slice()
    curve = Curve.of(one.metric, one.tally, one.n)
    a, b, c = (Fraction(x) for x in (5, 11, 30))

    parts = curve.between([(a, b), (b, c), (a, c)], ALPHA)

    assert parts[0].value + parts[1].value == pytest.approx(parts[2].value, abs=1e-12)


RANGES: list[tuple[Fraction | None, Fraction]] = [
    (None, Fraction(16)),
    (Fraction(10), Fraction(20)),
    (Fraction(20), Fraction(40)),
]


@cache
def drawn_ranges() -> Any:
    """Return values and limits of RANGES, drawn TRIALS times: shape (TRIALS, ranges, 3)."""
    metric = metric_of(WAVE)
    curves = (
        Curve.of(metric, tally, int(tally.sum()))
        for tally in drawn(metric.mechanism, BELL.tolist(), TRIALS, 20261103)
    )
    return np.array(
        [
            [(found.value, found.ci_low, found.ci_high) for found in curve.between(RANGES, ALPHA)]
            for curve in curves
        ]
    )


def hits(narrower: float) -> list[int]:
    """Return how often the interval of each range holds the truth, *narrower* by a factor."""
    upto = np.cumsum(BELL) / BELL.sum()
    truth = np.array([upto[int(b)] - (0 if a is None else upto[int(a)]) for a, b in RANGES])
    values, low, high = np.moveaxis(drawn_ranges(), 2, 0)
    reach = narrower * np.maximum(high - values, values - low)
    return [int(found) for found in (np.abs(values - truth) <= reach).sum(axis=0)]


def test_intervals_of_ranges_cover_at_their_level() -> None:
    """At 95 % or a little above, as they allow for a bias that this bell may not have."""
    enough = TRIALS * (1 - ALPHA)

    assert all(found >= enough or fits_rate(found, TRIALS, 1 - ALPHA) for found in hits(1))


def test_intervals_of_half_the_width_would_be_seen() -> None:
    """Each of them."""
    assert not any(fits_rate(found, TRIALS, 1 - ALPHA) for found in hits(0.5))


@pytest.mark.parametrize("verb", CURVES)
def test_intervals_that_hold_at_once_are_wider_and_say_so(verb: str) -> None:
    """Over all rows of all slices."""
    slices = [curve_slice({"x": "1"}), curve_slice({"x": "2"})]
    alone = ask(verb, slices).rows
    at_once = ask(verb, slices, options={"simultaneous": True}).rows

    for one, all_of in zip(alone, at_once, strict=True):
        assert (one.simultaneous, all_of.simultaneous) == (False, True)
        assert all_of.ci_high - all_of.ci_low >= one.ci_high - one.ci_low  # type: ignore[operator]
        assert all_of.alpha == ALPHA


@pytest.mark.parametrize("verb", [*CURVES, "range", "estimate"])
def test_a_row_says_that_it_assumes_a_smooth_population_if_it_does(verb: str) -> None:
    """The mean assumes nothing."""
    for fields, said in ((WAVE, True), (ROUGH, False)):
        rows = ask(verb, [slice_of(metric_of(fields), BELL.tolist())]).rows
        notes = ["smooth" in (row.note or "") for row in rows if row.item != "mean"]

        assert notes
        assert set(notes) == {said}


def test_quantiles_of_whole_numbers_are_whole_and_so_are_their_limits() -> None:
    """What is on a grid of one unit is answered on it."""
    one = slice_of(metric_of(ROUGH, shape='"grid"'), BELL.tolist())

    for row in ask("quantile", [one]).rows:
        assert all(
            float(number or 0).is_integer() for number in (row.value, row.ci_low, row.ci_high)
        )


@pytest.mark.parametrize("shape", ["any", "grid", "smooth"])
def test_a_number_lies_within_its_interval_whatever_is_assumed(shape: str) -> None:
    """Of few reports and of spikes, too."""
    spike = [0] * 20 + [400] + [5] * 27
    metric = metric_of(ROUGH, shape=f'"{shape}"', min_reports="100")
    for tally in drawn(metric.mechanism, spike, 10, 7):
        one = Slice(metric, {}, int(tally.sum()), tally, (0,))
        for verb in (*CURVES, "range"):
            for row in ask(verb, [one]).rows:
                assert row.value is not None
                assert holds(row, row.value)


def test_the_range_of_a_number_counts_that_number_in() -> None:
    """An atom is within its interval whether its ends are counted with it or apart."""
    held = [200] * BINS
    held[20] += 9_000
    share = held[20] / sum(held)
    one = slice_of(metric_of(ROUGH, shape='"grid"', epsilon='"4"'), held)

    (row,) = ask("range", [one], options={"low": 20, "high": 20}).rows

    assert holds(row, share)
    assert not holds(row, 0.3)
