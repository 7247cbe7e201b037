"""Checks of the tally of one epoch: what noise alone decides, against what noise can do.  Pure.

Every check takes tallies of any leading shape, the reports of each, and the chance of a false
alarm; where it does not apply it returns None.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from client_sdk.mechanisms import (
    Channel,
    DistributionMechanism,
    FrequencyOracle,
    Mechanism,
    SetMechanism,
)
from client_sdk.mechanisms._bits import BitReports
from client_sdk.mechanisms._mixture import Mixture
from client_sdk.mechanisms.cms import CMS
from client_sdk.mechanisms.dbitflip import DBitFlip
from client_sdk.mechanisms.grr import GRR
from client_sdk.mechanisms.hadamard import Hadamard
from client_sdk.mechanisms.padding_sampling import PaddingSampling
from client_sdk.mechanisms.pgr import PGR, points
from client_sdk.mechanisms.rappor import RAPPOR
from client_sdk.mechanisms.sampled_item import SampledItem

from ...estimate import is_pure

LEAST_CELL: Final = 25  # expected reports of a cell; fewer are not near enough to a normal law


class Score(NamedTuple):
    """What a check found in tallies of any leading shape, and the most that noise gives."""

    found: Any
    limit: float


Check: TypeAlias = Callable[[Mechanism[Any], Any, int, float], Score | None]


def total(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> Score | None:
    """Compare the ones of unary reports with n (p + (k-1) q), in bits, by Bernstein's bound.

    Every report has one bit of chance p and k - 1 of chance q, whatever its item is.
    """
    oracle = mechanism.base if isinstance(mechanism, Mixture) else mechanism
    if isinstance(oracle, BitReports):
        ones, others = tally.sum(axis=-1), oracle.domain_size - 1
    elif isinstance(oracle, CMS):
        rows = tally.reshape(*tally.shape[:-1], oracle.rows, -1)
        ones, others = rows[..., 1:].sum(axis=(-2, -1)), oracle.columns - 1
    else:
        return None
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    variance = n * (p * (1 - p) + others * q * (1 - q))
    bits = log(2 / alpha)
    return Score(
        abs(ones - n * (p + others * q)), bits / 3 + sqrt(bits**2 / 9 + 2 * bits * variance)
    )


def spread(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> Score | None:
    """Compare counts of what every device draws evenly with evenness, by chi-square.

    The limit is that of Laurent and Massart for a chi-square law.
    """
    drawn = _drawn(mechanism, tally)
    if drawn is None:
        return None
    counts, each = drawn
    cells = counts.shape[-1]
    if cells < 2 or n * each < LEAST_CELL or each >= 1:
        return None
    scale = n * each * (1 - each) * cells / (cells - 1)
    found = ((counts - n * each) ** 2).sum(axis=-1) / scale
    bits = log(1 / alpha)
    return Score(found, cells - 1 + 2 * sqrt((cells - 1) * bits) + 2 * bits)


def floor(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> Score | None:
    """Add up how far supports fall short of n q, which lies alone give, in squared deviations.

    Supports of different items are independent or negatively associated here, and each is likelier
    to be large than Binomial(n, q), so the sum is at most that of as many halved normal squares;
    the limit is Chernoff's for them.
    """
    channel = _lies(mechanism)
    if channel is None or not isinstance(mechanism, FrequencyOracle | SetMechanism):
        return None
    q = float(channel.q)
    if n * q < LEAST_CELL:
        return None
    short = np.minimum((tally - n * q) / sqrt(n * q * (1 - q)), 0)
    return Score((short**2).sum(axis=-1), shortfall_limit(tally.shape[-1], alpha))


def ceiling(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> Score | None:
    """Compare every count of a report with the largest chance that a value gives it, in nats.

    A count is a sum of coins, none of a larger chance, so by Chernoff n KL(count/n, chance) is
    above log(cells/alpha) in some cell with *alpha* at most.
    """
    if isinstance(mechanism, PGR):
        most: Any = float(mechanism.channel.p) / points(mechanism.order, mechanism.dimension - 1)
    elif isinstance(mechanism, DistributionMechanism):
        most = mechanism.channel_matrix(np).max(axis=1)
    else:
        return None
    seen = np.maximum(tally / n, most)
    rest = np.maximum(1 - seen, np.finfo(float).tiny)
    nats = n * (seen * np.log(seen / most) + rest * np.log(rest / (1 - most)))
    return Score(nats.max(axis=-1), log(tally.shape[-1] / alpha))


def shortfall_limit(cells: int, alpha: float) -> float:
    """Return what a sum of *cells* squares min(z, 0)^2 of normal z exceeds with *alpha* at most.

    Chernoff: E e^(s min(z,0)^2) = (1 + (1-2s)^(-1/2)) / 2, for the best s below 1/2.
    """
    s = np.linspace(0.001, 0.499, 499)
    exponents = cells * np.log((1 + (1 - 2 * s) ** -0.5) / 2) - log(alpha)
    return float((exponents / s).min())


def _drawn(mechanism: Mechanism[Any], tally: Any) -> tuple[Any, float] | None:
    """Return the counts of what every device draws evenly, and the chance of each."""
    shape = tally.shape[:-1]
    if isinstance(mechanism, Hadamard):
        return tally.reshape(*shape, -1, 2).sum(axis=-1), 1 / mechanism.rows
    if isinstance(mechanism, SampledItem):
        return tally.reshape(*shape, -1, 2).sum(axis=-1), 1 / mechanism.domain_size
    if isinstance(mechanism, DBitFlip):
        size = mechanism.domain_size
        return tally[..., :size], mechanism.sampled / size
    if isinstance(mechanism, CMS):
        return tally.reshape(*shape, mechanism.rows, -1)[..., 0], 1 / mechanism.rows
    if isinstance(mechanism, RAPPOR):
        return tally.reshape(*shape, mechanism.cohorts, -1)[..., 0], 1 / mechanism.cohorts
    return None


def _lies(mechanism: Mechanism[Any]) -> Channel | None:
    """Return the channel of an oracle whose supports do not go together, and are its tally."""
    oracle = mechanism.base if isinstance(mechanism, Mixture) else mechanism
    apart = isinstance(oracle, GRR | BitReports | PaddingSampling)
    return mechanism.channel if apart and is_pure(mechanism) else None


SINGLE: Final[dict[str, Check]] = {
    "total": total,
    "spread": spread,
    "floor": floor,
    "ceiling": ceiling,
}
