"""What one report supports of several items at once: the law behind sums of shares.  Pure.

For a device that holds v, the sum of w_i S_i, S_i telling whether its report supports i, has

    E[(sum)^2 | v] = p w_v^2 + q (Q - w_v^2) + 2 a w_v (W - w_v) + b ((W - w_v)^2 - (Q - w_v^2))

with W = sum of w_i, Q = sum of w_i^2, a = Pr[supports v and i | v], b = Pr[supports i and j | v]
for i, j other than v.  These two are known for randomized response, where they are 0; for unary
encoding, whose bits are independent; for subsets, which are drawn without replacement; and for rows
of Hadamard matrices, any two columns of which agree in half of them: a = pq and b = q^2 again.

Where it matters which items these are, there is more to look at.  The hashes of local hashing are
independent in pairs only (neighbours collide together more often than by chance), so the law is
averaged over SEEDS of them.  Projective geometry and the exponential mechanism count reports one by
one, so what each report supports is all that is needed.

Derived here; p, q and the law of one item are those of Wang et al., USENIX Security 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar, cast

import numpy as np

from client_sdk.mechanisms import Mechanism
from client_sdk.mechanisms._mixture import Mixture
from client_sdk.mechanisms.exponential import Exponential
from client_sdk.mechanisms.grr import GRR
from client_sdk.mechanisms.hadamard import Hadamard
from client_sdk.mechanisms.hierarchy import Hierarchy
from client_sdk.mechanisms.olh import OLH
from client_sdk.mechanisms.oue import OUE
from client_sdk.mechanisms.pgr import PGR
from client_sdk.mechanisms.subset_selection import SubsetSelection
from client_sdk.mechanisms.sue import SUE

SEEDS: Final = 4_096  # hash functions; variances are then off by about one in a hundred
_LEAST_SEEDS: Final = 64  # and then by about one in ten, where weights are very many
_CELLS: Final = 1 << 25  # weights times seeds; a second or less
_CACHED: Final = 16  # matrices of weights: slices of one question share theirs
_MOST_CACHED: Final = 1 << 16  # entries of a matrix
_STEPS: Final = 1 << 30  # of all weights together in the transform of projective geometry


Law = TypeVar("Law", bound=Callable[[Any, Any], Any])


def cache_by_weights(law: Law) -> Law:
    """Keep the last answers of *law*, a function of a mechanism and an array of weights."""

    @lru_cache(maxsize=_CACHED)
    def kept(mechanism: Any, text: bytes, shape: tuple[int, ...]) -> Any:
        return law(mechanism, np.frombuffer(text).reshape(shape))

    @wraps(law)
    def cached(mechanism: Any, weights: Any) -> Any:
        if weights.size > _MOST_CACHED:
            return law(mechanism, weights)
        return kept(mechanism, weights.astype(np.float64).tobytes(), weights.shape)

    return cast("Law", cached)


def is_known(mechanism: Mechanism[Any]) -> bool:
    """Return whether the law of several items is known."""
    known = (GRR, OUE, SUE, SubsetSelection, Hadamard, OLH, PGR, Exponential, Hierarchy)
    return isinstance(base_of(mechanism), known)


def base_of(mechanism: Mechanism[Any]) -> Mechanism[Any]:
    """Return what makes the payloads."""
    return mechanism.base if isinstance(mechanism, Mixture) else mechanism


def chances(mechanism: Any) -> tuple[float, float]:
    """Return p and q."""
    return float(mechanism.channel.p), float(mechanism.channel.q)


def laws_of(mechanism: Mechanism[Any], weights: Any) -> Any:
    """Return the variance of one report's sums by what its device holds, shape (sums, items)."""
    base = base_of(mechanism)
    moments = _hashed(base, weights) if isinstance(base, OLH) else _paired(base, weights)
    if moments is None:
        return None
    first, second = moments
    if isinstance(mechanism, Mixture):  # some payloads are those of a uniform item
        kept = float(mechanism.kept)
        first, second = (
            kept * moment + (1 - kept) * moment.mean(axis=1, keepdims=True) for moment in moments
        )
    p, q = chances(mechanism)
    return np.maximum(second - first**2, 0) / (p - q) ** 2


