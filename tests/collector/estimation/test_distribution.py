"""Decoding symbols: a histogram that explains them, and where it reaches a level."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from benchmarks.lib.beside import as_published
from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from collector.estimation.estimate import quantile_positions
from collector.estimation.histogram import TOLERANCE, best_fit, histogram

LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
DEVICES: Final = 20_000
MECHANISM: Final = SquareWave("2", 32)


def lopsided() -> Any:
    """Return a smooth lopsided distribution over the bins of MECHANISM."""
    x = np.arange(MECHANISM.bins)
    shares = np.exp(-0.5 * ((x - 11) / 4.5) ** 2) + 0.3 * np.exp(-0.5 * ((x - 22) / 3) ** 2)
    return shares / shares.sum()


def wasserstein(a: Any, b: Any) -> float:
    """Return the distance of two distributions over bins, in bins."""
    return float(np.abs(np.cumsum(a) - np.cumsum(b)).sum())


def test_symbols_that_follow_a_law_exactly_are_decoded_to_its_distribution() -> None:
    """The channel is undone, up to the smoothing, of which a million reports need hardly any."""
    truth = lopsided()
    tally = np.rint(MECHANISM.spread(truth, np) * 1e6).astype(np.int64)

    found = histogram(MECHANISM, tally, int(tally.sum()))

    assert found.sum() == pytest.approx(1)
    assert wasserstein(found, truth) < 0.1


def test_a_histogram_comes_closer_to_the_truth_than_the_symbols_do() -> None:
    """Decoding is worth its while: three times closer."""
    truth = lopsided()
    law = MECHANISM.spread(truth, np)
    tally = np.random.default_rng(4).multinomial(DEVICES, law / law.sum())
    symbols = tally[MECHANISM.reach : MECHANISM.reach + MECHANISM.bins] / DEVICES

    found = histogram(MECHANISM, tally, DEVICES)

    assert wasserstein(found, truth) < wasserstein(symbols / symbols.sum(), truth) / 3


def test_quantiles_of_evenly_spread_bins_lie_at_their_levels() -> None:
    """Bins are as wide as their spacing, and the range begins half a bin before the first."""
    positions = quantile_positions(np.full(10, 0.1), LEVELS)

    assert positions == pytest.approx([0.5, 2, 4.5, 7, 8.5])


def test_quantiles_stay_within_the_range() -> None:
    """Half a bin beyond an end is no value that a device could hold."""
    everybody_lowest = np.array([1.0, 0, 0, 0])

    assert quantile_positions(everybody_lowest, LEVELS).min() == 0


def test_a_tally_of_another_number_of_reports_is_refused() -> None:
    """A tally that cannot be is an error, not a histogram."""
    with pytest.raises(InvalidTallyError, match="add up to n=5"):
        histogram(MECHANISM, np.ones(MECHANISM.symbols, dtype=np.int64), 5)


def delays(bins: int) -> Any:
    """Return a steep rise and a long tail, over so many bins."""
    x = (np.arange(bins) + 0.5) / bins
    shares = np.where(x < 0.2, np.exp(-0.5 * ((x - 0.2) / 0.03) ** 2), np.exp((0.2 - x) / 0.15))
    return shares / shares.sum()


def drawn(mechanism: SquareWave, truth: Any, devices: int) -> Any:
    """Return the tally of *devices* of a population, always the same one."""
    law = mechanism.spread(truth, np)
    return np.random.default_rng(11).multinomial(devices, law / law.sum())


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_many_reports_are_hardly_smoothed(epsilon: str) -> None:
    """One bell for all left a steep rise twice as far from the truth, however many reports."""
    mechanism, truth = SquareWave(epsilon, 128), delays(128)
    tally = drawn(mechanism, truth, 1_000_000)

    found = wasserstein(histogram(mechanism, tally, 1_000_000), truth)

    assert found < wasserstein(as_published(mechanism, tally, 1_000_000), truth) / 2


def test_few_reports_are_smoothed_more_than_many() -> None:
    """The bell is chosen by the reports; it gets narrower as they tell more."""
    mechanism, truth = SquareWave("1", 128), delays(128)

    widths = [
        best_fit(mechanism, drawn(mechanism, truth, devices), devices).width
        for devices in (1_000, 100_000, 10_000_000)
    ]

    assert widths[0] > widths[1] > widths[2]


def test_the_bell_is_measured_by_the_range_and_not_by_the_bins() -> None:
    """The same population in 64, 128 or 256 bins comes out alike."""
    distances = [
        wasserstein(
            histogram(mechanism, drawn(mechanism, delays(bins), 100_000), 100_000), delays(bins)
        )
        / bins
        for bins in (64, 128, 256)
        for mechanism in [SquareWave("1", bins, bins=bins)]
    ]

    assert max(distances) < 2 * min(distances)


def test_the_same_tally_gives_the_same_histogram_bit_by_bit() -> None:
    """A release can be made again: nothing is drawn, and the reports' order does not matter."""
    tally = drawn(MECHANISM, lopsided(), DEVICES)

    first, second = (histogram(MECHANISM, tally.copy(), DEVICES) for _ in range(2))

    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("bins", [2, 3, 8, 128])
def test_the_score_is_the_likelihood_less_degrees_of_freedom_from_one_to_the_bins(
    bins: int,
) -> None:
    """A law that sums to 1 follows one number at least, the number of reports."""
    mechanism, devices = SquareWave("2", bins), 5_000
    tally = drawn(mechanism, delays(bins), devices)

    fit = best_fit(mechanism, tally, devices)
    likelihood = float(tally @ np.log(mechanism.spread(fit.shares, np)))
    slack = 1e-3 + 2 * TOLERANCE * abs(likelihood)  # of a fit that is done to the tolerance

    assert fit.shares.min() >= 0
    assert 1 - slack < likelihood - fit.score < bins + slack


def test_everybody_in_one_bin_is_a_peak_in_that_bin() -> None:
    """No smoothing keeps a single value from being seen where devices are many."""
    truth = np.zeros(128)
    truth[40] = 1
    mechanism = SquareWave("4", 128)

    found = histogram(mechanism, drawn(mechanism, truth, 1_000_000), 1_000_000)

    assert found.argmax() == 40
    assert wasserstein(found, truth) < 0.5
