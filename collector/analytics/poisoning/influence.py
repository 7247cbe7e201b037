"""What fake devices could do to an estimate, and how many it takes.  Pure.

An estimate is the mean of what its reports stand for.  Honest reports stand for the truth on
average; one that was made up can stand for anything between two limits, which follow from the
mechanism alone.  With a pure channel a report stands for (1-q)/(p-q) devices that hold an item if
it supports it, and for -q/(p-q) if not.

With a share b of fakes, of reports that stand for c each, the mean of all reports is (1-w) v + w c,
v being what the honest ones give; w = b where every report bears upon the estimate, and
k b / (1 - b + k b) where of the honest ones only one in k does.  All that follows is this equation
solved for one of its terms.  Nothing here tells whether there are fakes.

Source: Cao, Jia, Gong, *Data Poisoning Attacks to Local Differential Privacy Protocols*, USENIX
    Security 2021: gains of their attacks on pure protocols, of which this is the largest; the
    limits of all others, the numbers of fakes and the split over two sides are derived here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import floor, sqrt
from typing import Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import DistributionMechanism, KeyValueMechanism, Reach
from client_sdk.registry.domain import NumberGrid

from ...estimation.arrays import AnyMechanism, Floats, Ints
from ..quantiles import LinearCDF, linear_cdf

FAKES: Final = 0.01  # of all reports; the share that ``Row.influence`` is of


class Side(NamedTuple):
    """One estimate of a comparison: its value, what a fake report can stand for, its reports."""

    value: float
    reach: Reach
    n: int


def weight(reach: Reach, fakes: float) -> float:
    """Return how much of the estimate a share *fakes* of all reports makes up."""
    return fakes * reach.crowd / (1 - fakes + fakes * reach.crowd)


def moved(reach: Reach, value: float, fakes: float = FAKES) -> float:
    """Return the most that a share *fakes* of all reports can move an estimate of *value*."""
    return mover(reach, fakes)(value)


def mover(reach: Reach, fakes: float = FAKES) -> Callable[[float], float]:
    """Return what ``moved`` does of a value, for many values of the same *reach*."""
    low, high, part = reach.low, reach.high, weight(reach, fakes)
    return lambda value: part * max(high - value, value - low)


def fakes_to_flip(winner: Side, loser: Side) -> int | None:
    """Return how many fakes turn a difference of different reports round; None: none can.

    Fakes join either side, split at best: both estimates meet at t, where n1 (v1-t)/(t-low) +
    n2 (t-v2)/(high-t) is least.
    """
    if winner.value < loser.value:
        winner, loser = loser, winner
    low, high = winner.reach.low, loser.reach.high
    if not low < loser.value <= winner.value < high:
        return None
    first, second = winner.n / winner.reach.crowd, loser.n / loser.reach.crowd
    pulls = sqrt(first * (winner.value - low)), sqrt(second * (high - loser.value))
    meet = (pulls[0] * high + pulls[1] * low) / (pulls[0] + pulls[1])
    meet = min(max(meet, loser.value), winner.value)
    down = first * (winner.value - meet) / (meet - low)
    return floor(down + second * (meet - loser.value) / (high - meet)) + 1


def _cdf_reach(linear: LinearCDF) -> tuple[Floats, Floats]:
    """Return the least and the most that one report stands for in F, at every threshold."""
    return linear.weights.min(axis=1), linear.weights.max(axis=1)


def quantiles_moved(
    mechanism: DistributionMechanism,
    tally: Ints,
    n: int,
    levels: Sequence[float],
    fakes: float = FAKES,
) -> list[float]:
    """Return the most that a share *fakes* of reports can move each quantile, in grid steps.

    F under attack lies between two curves, made of the best report for each threshold, and so do
    its quantiles; one attack cannot follow a curve everywhere, so this is a bound.
    """
    linear = linear_cdf(mechanism, n)
    middle = linear.weights @ (mechanism.require_counts(tally, n, np) / n)
    curves = (middle, *((1 - fakes) * middle + fakes * end for end in _cdf_reach(linear)))
    bins = linear.shares.shape[0]
    places = np.linspace(-0.5, bins - 0.5, middle.size)
    crossings = []
    for curve in curves:
        inner = np.clip(curve, 0, 1)
        inner[0], inner[-1] = 0, 1  # nobody is outside of the range, whatever the fakes say
        crossings.append(np.interp(levels, np.sort(inner), places).clip(0, bins - 1))
    own, *others = crossings
    most = np.max([np.abs(other - own) for other in others], axis=0)
    return [float(step) * mechanism.top / (bins - 1) for step in most]


@lru_cache(maxsize=256)  # metrics; it takes a report of every symbol
def mean_reach(mechanism: AnyMechanism, domain: NumberGrid) -> Reach | None:
    """Return the reach of the mean of numbers, in their unit; None if none is known."""
    reach = mechanism.position_reach(np)
    return None if reach is None else reach.in_unit(float(domain.step), float(domain.minimum))


def key_mean_reach(mechanism: KeyValueMechanism, domain: NumberGrid, share: float) -> Reach | None:
    """Return the reach of the mean of a key that a *share* of the devices holds, in its unit.

    Made-up reports of the key at one sign: each weighs as much as the holders it stands for, and
    stands for a number far beyond the range.  None where nobody holds the key.
    """
    if share <= 0:
        return None
    p, q = float(mechanism.holding.p), float(mechanism.holding.q)
    weight = (1 - q) / (p - q)
    beyond = 1 / (float(mechanism.gain) * weight)  # of 1, half the range
    extent, low = float(domain.maximum - domain.minimum), float(domain.minimum)
    return Reach((1 - beyond) / 2, (1 + beyond) / 2, weight / share).in_unit(extent, low)
