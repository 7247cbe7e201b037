"""Shares of groups of items, and other weighted sums of shares, with the right variance.  Pure.

The estimate of the sum of w_i f_i is the sum of w_i times the estimates, so parts add up exactly.
Its variance is not the sum of theirs: supports of one report depend on each other.  For a device
that holds v it is Var(sum of w_i S_i | v) / (p-q)^2, S_i telling whether the report supports i:

    E[(sum)^2 | v] = p w_v^2 + q (Q - w_v^2) + 2 a w_v (W - w_v) + b ((W - w_v)^2 - (Q - w_v^2))

with W = sum of w_i, Q = sum of w_i^2, a = Pr[supports v and i | v], b = Pr[supports i and j | v]
for i, j other than v.  These two are known for randomized response, where they are 0; for unary
encoding, whose bits are independent; for subsets, which are drawn without replacement; and for rows
of Hadamard matrices, of which three columns are orthogonal in pairs: a = pq and b = q^2 again.

Where it matters which items these are, the law is that of the reports.  Projective geometry and the
exponential mechanism count reports one by one: the mean square of what these stand for, less that
of what the devices hold, is unbiased.  The hashes of local hashing are independent in pairs only
(neighbours collide together more often than by chance), so laws are averaged over SEEDS of them.
Of all others only the variance of each item is known; a sum of standard errors bounds the rest.

Derived here; the marginal variances are those of Wang et al., USENIX Security 2017.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import Mechanism
from client_sdk.mechanisms._mixture import Mixture
from client_sdk.mechanisms.exponential import UNSEEN, Exponential
from client_sdk.mechanisms.grr import GRR
from client_sdk.mechanisms.hadamard import Hadamard
from client_sdk.mechanisms.olh import OLH
from client_sdk.mechanisms.oue import OUE
from client_sdk.mechanisms.pgr import PGR
from client_sdk.mechanisms.subset_selection import SubsetSelection
from client_sdk.mechanisms.sue import SUE

from ..estimate import Estimate, linear_limits, normal_quantile, ratio_limits
from .repeats import repeats_of
from .slices import Slice

BOUND_NOTE: Final = "the interval is a bound: it is at least as wide as its level asks for"
SEEDS: Final = 4_096  # hash functions; variances are then off by about one in a hundred
_CELLS: Final = 1 << 27  # weights times items times seeds; about a second
_STEPS: Final = 1 << 30  # of all weights together in the transform of projective geometry


@dataclass(frozen=True)
class Shares:
    """Unbiased shares of the items among *n* reports, and how sums of them scatter.

    ``values``, shape (items,), may be below 0.  Up to ``repeats`` reports may share their noise.
    """

    mechanism: Mechanism[Any]
    tally: Any
    n: int
    values: Any
    repeats: int = 1

    @classmethod
    def of(cls, mechanism: Mechanism[Any], tally: Any, n: int) -> Shares:
        """Debias a tally of *n* > 0 independent reports of single items.

        Raises: InvalidTallyError: the tally cannot have come from n reports.
        """
        return cls(mechanism, np.asarray(tally), n, mechanism.debias(tally, n, np).totals / n)

    @classmethod
    def of_slice(cls, one: Slice) -> Shares:
        """Debias the tally of a slice that may have numbers.  Raises InvalidTallyError."""
        found = cls.of(one.metric.mechanism, one.tally, one.n)
        return replace(found, repeats=repeats_of(one))

    @property
    def note(self) -> str | None:
        """What must be said beside sums of several items."""
        known = (GRR, OUE, SUE, SubsetSelection, Hadamard, OLH, PGR, Exponential)
        return None if isinstance(_base(self.mechanism), known) else BOUND_NOTE

    def groups(self, members: Any, alpha: float) -> list[Estimate]:
        """Return the share of each group: score intervals where the variance is linear in it.

        Args: members: booleans, shape (groups, items).
        """
        weights = np.asarray(members, dtype=np.float64)
        values, errors = weights @ self.values, np.sqrt(self.variances(weights))
        low, high = (
            values - normal_quantile(alpha) * errors,
            values + normal_quantile(alpha) * errors,
        )
        if _pair(_base(self.mechanism)) is not None:
            laws = _laws(self.mechanism, weights)
            inside, outside = (_mean_over(laws, part) for part in (weights, 1 - weights))
            each = self.repeats / self.n
            slope = each * np.where(weights.all(axis=1), 0, inside - outside)
            level = each * np.where(weights.all(axis=1), inside, outside)
            low, high = linear_limits(values, level, slope, alpha)
        columns = (column.tolist() for column in (values, errors, low, high))
        return [Estimate(*row) for row in zip(*columns, strict=True)]

    def ratio(self, part: Any, whole: Any, alpha: float) -> Estimate | None:
        """Return the share of the members of group *whole* that are in *part*, which it holds.

        None where whether anybody is in *whole* is not sure.  By Fieller's interval; value and
        interval are cut off at 0 and 1.

        Args:    part, whole: booleans, shape (items,).
        Derived: with the share u of the whole and o of the part, o - (B/C) u does not depend on
                 u, B being their covariance and C the variance of u; its ratio is less by B/C.
        """
        weights = np.array([part, whole], dtype=np.float64)
        over, under = weights @ self.values
        of_part, of_whole, of_both = self.variances(np.vstack([weights, weights.sum(axis=0)]))
        if under <= normal_quantile(alpha) * np.sqrt(of_whole):
            return None
        shared = (of_both - of_part - of_whole) / 2
        if self.note is not None:  # nothing is known of it: then the worst
            shared = -np.sqrt(of_part * of_whole)
        turn = shared / of_whole
        law = max(of_part - shared * turn, 0.0), of_whole
        limits = ratio_limits(over - turn * under, under, *law, alpha)
        value = min(max(over / under, 0.0), 1.0)
        error = np.sqrt(law[0] + law[1] * (value - turn) ** 2) / under
        low, high = (min(max(float(limit + turn), 0.0), 1.0) for limit in limits)
        return Estimate(float(value), float(error), low, high)

    def variances(self, weights: Any) -> Any:
        """Return the variance of each weighted sum of shares, shape (sums,).

        Args: weights: shape (sums, items).
        """
        return self.repeats * self._variances(weights)

    def _variances(self, weights: Any) -> Any:
        """Return the variances of independent reports."""
        base = _base(self.mechanism)
        if isinstance(base, PGR | Exponential):
            return self._of_reports(base, weights)
        laws = _laws(self.mechanism, weights)
        if laws is not None:
            # Unbiased shares may be below 0; no population scatters less than its calmest devices.
            return np.clip(laws @ self.values, laws.min(axis=1), laws.max(axis=1)) / self.n
        marginal = self.mechanism.debias(self.tally, self.n, np).variances
        return (np.abs(weights) @ np.sqrt(marginal) / self.n) ** 2

    def _of_reports(self, base: PGR | Exponential, weights: Any) -> Any:
        """Return variances from the mean square of what the reports stand for."""
        counts = self.tally.astype(np.float64)
        if isinstance(base, PGR):
            p, q = _chances(self.mechanism)
            met = _met_by_points(base, weights)
            stands = (met - q * weights.sum(axis=1)[:, None]) / (p - q)
        else:
            stands = weights @ _met_by_items(base)
            counts += UNSEEN
        squares = stands**2 @ counts / self.n
        held = np.clip(weights**2 @ self.values, 0, (weights**2).max(axis=1))
        return np.maximum(squares - held, 0) / self.n


def _base(mechanism: Mechanism[Any]) -> Mechanism[Any]:
    """Return what makes the payloads."""
    return mechanism.base if isinstance(mechanism, Mixture) else mechanism


def _chances(mechanism: Any) -> tuple[float, float]:
    """Return p and q."""
    return float(mechanism.channel.p), float(mechanism.channel.q)


def _laws(mechanism: Mechanism[Any], weights: Any) -> Any:
    """Return the variance of one report's sums by what its device holds, shape (sums, items)."""
    base = _base(mechanism)
    moments = _hashed(base, weights) if isinstance(base, OLH) else _paired(base, weights)
    if moments is None:
        return None
    first, second = moments
    if isinstance(mechanism, Mixture):  # some payloads are those of a uniform item
        kept = float(mechanism.kept)
        first, second = (
            kept * moment + (1 - kept) * moment.mean(axis=1, keepdims=True) for moment in moments
        )
    p, q = _chances(mechanism)
    return np.maximum(second - first**2, 0) / (p - q) ** 2


