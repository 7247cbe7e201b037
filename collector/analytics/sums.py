"""Shares of groups of items, and other weighted sums of shares, with the right variance.  Pure.

The estimate of the sum of w_i f_i is the sum of w_i times the estimates, so parts add up exactly.
Its variance is not the sum of theirs: what one report supports of several items depends on each
other.  Each mechanism answers for it (``sum_variances``); where one knows only the variance of each
item, the sum of standard errors is a bound, and rows say so.

Funnels and retentions are answered by such sums.  An item of a funnel is the furthest step of a
device, and one of a retention all its periods.  What people ask is another number: which part of
the devices reached a step, and which part of those of the first period were active in a later one.

Derived here; the variance of one item is that of Wang et al., USENIX Security 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from client_sdk.mechanisms import ItemMechanism, Reach
from client_sdk.registry.domain import Domain
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.joint import FunnelDomain, RetentionDomain

from ..core.remarks import Code, Remark, remark
from ..estimation.arrays import AnyMechanism, Bools, Floats, Ints, Numbers
from ..estimation.estimate import (
    Estimate,
    is_pure,
    linear_limits,
    normal_quantile,
    ratio_limits,
    score_limits,
)
from .rows import ITEM, MEASURE, Findings, Row
from .verb import Slice, draw_law, refused_rows, repeats_of, rows_of

_SURE: Final = 0.05  # 1 - level at which a group must be above 0 for a part of it to be compared


@dataclass(frozen=True)
class Shares:
    """Unbiased shares of the items among *n* reports, and how sums of them scatter.

    ``values``, shape (items,), may be below 0.  Up to ``repeats`` reports may share their noise.
    """

    mechanism: ItemMechanism
    tally: Ints
    n: int
    values: Floats
    repeats: int = 1
    drawn: float = 0.0  # variance of a share f of those whom a panel drew, over f (1 - f)

    @classmethod
    def of(cls, mechanism: AnyMechanism, tally: Ints, n: int) -> Shares:
        """Debias a tally of *n* > 0 independent reports of single items.

        Raises: InvalidTallyError: the tally cannot have come from n reports.
        """
        assert isinstance(mechanism, ItemMechanism)  # noqa: S101 - metrics of items have no other
        return cls(mechanism, np.asarray(tally), n, mechanism.debias(tally, n, np).totals / n)

    @classmethod
    def of_slice(cls, part: Slice) -> Shares:
        """Debias the tally of a slice that may have numbers.  Raises InvalidTallyError."""
        shares = cls.of(part.metric.mechanism, part.tally, part.n)
        return replace(shares, repeats=repeats_of(part), drawn=draw_law(part))

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What must be said beside sums of several items."""
        return () if self.mechanism.knows_sums(np) else (remark(Code.BOUND),)

    def groups(self, members: ArrayLike, alpha: float) -> list[Estimate]:
        """Return the share of each group: score intervals where the variance is linear in it.

        Args: members: booleans, shape (groups, items).
        """
        weights = np.asarray(members, dtype=np.float64)
        values, errors = weights @ self.values, np.sqrt(self.variances(weights))
        reach = normal_quantile(alpha) * errors
        low: Floats = values - reach
        high: Floats = values + reach
        laws = self.mechanism.sum_laws(weights, np) if self.mechanism.pair_law() else None
        if laws is not None:
            inside, outside = (_mean_over(laws, part) for part in (weights, 1 - weights))
            each = self.repeats / self.n
            slope = each * np.where(weights.all(axis=1), 0, inside - outside)
            level = each * np.where(weights.all(axis=1), inside, outside)
            low, high = linear_limits(values, level, slope, alpha)
        if is_pure(self.mechanism):  # one item has the interval that it has alone
            alone = weights.sum(axis=1) == 1
            ends = score_limits(self.mechanism.channel, values[alone] * self.n, self.n, alpha)
            for side, end in zip((low, high), ends, strict=True):
                apart = end / self.n - values[alone]
                side[alone] = values[alone] + sqrt(self.repeats) * apart
        if self.drawn:
            z = normal_quantile(alpha)
            low = values - np.hypot(values - low, z * self._draw(low))
            high = values + np.hypot(high - values, z * self._draw(high))
            errors = np.hypot(errors, self._draw(values))
        columns = (column.tolist() for column in (values, errors, low, high))
        return [Estimate(*row) for row in zip(*columns, strict=True)]

    def _draw(self, shares: Numbers) -> Floats:
        """Return the standard error that the draw of a panel gives to *shares*."""
        inside: Floats = np.clip(np.asarray(shares), 0, 1)
        return np.sqrt(self.drawn * inside * (1 - inside))

    def ratio(self, part: Bools, whole: Bools, alpha: float) -> Estimate | None:
        """Return the share of the members of group *whole* that are in *part*, which it holds.

        None where whether anybody is in *whole* is not sure.  By Fieller's interval; value and
        interval are cut off at 0 and 1.  Of a value that was beyond an end at least half the width
        of the interval is left, which could else be a point there, as if it were known for sure.

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
        if self.notes:  # nothing is known of it: then the worst
            shared = -np.sqrt(of_part * of_whole)
        turn = shared / of_whole
        law = max(of_part - shared * turn, 0.0), of_whole
        limits = ratio_limits(over - turn * under, under, *law, alpha)
        beyond = over / under
        value = min(max(beyond, 0.0), 1.0)
        error = np.sqrt(law[0] + law[1] * (value - turn) ** 2) / under
        low, high = (float(limit + turn) for limit in limits)
        half = (high - low) / 2
        low = min(low, value - half) if beyond > 1 else low
        high = max(high, value + half) if beyond < 0 else high
        low, high = (min(max(end, 0.0), 1.0) for end in (low, high))
        if self.drawn:  # as many fewer devices as are in the whole
            z, fewer = normal_quantile(alpha), sqrt(min(under, 1.0))
            low = max(value - np.hypot(value - low, z * self._draw(low) / fewer), 0.0)
            high = min(value + np.hypot(high - value, z * self._draw(high) / fewer), 1.0)
            error = np.hypot(error, self._draw(value) / fewer)
        return Estimate(float(value), float(error), float(low), float(high))

    def variances(self, weights: Floats) -> Floats:
        """Return the variance of each weighted sum of shares, shape (sums,).

        Args: weights: shape (sums, items).
        """
        variances: Floats = self.mechanism.sum_variances(
            weights, np, tally=self.tally, n=self.n, shares=self.values
        )
        return self.repeats * variances

    def spreads(self, weights: Floats) -> Floats:
        """Return how much weights differ between devices, as a variance, shape (sums,).

        Args: weights: as above.
        """
        inside = np.clip(self.values, 0, 1)
        return np.maximum(weights**2 @ inside - (weights @ inside) ** 2, 0)


def _mean_over(laws: Floats, members: Floats) -> Floats:
    """Return the mean of each law over the items of its group; 0 of none."""
    means: Floats = (laws * members).sum(axis=1) / np.maximum(members.sum(axis=1), 1)
    return means


class GroupShare(NamedTuple):
    """A share of a group of devices, and which part of all devices the group is."""

    estimate: Estimate
    part: float


def is_joined(domain: Domain) -> bool:
    """Return whether items of *domain* are compared by what they say together."""
    return bool(domain.compared)


def averages(domain: Domain, options: Any) -> bool:
    """Return whether numbers are averages over reports: those who came back are a part of others.

    So numbers of several definitions of a metric have an average, each by its reports.
    """
    return not isinstance(domain, RetentionDomain)


def members_of(domain: FunnelDomain | RetentionDomain) -> Bools:
    """Return which items are of a device that reached each step, or was active in each period.

    Returns: booleans, shape (steps or periods, items).
    """
    if isinstance(domain, FunnelDomain):  # the index of an item is how many steps were taken
        return np.arange(domain.size) >= np.arange(1, domain.size)[:, None]
    return np.array([domain.bits(item) for item in range(domain.size)], dtype=bool).T


def joined(part: Slice, alpha: float) -> Mapping[str, GroupShare]:
    """Return the number of each of ``compared`` of a slice with n > 0, as of independent reports.

    Where whether anybody was active in the first period is not sure with 1 - *alpha*, a part of
    these may be anything from 0 to 1, which its interval says.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    domain: Any = part.metric.domain
    shares = Shares.of(part.metric.mechanism, part.tally, part.n)
    members = members_of(domain)
    if isinstance(domain, FunnelDomain):
        results = [GroupShare(estimate, 1.0) for estimate in shares.groups(members, alpha)]
        return dict(zip(domain.compared, results, strict=True))
    first, *later = members
    fraction = float(shares.values[first].sum())
    ratios = (shares.ratio(period & first, first, alpha) or _anything() for period in later)
    return {
        label: GroupShare(ratio, fraction)
        for label, ratio in zip(domain.compared, ratios, strict=True)
    }


