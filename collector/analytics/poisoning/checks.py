"""Checks of the tally of one epoch: what noise alone decides, against what noise can do.  Pure.

Every check takes tallies of any leading shape, the reports of each, and the chance of a false
alarm; where it does not apply it returns None.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from client_sdk.mechanisms import Mechanism

LEAST_CELL: Final = 25  # expected reports of a cell; fewer are not near enough to a normal law


class Score(NamedTuple):
    """What a check found in tallies of any leading shape, and the most that noise gives."""

    statistic: Any
    limit: float


Check: TypeAlias = Callable[[Mechanism[Any], Any, int, float], Score | None]


def check_sum(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> Score | None:
    """Compare the ones of unary reports with n (p + (k-1) q), in bits, by Bernstein's bound.

    Every report has one bit of chance p and k - 1 of chance q, whatever its item is.
    """
    coins = mechanism.noise_law(tally, np).coins
    if coins is None:
        return None
    ones, p, q, others = coins
    variance = n * (p * (1 - p) + others * q * (1 - q))
    bits = log(2 / alpha)
    return Score(
        abs(ones - n * (p + others * q)), bits / 3 + sqrt(bits**2 / 9 + 2 * bits * variance)
    )


def check_dispersion(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> Score | None:
    """Compare counts of what every device draws evenly with evenness, by chi-square.

    The limit is that of Laurent and Massart for a chi-square law.
    """
    draws = mechanism.noise_law(tally, np).draws
    if draws is None:
        return None
    counts, chance = draws
    cells = counts.shape[-1]
    if cells < 2 or n * chance < LEAST_CELL or chance >= 1:
        return None
    scale = n * chance * (1 - chance) * cells / (cells - 1)
    statistic = ((counts - n * chance) ** 2).sum(axis=-1) / scale
    bits = log(1 / alpha)
    return Score(statistic, cells - 1 + 2 * sqrt((cells - 1) * bits) + 2 * bits)


def check_lower(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> Score | None:
    """Add up how far cells fall short of n q, q their least chance, in squared deviations.

    Cells are independent or negatively associated here, and each is likelier to be large than
    Binomial(n, q), so the sum is at most that of as many halved normal squares; the limit is
    Chernoff's for them.  Cells of which few are expected are left out.
    """
    least = mechanism.noise_law(tally, np).lowest
    if least is None:
        return None
    q = np.broadcast_to(least, tally.shape[-1:])
    enough = (n * q >= LEAST_CELL) & (q < 1)
    if not enough.any():
        return None
    q, cells = q[enough], tally[..., enough]
    short = np.minimum((cells - n * q) / np.sqrt(n * q * (1 - q)), 0)
    return Score((short**2).sum(axis=-1), shortfall_limit(cells.shape[-1], alpha))


def check_upper(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> Score | None:
    """Compare every count with the largest chance that a value gives its cell, in nats.

    A count is a sum of coins, none of a larger chance, so by Chernoff n KL(count/n, chance) is
    above log(cells/alpha) in some cell with *alpha* at most.
    """
    largest = mechanism.noise_law(tally, np).highest
    if largest is None:
        return None
    most = np.broadcast_to(largest, tally.shape[-1:])
    uncertain = (most > 0) & (most < 1)
    if not uncertain.any():
        return None
    most, cells = most[uncertain], tally[..., uncertain]
    seen = np.maximum(cells / n, most)
    rest = np.maximum(1 - seen, np.finfo(float).tiny)
    nats = n * (seen * np.log(seen / most) + rest * np.log(rest / (1 - most)))
    return Score(nats.max(axis=-1), log(cells.shape[-1] / alpha))


def shortfall_limit(cells: int, alpha: float) -> float:
    """Return what a sum of *cells* squares min(z, 0)^2 of normal z exceeds with *alpha* at most.

    Chernoff: E e^(s min(z,0)^2) = (1 + (1-2s)^(-1/2)) / 2, for the best s below 1/2.
    """
    s = np.linspace(0.001, 0.499, 499)
    exponents = cells * np.log((1 + (1 - 2 * s) ** -0.5) / 2) - log(alpha)
    return float((exponents / s).min())


SINGLE: Final[dict[str, Check]] = {
    "total": check_sum,
    "spread": check_dispersion,
    "floor": check_lower,
    "ceiling": check_upper,
}