def pair_of(mechanism: Mechanism[Any]) -> tuple[float, float] | None:
    """Return the chances a and b that a report supports two items; None if it matters which."""
    if isinstance(mechanism, GRR):
        return 0.0, 0.0
    if isinstance(mechanism, OUE | SUE | Hadamard):
        p, q = chances(mechanism)
        return p * q, q * q
    if not isinstance(mechanism, SubsetSelection):
        return None
    p, size, items = float(mechanism.truth), mechanism.subset_size, mechanism.domain_size
    own = p * (size - 1) / (items - 1)
    pairs = max((items - 1) * (items - 2), 1)  # with two items there is no pair of others
    return own, (p * (size - 1) * (size - 2) + (1 - p) * size * (size - 1)) / pairs


def _paired(mechanism: Mechanism[Any], weights: Any) -> tuple[Any, Any] | None:
    """Return the moments of the sums of weights that a report supports, shape (sums, items)."""
    pair = pair_of(mechanism)
    if pair is None:
        return None
    p, q = chances(mechanism)
    total, squares = weights.sum(axis=1)[:, None], (weights**2).sum(axis=1)[:, None]
    rest, others = total - weights, squares - weights**2
    second = p * weights**2 + q * others
    second += 2 * pair[0] * weights * rest + pair[1] * (rest**2 - others)
    return p * weights + q * rest, second


@cache_by_weights
def _hashed(mechanism: OLH, weights: Any) -> tuple[Any, Any]:
    """Return the moments as ``_paired``, averaged over hash functions.

    Given one, the sum of the weights in a bucket is supported with the chance of that bucket.
    """
    told, buckets = float(mechanism.truth), mechanism.buckets
    other = (1 - told) / (buckets - 1)
    hashes = _hashes(mechanism, int(np.clip(_CELLS // weights.size, _LEAST_SEEDS, SEEDS)))
    places = (hashes + buckets * np.arange(len(hashes))[:, None]).ravel()
    moments = np.zeros((2, *weights.shape))
    for row, weight in enumerate(weights):
        spread = np.broadcast_to(weight, hashes.shape).ravel()
        sums = np.bincount(places, spread, len(hashes) * buckets)
        for moment, power in zip(moments, (sums, sums**2), strict=True):
            own = power[places].reshape(hashes.shape).mean(axis=0)
            moment[row] = (told - other) * own + other * power.sum() / len(hashes)
    return moments[0], moments[1]


def _hashes(mechanism: OLH, seeds: int) -> Any:
    """Return the bucket of every item under a fixed choice of *seeds*, shape (seeds, items)."""
    a, b = np.random.default_rng(1).integers(0, mechanism.prime, (2, seeds, 1))
    return (a * np.arange(mechanism.domain_size) + b) % mechanism.prime % mechanism.buckets


@cache_by_weights
def met_by_points(mechanism: PGR, weights: Any) -> Any:
    """Return the weights that a report of each point supports, shape (sums, points).

    Being orthogonal is mutual, so the items that a report supports are counted as reports are.
    """
    every = PGR(mechanism.epsilon, mechanism.points, order=mechanism.order)

    def met(steps: Any) -> Any:
        padded = np.zeros(mechanism.points, dtype=np.int64)
        padded[: steps.size] = steps
        return every.support_counts(padded, int(steps.sum()), np)

    items = met(np.ones(mechanism.domain_size, dtype=np.int64))
    found = []
    for row in weights:
        least = float(row.min())
        scale = _STEPS / max(float((row - least).sum()), 1.0)
        raised = met(np.rint((row - least) * scale).astype(np.int64)) / scale
        found.append(raised + least * items)
    return np.array(found)


def met_by_items(mechanism: Exponential) -> Any:
    """Return what a report of each item stands for in each share, shape (items, reports)."""
    one = np.eye(mechanism.domain_size, dtype=np.int64)
    return np.array([mechanism.debias(row, 1, np).totals for row in one]).T
