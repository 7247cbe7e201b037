"""Mean, sum and variance of numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from client_sdk.mechanisms.numbers.square_wave import SquareWave
from client_sdk.registry.types.numbers import NumberDomain
from collector.analytics.verb import Slice
from collector.analytics.verbs.variance import moment_weights, population_variance
from collector.core.errors import QueryError
from collector.estimation.estimate import Estimate
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import is_at_most
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import WAVE, drawn, metric_of, slice_of

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
