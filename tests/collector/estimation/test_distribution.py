"""Decoding symbols: a histogram that explains them, and where it reaches a level."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from collector.estimation.estimate import histogram, quantile_positions

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
    """The channel is undone, up to the smoothing, which is a bias."""
    truth = lopsided()
    tally = np.rint(MECHANISM.spread(truth, np) * 1e6).astype(np.int64)

    found = histogram(MECHANISM, tally, int(tally.sum()))

    assert found.sum() == pytest.approx(1)
    assert wasserstein(found, truth) < 0.4


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
