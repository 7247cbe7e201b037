"""Exact limits of a count where few reports are expected to lie: sums of two binomial laws.  Pure.

Of c devices that hold an item and n - c that do not, Binomial(c, p) + Binomial(n - c, q) reports
support it.  Where the variance of that sum is small, it is no normal law, skewed or not, and its
chances are summed up.  The law rises with c, so limits are found by halving.

Source: Clopper, Pearson, Biometrika 1934: the limits at which either tail has half of alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Final

import numpy as np

from client_sdk.mechanisms import Channel

from .arrays import Bools, Counts, Floats, Ints

FEW: Final = 10  # expected lies of either kind; more have a law that is nearly normal
MOST: Final = 2.0 * FEW  # supports squared: the variance up to which laws are summed up
_WINDOW: Final = 10 + round(8 * sqrt(MOST))  # supports either side: 1e-14 is missing


def are_few(channel: Channel, n: Counts) -> Bools | bool:
    """Return whether few of *n* reports would lie, did no device hold the item, or did all."""
    return n * min(float(channel.q), 1 - float(channel.p)) < FEW


def with_exact(
    channel: Channel, totals: Floats, n: Counts, alpha: float, *, limits: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return *limits* of counts, those exact at which supports scatter little.

    Args: totals: unbiased estimates of the counts, any shape.  n: reports; may be an array.
    """
    p, q = float(channel.p), float(channel.q)
    totals, n = np.broadcast_arrays(totals, n)
    held = [limit.clip(0, n) for limit in limits]
    scatter = [each * p * (1 - p) + (n - each) * q * (1 - q) for each in held]
    little = [are_few(channel, n) & (variance < FEW) for variance in scatter]
    either = little[0] | little[1]
    supports = np.rint(totals * (p - q) + n * q).astype(np.int64)
    cases, place = np.unique(
        np.stack([supports[either], n[either]]), axis=1, return_inverse=True
    )  # of many items most are alike
    ends = exact_limits(channel, cases[0], cases[1], alpha)
    for limit, mask, exact in zip(limits, little, ends, strict=True):
        limit[mask] = exact[place.ravel()][mask[either]]
    return limits


def exact_limits(channel: Channel, supports: Ints, n: Ints, alpha: float) -> tuple[Ints, Ints]:
    """Return the least and the most devices that may hold an item, both shape (k,).

    Only counts at which supports scatter by MOST at most are tried; a limit beyond them is the
    nearest of them.

    Args: supports: reports that support the item, shape (k,).  n: all reports, shape (k,).
    """
    first, last = _tried(channel, supports, n)
    # the least count of which so many are likely enough; one more than the most, of which so few
    low = _least(first, last, lambda held: above(channel, supports, held, n) > alpha / 2)
    high = _least(first, last, lambda held: ~(below(channel, supports, held, n) > alpha / 2)) - 1
    return np.minimum(low, last), np.maximum(high, first)


def below(channel: Channel, supports: Ints, held: Ints, n: Ints) -> Floats:
    """Return the chance of at most so many *supports* if *held* of *n* devices hold the item."""
    others, chances = _law(n - held, float(channel.q))
    of_holders, law = _law(held, float(channel.p))
    up_to = np.pad(np.cumsum(law, axis=-1), ((0, 0), (1, 0)))
    places = supports[:, None] - others - of_holders[:, :1] + 1
    each = chances * np.take_along_axis(up_to, places.clip(0, law.shape[-1]), axis=-1)
    chance: Floats = each.sum(-1)
    return chance


def above(channel: Channel, supports: Ints, held: Ints, n: Ints) -> Floats:
    """Return the chance of at least so many *supports*: of at most so many reports without."""
    flipped = Channel(1 - channel.q, 1 - channel.p)
    return below(flipped, n - supports, n - held, n)


def _tried(channel: Channel, supports: Ints, n: Ints) -> tuple[Ints, Ints]:
    """Return the first and the last count near which supports may be, and scatter little."""
    p, q = float(channel.p), float(channel.q)
    least, rise = min(p * (1 - p), q * (1 - q)), p * (1 - p) - q * (1 - q)
    reach = np.where(rise == 0, n, np.floor((MOST - n * least) / (abs(rise) or 1)).clip(0, n))
    from_, to = (0, reach) if rise > 0 else (n - reach, n)
    totals, far = (supports - n * q) / (p - q), 2 * _WINDOW / (p - q)
    ends = (np.clip(np.floor(totals + side), from_, to) for side in (-far, far))
    first, last = (end.astype(np.int64) for end in ends)
    return first, last


def _least(first: Ints, last: Ints, is_so: Callable[[Ints], Bools]) -> Ints:
    """Return the least count from *first* to *last* that *is_so*, or one after the last."""
    low, high = first, last + 1
    while (low < high).any():
        middle = (low + high) // 2
        is_open = low < high
        yes = is_open & is_so(np.minimum(middle, last))
        low, high = np.where(is_open & ~yes, middle + 1, low), np.where(yes, middle, high)
    return low


def _law(n: Ints, p: float) -> tuple[Ints, Floats]:
    """Return outcomes around the likeliest of Binomial(n, p), and their chances: (k, places)."""
    steps = np.arange(1, _WINDOW + 1)
    likeliest = np.floor((n + 1) * p).clip(0, n).astype(np.int64)[:, None]
    up, down = likeliest + steps, likeliest - steps + 1
    rising = np.maximum(n[:, None] - up + 1, 0) * p / (up * (1 - p))
    falling = np.maximum(down, 0) * (1 - p) / ((n[:, None] - down + 1) * p)
    chances = np.concatenate(
        [
            np.cumprod(falling, axis=-1)[:, ::-1],
            np.ones_like(likeliest, dtype=float),
            np.cumprod(rising, axis=-1),
        ],
        axis=-1,
    )
    outcomes = likeliest + np.arange(-_WINDOW, _WINDOW + 1)
    return outcomes, chances / chances.sum(axis=-1, keepdims=True)