def _pair(mechanism: Mechanism[Any]) -> tuple[float, float] | None:
    """Return the chances a and b that a report supports two items; None if it matters which."""
    if isinstance(mechanism, GRR):
        return 0.0, 0.0
    if isinstance(mechanism, OUE | SUE | Hadamard):
        p, q = _chances(mechanism)
        return p * q, q * q
    if not isinstance(mechanism, SubsetSelection):
        return None
    p, size, items = float(mechanism.truth), mechanism.subset_size, mechanism.domain_size
    own = p * (size - 1) / (items - 1)
    pairs = max((items - 1) * (items - 2), 1)  # with two items there is no pair of others
    return own, (p * (size - 1) * (size - 2) + (1 - p) * size * (size - 1)) / pairs


def _paired(mechanism: Mechanism[Any], weights: Any) -> tuple[Any, Any] | None:
    """Return the moments of the sums of weights that a report supports, shape (sums, items)."""
    pair = _pair(mechanism)
    if pair is None:
        return None
    p, q = _chances(mechanism)
    total, squares = weights.sum(axis=1)[:, None], (weights**2).sum(axis=1)[:, None]
    rest, others = total - weights, squares - weights**2
    second = p * weights**2 + q * others
    second += 2 * pair[0] * weights * rest + pair[1] * (rest**2 - others)
    return p * weights + q * rest, second


