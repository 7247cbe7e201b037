"""From the symbols of a distribution mechanism to a histogram.  Pure.

Source: Li et al., SIGMOD 2020: EMS, which is EM over the channel matrix that smooths with
    (1, 2, 1)/4 after every round.  The stop rule is ours: the log-likelihood per report changes by
    less than TOLERANCE of itself, or MAX_ROUNDS rounds.

The smoothing is a bias that does not shrink with n, so no interval around this histogram can hold;
quantiles, which have intervals, come from ``analytics.quantiles``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import DistributionMechanism

TOLERANCE: Final = 1e-8  # relative change of the log-likelihood at which a fit is done
MAX_ROUNDS: Final = 1000


def histogram(mechanism: DistributionMechanism, tally: Any, n: int) -> Any:
    """Return the shares of the input bins of *n* > 0 reports, shape (bins,), summing to 1.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    seen = mechanism.require_counts(tally, n, np) / n
    shares = np.full(mechanism.bins, 1 / mechanism.bins)
    before = -np.inf
    for _ in range(MAX_ROUNDS):
        law = mechanism.spread(shares, np)
        likelihood = float(seen @ np.log(law))
        if abs(likelihood - before) < TOLERANCE * abs(likelihood):
            break
        before = likelihood
        shares = _smoothed(shares * mechanism.gather(seen / law, np))
        shares /= shares.sum()
    return shares


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


def _smoothed(shares: Any) -> Any:
    """Return the average of each bin and its neighbours, weighted (1, 2, 1)/4; ends repeat."""
    wide = np.concatenate([shares[:1], shares, shares[-1:]])
    return (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
