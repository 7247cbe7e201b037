"""The histogram of a distribution: the shares of bins that explain the reported symbols.  Pure.

It has no intervals: smoothing is a bias.  How much of it is chosen by the reports themselves, so it
falls as they grow.  Quantiles, which have intervals, come from ``analytics.quantiles``.

Shares are those of expectation maximization, smoothed after every round by a bell (EMS).  Every
round the reports sharpen and the bell widens, so what is left of a peak depends on the bell, on the
bins, on ε and on the reports; no fixed bell suits all.  So bells are tried from the widest on, each
half as wide as the one before, measured by the range and not by the bins; the best has the largest

    n · (log-likelihood a report) - (degrees of freedom),

and the search ends where that falls.  The degrees of freedom are by how much the fitted law of the
symbols follows the reported one: the trace of its derivative at the fit.  Derived: a round makes
s' = K (s G) of the shares s, with K the bell, A the channel, y the reports and G = Aᵀ(y / As); so

    ds = (I - K diag(G) + K diag(s) Aᵀ diag(y / (As)²) A)⁻¹ K diag(s) Aᵀ (dy / As).

Nothing is drawn: the same tally gives the same histogram.

Source: Li et al., SIGMOD 2020: EMS, with (1, 2, 1)/4 at 1,024 bins, which is ``_WIDEST`` / 15.
    Akaike, IEEE Transactions on Automatic Control 1974: the criterion; Hastie and Tibshirani,
    Generalized Additive Models, 1990: degrees of freedom of a smoother as a trace.  The derivative,
    the grid of bells and the rule to stop are ours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import DistributionMechanism

from .arrays import Floats, Ints

TOLERANCE: Final = 1e-8  # relative change of the log-likelihood at which a fit is done
MAX_ROUNDS: Final = 1000  # of each bell
_WIDEST: Final = 0.01  # standard deviation of the widest bell, of the range
_BELLS: Final = 8  # at most; the narrowest is 1 in 12,800 of the range


class Fit(NamedTuple):
    """What one bell makes of the reports."""

    shares: Floats  # of the bins, shape (bins,), summing to 1
    score: float  # n · log-likelihood a report - degrees of freedom
    width: float  # standard deviation of the bell, of the range


def histogram(mechanism: DistributionMechanism, tally: Ints, n: int) -> Floats:
    """Return the shares of the input bins of *n* > 0 reports, shape (bins,), summing to 1.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    return best_fit(mechanism, tally, n).shares


def best_fit(mechanism: DistributionMechanism, tally: Ints, n: int) -> Fit:
    """Return the fit of the bell that the reports choose.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    seen = mechanism.require_counts(tally, n, np) / n
    best = _fit(mechanism, seen, n, _WIDEST, np.full(mechanism.bins, 1 / mechanism.bins))
    for halvings in range(1, _BELLS):
        narrower = _fit(mechanism, seen, n, _WIDEST / 2**halvings, best.shares)
        if narrower.score <= best.score:
            break
        best = narrower
    return best


def _fit(
    mechanism: DistributionMechanism, seen: Floats, n: int, width: float, start: Floats
) -> Fit:
    """Return the fit of a bell of *width*, from the shares of *start* on."""
    bell, shares, before = _bell(mechanism.bins, width), start, -np.inf
    for _ in range(MAX_ROUNDS):
        law = mechanism.spread(shares, np)
        likelihood = float(seen @ np.log(law))
        if abs(likelihood - before) < TOLERANCE * abs(likelihood):
            break
        before = likelihood
        shares = bell @ (shares * mechanism.gather(seen / law, np))
        shares /= shares.sum()
    return Fit(shares, n * likelihood - _freedom(mechanism, seen, bell, shares), width)


def _freedom(mechanism: DistributionMechanism, seen: Floats, bell: Floats, shares: Floats) -> float:
    """Return by how many numbers the fitted law follows the reports: a trace, see above."""
    laws = mechanism.spread(np.eye(mechanism.bins), np)  # shape (bins, symbols)
    law = shares @ laws
    moved = bell * shares  # K S
    curved = moved @ ((laws * (seen / law**2)) @ laws.T)
    stays = np.eye(mechanism.bins) - bell * (laws @ (seen / law)) + curved
    return float(np.trace(np.linalg.solve(stays, moved @ (laws / law) @ laws.T)))


@lru_cache(maxsize=32)
def _bell(bins: int, width: float) -> Floats:
    """Return the kernel that spreads a bin by *width* of the range; what would leave is reflected.

    It is the heat kernel of a path of bins: symmetric, not negative, and each row sums to 1.
    """
    waves = np.arange(bins)
    angles = np.pi * waves / bins
    basis = np.cos(np.outer(waves + 0.5, angles)) * np.sqrt(2 / bins)
    basis[:, 0] = np.sqrt(1 / bins)
    heat = (width * bins) ** 2 / 2
    kernel: Floats = (basis * np.exp(-heat * (2 - 2 * np.cos(angles)))) @ basis.T
    return np.maximum(kernel, 0.0)
