"""Into how many equal buckets a range of numbers should be cut before its shares are asked.  Pure.

With k buckets a histogram is off for two reasons.  Let f be the density over a range of width 1,
p_j the share of bucket j and V_j the variance of its unbiased estimate.  The histogram is k p_j
across bucket j, and its integrated squared error is, in expectation,

    integral of (f - k p_j)^2  +  sum of (1/k) k^2 V_j  =  bias + k^2 V,   V the mean of V_j:

what a bucket smears, and the noise of its share, spread over 1/k of the range.  The bias falls as
the integral of f'^2 over 12 k^2 for a smooth f, the noise rises as k^2 where V does not depend on
k, so the best k grows as the fourth root of the reports.

The bias needs a shape, the *reference*: of an earlier window, of another population, or a bell.
Noise is that of the mechanism which ``auto`` takes for k items, before post-processing, which
lowers it; a reader who wants more detail may go a little beyond the best.

Source: Freedman and Diaconis, Probability Theory and Related Fields 1981, for histograms of
    values as they are; with the noise of reports in place of counts derived here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import EpsilonLike, ItemMechanism
from client_sdk.registry.domain import NumberGrid
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose

BELL: Final = 1 / 6  # part of the range: the standard deviation of a bell that just fits into it
MOST_BUCKETS: Final = 1_024  # as many as a chart of this width can show
_CELLS: Final = 4_096  # of the bell that is the reference
_EVERY: Final = 32  # numbers of buckets up to here are all weighed, above every eighth of a double


class Buckets(NamedTuple):
    """A number of ``buckets`` and its integrated squared error, of a density on a range of 1."""

    buckets: int
    bias: float
    noise: float
    total: float


def best_buckets(
    domain: NumberGrid,
    epsilon: EpsilonLike,
    n: int,
    reference: Sequence[float] | None = None,
) -> list[Buckets]:
    """Return numbers of buckets for *domain*, the smallest error first, as far as it pays.

    Args:   epsilon: nats per report.  n: reports, above 0.
            reference: how the population is spread over the range, in equal parts from the lowest;
                a bell of BELL if left out.
    Raises: InvalidParameterError: *epsilon* gives no mechanism.
    """
    shape = bell() if reference is None else np.asarray(reference, dtype=np.float64)
    cumulative = np.concatenate([[0.0], np.cumsum(shape / shape.sum())])
    choices: list[Buckets] = []
    for buckets in sizes(domain.size):
        noise = noise_of(epsilon, buckets, n)
        if choices and noise > min(choice.total for choice in choices):
            break  # noise only grows from here
        bias = bias_of(cumulative, buckets)
        choices.append(Buckets(buckets, bias, noise, bias + noise))
    return sorted(choices, key=lambda choice: (choice.total, choice.buckets))


def bias_of(cumulative: Any, buckets: int) -> float:
    """Return the squared error that *buckets* leave of a shape without any noise.

    Args: cumulative: the shape summed up from 0 to 1, in equal parts, shape (parts + 1,).
    """
    parts = cumulative.size - 1
    ends = np.linspace(0, parts, buckets + 1)
    held = np.diff(np.interp(ends, np.arange(parts + 1), cumulative))
    exact, seen = (float(np.square(shares).sum()) for shares in (np.diff(cumulative), held))
    return float(max(exact * parts - seen * buckets, 0.0))


def noise_of(epsilon: EpsilonLike, buckets: int, n: int) -> float:
    """Return the squared error from the noise of *n* reports about *buckets* items."""
    _, mechanism = choose(AUTO, ItemMechanism, epsilon, buckets)
    error = buckets * mechanism.predict(n)
    return error * error


def bell(deviation: float = BELL) -> Any:
    """Return the shares of equal parts of the range under a bell in its middle."""
    law = NormalDist(0.5, deviation)
    return np.diff([law.cdf(i / _CELLS) for i in range(_CELLS + 1)])


def sizes(most: int) -> Iterator[int]:
    """Yield the numbers of buckets that are weighed, ascending, up to *most*."""
    buckets = 2
    while buckets <= min(most, MOST_BUCKETS):
        yield buckets
        buckets += 1 if buckets < _EVERY else 1 << (buckets.bit_length() - 4)
