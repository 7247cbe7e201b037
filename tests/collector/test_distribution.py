"""Decoding symbols: a histogram that explains them, and quantiles whose intervals cover."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from client_sdk.errors import InvalidTallyError
from client_sdk.mechanisms.square_wave import SquareWave
from collector.distribution import (
    cumulative,
    fit,
    histogram,
    quantile_positions,
    quantiles,
)

LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
ALPHA: Final = 0.05
DEVICES: Final = 20_000
MECHANISM: Final = SquareWave("2", 32)


def bell() -> Any:
    """Return a smooth lopsided distribution over the bins of MECHANISM."""
    x = np.arange(MECHANISM.bins)
    shares = np.exp(-0.5 * ((x - 11) / 4.5) ** 2) + 0.3 * np.exp(-0.5 * ((x - 22) / 3) ** 2)
    return shares / shares.sum()


def tally_of(people: Any, generator: np.random.Generator) -> Any:
    """Return the tally of honest reports of *people*, how many are in each bin."""
    matrix = MECHANISM.channel_matrix(np)
    return sum(
        generator.multinomial(held, matrix[:, i] / matrix[:, i].sum())
        for i, held in enumerate(people)
    )


def wasserstein(a: Any, b: Any) -> float:
    """Return the distance of two distributions over bins, in bins."""
    return float(np.abs(cumulative(a) - cumulative(b)).sum())


@pytest.mark.parametrize("smooth", [False, True])
def test_symbols_that_follow_a_law_exactly_are_decoded_to_its_distribution(smooth: bool) -> None:
    truth = bell()

    found = fit(MECHANISM, MECHANISM.spread(truth, np) * 1e6, smooth=smooth)

    assert found.sum() == pytest.approx(1)
    assert wasserstein(found, truth) < (0.4 if smooth else 0.15)  # smoothing is a bias, in bins


def test_several_tallies_are_decoded_as_each_alone() -> None:
    generator = np.random.default_rng(3)
    tallies = np.array([tally_of(np.rint(bell() * DEVICES).astype(int), generator)] * 3)

    together = fit(MECHANISM, tallies, smooth=True)

    for row in together:
        assert row == pytest.approx(fit(MECHANISM, tallies[0], smooth=True))


def test_a_histogram_comes_closer_to_the_truth_than_the_symbols_do() -> None:
    truth = bell()
    tally = tally_of(np.rint(truth * DEVICES).astype(int), np.random.default_rng(4))
    symbols = tally[MECHANISM.reach : MECHANISM.reach + MECHANISM.bins] / DEVICES

    found = histogram(MECHANISM, tally, int(tally.sum()))

    assert wasserstein(found, truth) < wasserstein(symbols / symbols.sum(), truth) / 3


def test_quantiles_of_evenly_spread_bins_lie_at_their_levels() -> None:
    positions = quantile_positions(np.full(10, 0.1), LEVELS)

    assert positions == pytest.approx([0.5, 2, 4.5, 7, 8.5])


def test_quantiles_stay_within_the_range() -> None:
    everybody_lowest = np.array([1.0, 0, 0, 0])

    assert quantile_positions(everybody_lowest, LEVELS).min() == 0


def test_the_same_seed_gives_the_same_intervals() -> None:
    tally = tally_of(np.rint(bell() * 2000).astype(int), np.random.default_rng(5))
    n = int(tally.sum())

    first, second = (
        quantiles(MECHANISM, tally, n, LEVELS, ALPHA, np.random.default_rng(1)) for _ in range(2)
    )

    assert first == second
    assert all(q.ci_low < q.value < q.ci_high for q in first)


def test_a_tally_of_another_number_of_reports_is_refused() -> None:
    with pytest.raises(InvalidTallyError, match="add up to n=5"):
        histogram(MECHANISM, np.ones(MECHANISM.symbols, dtype=np.int64), 5)


def coverage(bend: float) -> float:
    """Return how often intervals, their width times *bend*, hold the true quantile."""
    generator = np.random.default_rng(20260501)
    people = np.rint(bell() * DEVICES).astype(int)
    truth = quantile_positions(people / people.sum(), LEVELS)
    hits = []
    for _ in range(60):
        tally = tally_of(people, generator)
        found = quantiles(MECHANISM, tally, int(people.sum()), LEVELS, ALPHA, generator)
        reach = [bend * (q.ci_high - q.value) for q in found]
        hits += [abs(q.value - t) <= r for q, t, r in zip(found, truth, reach, strict=True)]
    return float(np.mean(hits))


def test_intervals_of_quantiles_cover_at_about_the_stated_rate() -> None:
    assert 0.92 <= coverage(1.0) <= 1


def test_intervals_of_half_the_width_would_not_cover() -> None:
    assert coverage(0.5) < 0.9
