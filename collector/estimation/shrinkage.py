"""Likelier shares of items that were picked as the largest, or the smallest, of many.  Pure.

An unbiased share is as often too high as too low.  The largest of many are not: what stands first
got there by its share or by its noise, and with few reports mostly by noise (the winner's curse).
All items together tell how shares are spread, and under that spread each estimate has a likeliest
size: the mean of the shares that may have given it.  It is nearer the truth over the items that are
shown, and biased for any single one, so it stands beside the unbiased share and never instead.  It
has no interval of its own: that of the unbiased share, if it holds for all items at once, holds for
the share of every item whatever was picked, and the shrunken share is kept within it.

Source: Efron, *Tweedie's Formula and Selection Bias*, JASA 2011: selection does not bias a
    posterior mean.  Jiang, Zhang, Annals of Statistics 2009: that of the nonparametric maximum
    likelihood estimate of the prior (Kiefer, Wolfowitz, Annals of Mathematical Statistics 1956),
    found by EM on a grid from even weights.  Derived: the grid begins at 0, as shares do; estimates
    that are alike to an eighth of an error are fitted as one; those of FAR errors and more are left
    out, since noise cannot have made a tenth of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from .arrays import Floats
from .estimate import Estimate

_OVERSTATED: Final = 0.1  # of a share; less is no reason to show two numbers
FAR: Final = 30.0  # standard errors; ten times _OVERSTATED would be a noise of 3 of them
_PER_ERROR: Final = 4  # grid points a standard error
_MOST_POINTS: Final = 512  # of the grid, and the cost of a round
_ALIKE: Final = 8  # groups of estimates a standard error
_ROUNDS: Final = 100  # of EM: more would fit the noise of single items


def shrunken(estimates: Sequence[Estimate], picked: Sequence[int]) -> list[float]:
    """Return a likelier share for each of *picked*, within its interval and not below 0.

    Args: estimates: of all items that they were picked from, unbiased.
    """
    values = np.array([item.value for item in estimates])
    errors = np.array([item.std_error for item in estimates])
    near = (errors > 0) & (values < FAR * errors)
    likely = dict(zip(picked, values[list(picked)].tolist(), strict=True))
    places = [place for place in picked if near[place]]
    if places:
        points, weights = _prior(values[near], errors[near])
        chances = _chances(values[places], errors[places], points) * weights
        means = chances @ points / chances.sum(axis=1)
        for place, mean in zip(places, means.tolist(), strict=True):
            low, high = estimates[place].ci_low, estimates[place].ci_high
            likely[place] = max(min(max(mean, low), high), 0.0)
    return [likely[place] for place in picked]


def is_misleading(estimate: Estimate, likely: float, largest: bool = True) -> bool:
    """Return whether noise has put *estimate* first: by half an error, and OVERSTATED of itself.

    Args: largest: of all; otherwise it was picked as one of the smallest.
    """
    by_noise = estimate.value - likely if largest else likely - estimate.value
    return by_noise > estimate.std_error / 2 and by_noise > _OVERSTATED * abs(estimate.value)


def _prior(values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return the points of a grid of shares, and how likely an item is to have each of them."""
    usual = float(np.median(errors))
    keys, group, sizes = np.unique(
        np.rint(values * (_ALIKE / usual)), return_inverse=True, return_counts=True
    )
    spread = np.sqrt(np.bincount(group, errors**2) / sizes)
    top = max(float(values.max()), 0.0) + 2 * usual
    count = min(int(top / usual * _PER_ERROR) + 2, _MOST_POINTS)
    points = np.linspace(0.0, top, count)
    chances = _chances(keys * (usual / _ALIKE), spread, points)
    weights = np.full(count, 1 / count)
    for _ in range(_ROUNDS):
        weights *= chances.T @ (sizes / (chances @ weights)) / values.size
    return points, weights


def _chances(values: Floats, errors: Floats, points: Floats) -> Floats:
    """Return how likely each value is if its share is each of *points*, up to a factor a row."""
    distances: Floats = ((values[:, None] - points) / errors[:, None]) ** 2 / 2
    nearest: Floats = distances.min(axis=1, keepdims=True)
    return np.exp(nearest - distances)