def unsure(part: Slice) -> Remark | None:
    """Return why a slice has no number to compare, however many reports it has; None if it has.

    Of a retention, parts of the first period are compared.
    """
    domain = part.metric.domain
    if not isinstance(domain, RetentionDomain):
        return part.mixture
    first = members_of(domain)[:1].astype(np.float64)
    shares = Shares.of_slice(part)
    (value,), (variance,) = first @ shares.values, shares.variances(first)
    is_sure = value > normal_quantile(_SURE) * np.sqrt(variance)
    return None if is_sure else remark(Code.NO_GROUP)


def joined_reach(metric: Metric, label: str) -> Reach | None:
    """Return the reach of fakes on the devices that reached a step; None if it is not known."""
    if not isinstance(metric.domain, FunnelDomain):
        return None
    return metric.mechanism.group_reach(metric.domain.size - metric.domain.labels.index(label))


def answer_joined(
    slices: Sequence[Slice],
    alpha: float,
    *,
    measures: tuple[str, str],
    ratios: Callable[[Bools], Iterable[tuple[Bools, Bools]]],
) -> Findings:
    """Answer with a share of each step or period and, of all but the first, its part of a group.

    All intervals hold at once; those of parts are Fieller's.

    Args: measures: what a share is of, and what a part is of.
          ratios: returns part and whole for each but the first, of what ``members_of`` does.
    """
    rows: list[Row] = []
    domains = [_domain_of(part) for part in slices]
    level = alpha / max(sum(2 * len(_groups_of(domain)) - 1 for domain in domains), 1)
    for part, domain in zip(slices, domains, strict=True):
        labels = _groups_of(domain)
        share_names = [{ITEM: label, MEASURE: measures[0]} for label in labels]
        part_names = [{ITEM: label, MEASURE: measures[1]} for label in labels[1:]]
        if part.refusal is not None:
            rows += refused_rows(part, [*share_names, *part_names], alpha, simultaneous=True)
            continue
        counts, members = Shares.of_slice(part), members_of(domain)
        estimates = counts.groups(members, level)
        rows += rows_of(part, share_names, estimates, alpha, simultaneous=True, notes=counts.notes)
        for name, (inner, whole) in zip(part_names, ratios(members), strict=True):
            ratio = counts.ratio(inner, whole, level)
            if ratio is None:
                no_group = remark(Code.NO_GROUP)
                rows += refused_rows(part, [name], alpha, refusal=no_group, simultaneous=True)
            else:
                rows += rows_of(part, [name], [ratio], alpha, simultaneous=True, notes=counts.notes)
    return Findings(tuple(rows))


def _domain_of(part: Slice) -> FunnelDomain | RetentionDomain:
    domain = part.metric.domain
    assert isinstance(domain, FunnelDomain | RetentionDomain)  # noqa: S101 - see the verbs' refusals
    return domain


def _groups_of(domain: FunnelDomain | RetentionDomain) -> Sequence[str]:
    return domain.steps if isinstance(domain, FunnelDomain) else domain.periods


def _anything() -> Estimate:
    """Return what is known of a share of which nothing is known."""
    return Estimate(0.5, 0.5, 0.0, 1.0)