def _hashed(mechanism: OLH, weights: Any) -> tuple[Any, Any]:
    """Return the moments as ``_paired``, averaged over hash functions.

    Given one, the sum of the weights in a bucket is supported with the chance of that bucket.
    """
    told = float(mechanism.truth)
    other = (1 - told) / (mechanism.buckets - 1)
    hashes = _hashes(mechanism, int(np.clip(_CELLS // weights.size, 64, SEEDS)))
    first, second = np.zeros(weights.shape), np.zeros(weights.shape)
    for buckets in hashes:
        sums = np.zeros((mechanism.buckets, weights.shape[0]))
        np.add.at(sums, buckets, weights.T)
        for total, power in ((first, sums.T), (second, sums.T**2)):
            total += (told - other) * power[:, buckets] + other * power.sum(axis=1)[:, None]
    return first / len(hashes), second / len(hashes)


def _hashes(mechanism: OLH, seeds: int) -> Any:
    """Return the bucket of every item under a fixed choice of *seeds*, shape (seeds, items)."""
    a, b = np.random.default_rng(1).integers(0, mechanism.prime, (2, seeds, 1))
    return (a * np.arange(mechanism.domain_size) + b) % mechanism.prime % mechanism.buckets


def _mean_over(laws: Any, members: Any) -> Any:
    """Return the mean of each law over the items of its group; 0 of none."""
    return (laws * members).sum(axis=1) / np.maximum(members.sum(axis=1), 1)


def _met_by_points(mechanism: PGR, weights: Any) -> Any:
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


def _met_by_items(mechanism: Exponential) -> Any:
    """Return what a report of each item stands for in each share, shape (items, reports)."""
    one = np.eye(mechanism.domain_size, dtype=np.int64)
    return np.array([mechanism.debias(row, 1, np).totals for row in one]).T
