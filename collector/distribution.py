"""From the symbols of a distribution mechanism to a histogram, a CDF and quantiles.  Pure.

Source: Li et al., SIGMOD 2020: EM over the channel matrix, and EMS, which smooths with (1, 2, 1)/4
    after every round.  The stop rule is ours: the log-likelihood per report changes by less than
    a TOLERANCE of itself, or MAX_ROUNDS rounds.

EMS gives the better histogram, but its smoothing is a bias that does not shrink with n, so no
interval around it can hold.  Quantiles therefore come from EM without smoothing, and their errors
from a parametric bootstrap of that same decoder: tallies of the fitted population are drawn again
and decoded, and the root mean square of what the quantile moved by, bias included, is its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import DistributionMechanism

from .estimate import Estimate, normal_quantile

TOLERANCE: Final = 1e-7  # relative change of the log-likelihood at which a fit is done
SMOOTH_TOLERANCE: Final = 1e-8  # the same of EMS, which cannot overfit, so it may go on
MAX_ROUNDS: Final = 1000  # 0.2 s for a whole bootstrap of 128 bins
RESAMPLES: Final = 100  # tallies drawn again; leaves 7 % of noise in a standard error


def fit(mechanism: DistributionMechanism, counts: Any, *, smooth: bool) -> Any:
    """Return the shares of the input bins that explain symbol *counts*.

    Args:    counts: symbol counts of one or more tallies, shape (…, symbols), each above 0 in sum.
             smooth: EMS instead of EM.
    Returns: shares, shape (…, bins), at least 0, summing to 1.
    """
    counts = np.asarray(counts, dtype=float)
    n = counts.sum(axis=-1, keepdims=True)
    shares = np.full((*counts.shape[:-1], mechanism.bins), 1 / mechanism.bins)
    before = np.full(counts.shape[:-1], -np.inf)
    tolerance = SMOOTH_TOLERANCE if smooth else TOLERANCE
    for _ in range(MAX_ROUNDS):
        law = mechanism.spread(shares, np)
        likelihood = (counts * np.log(law)).sum(axis=-1) / n[..., 0]
        if np.all(np.abs(likelihood - before) < tolerance * np.abs(likelihood)):
            break
        before = likelihood
        shares = shares * mechanism.gather(counts / law, np) / n
        if smooth:
            shares = _smoothed(shares)
        shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def histogram(mechanism: DistributionMechanism, tally: Any, n: int) -> Any:
    """Return the shares of the input bins of *n* > 0 reports by EMS, shape (bins,).

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    return fit(mechanism, mechanism.require_counts(tally, n, np), smooth=True)


def cumulative(shares: Any) -> Any:
    """Return the part of the population up to and including each bin: shape (…, bins)."""
    return np.cumsum(shares, axis=-1)


def quantile_positions(shares: Any, levels: Sequence[float]) -> Any:
    """Return the grid of bins at which the distribution reaches *levels*, in bins, from 0.

    The share of a bin is spread evenly over half a bin either side; beyond the ends is cut off.
    """
    bins = shares.shape[-1]
    edges = np.arange(bins + 1) - 0.5
    rows = np.concatenate([np.zeros((*shares.shape[:-1], 1)), cumulative(shares)], axis=-1)
    found = [np.interp(levels, row, edges) for row in rows.reshape(-1, bins + 1)]
    return np.clip(found, 0, bins - 1).reshape(*shares.shape[:-1], len(levels))


def quantiles(
    mechanism: DistributionMechanism,
    tally: Any,
    n: int,
    levels: Sequence[float],
    alpha: float,
    generator: np.random.Generator,
) -> list[Estimate]:
    """Return the quantiles of *n* > 0 numbers in grid steps from the lowest, with intervals.

    Args:   levels: ascending, in (0, 1).  alpha: 1 - level of the intervals.
            generator: draws the bootstrap tallies; the same seed gives the same intervals.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    counts = mechanism.require_counts(tally, n, np)
    shares = fit(mechanism, counts, smooth=False)
    found = quantile_positions(shares, levels)
    again = fit(mechanism, _resampled(mechanism, shares, n, generator), smooth=False)
    moved = quantile_positions(again, levels) - found
    errors = np.sqrt((moved**2).mean(axis=0))
    step = mechanism.top / (mechanism.bins - 1)
    reach = errors * normal_quantile(alpha)
    columns = (found, errors, found - reach, found + reach)
    return [Estimate(*row) for row in zip(*((c * step).tolist() for c in columns), strict=True)]


def _resampled(
    mechanism: DistributionMechanism, shares: Any, n: int, generator: np.random.Generator
) -> Any:
    """Return tallies of n devices with exactly these *shares*, shape (RESAMPLES, symbols)."""
    matrix = mechanism.channel_matrix(np)
    edges = np.rint(cumulative(shares) * n).astype(np.int64)
    tallies = np.zeros((RESAMPLES, mechanism.symbols))
    for position, devices in enumerate(np.diff(edges, prepend=0)):
        if devices:
            law = matrix[:, position] / matrix[:, position].sum()
            tallies += generator.multinomial(devices, law, size=RESAMPLES)
    return tallies


def _smoothed(shares: Any) -> Any:
    """Return the average of each bin and its neighbours, weighted (1, 2, 1)/4; ends repeat."""
    wide = np.concatenate([shares[..., :1], shares, shares[..., -1:]], axis=-1)
    return (wide[..., :-2] + 2 * wide[..., 1:-1] + wide[..., 2:]) / 4
