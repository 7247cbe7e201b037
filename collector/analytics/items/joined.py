"""What the parts of one report say together: steps reached, and periods that devices came back in.

An item of a funnel is the furthest step of a device, and one of a retention all its periods.  What
people ask is another number: which part of the devices reached a step, and which part of those that
were active in the first period were active in a later one.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import Reach
from client_sdk.registry.domains import Domain
from client_sdk.registry.joint_domains import FunnelDomain, RetentionDomain
from client_sdk.registry.metric import Metric

from ...estimation.estimate import Estimate, normal_quantile
from ..rows import ITEM, MEASURE, Findings, Row
from ..slices import Slice
from .sums import Shares
from .tables import refused_rows, rows_of

UNSURE: Final = "not enough reports: whether any device is in the group before is not sure"
_SURE: Final = 0.05  # 1 - level at which a group must be above 0 for a part of it to be compared


class Joined(NamedTuple):
    """A share of a group of devices, and which part of all devices the group is."""

    estimate: Estimate
    part: float


def is_joined(domain: Domain) -> bool:
    """Return whether items of *domain* are compared by what they say together."""
    return bool(domain.compared)


def members_of(domain: FunnelDomain | RetentionDomain) -> Any:
    """Return which items are of a device that reached each step, or was active in each period.

    Returns: booleans, shape (steps or periods, items).
    """
    if isinstance(domain, FunnelDomain):  # the index of an item is how many steps were taken
        return np.arange(domain.size) >= np.arange(1, domain.size)[:, None]
    return np.array([domain.bits(item) for item in range(domain.size)], dtype=bool).T


def joined(one: Slice, alpha: float) -> Mapping[str, Joined]:
    """Return the number of each of ``compared`` of a slice with n > 0, as of independent reports.

    Where whether anybody was active in the first period is not sure with 1 - *alpha*, a part of
    these may be anything from 0 to 1, which its interval says.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    domain: Any = one.metric.domain
    shares = Shares.of(one.metric.mechanism, one.tally, one.n)
    members = members_of(domain)
    if isinstance(domain, FunnelDomain):
        found = [Joined(estimate, 1.0) for estimate in shares.groups(members, alpha)]
        return dict(zip(domain.compared, found, strict=True))
    first, *later = members
    part = float(shares.values[first].sum())
    ratios = (shares.ratio(period & first, first, alpha) or _anything() for period in later)
    return {
        label: Joined(ratio, part) for label, ratio in zip(domain.compared, ratios, strict=True)
    }


def unsure(one: Slice) -> str | None:
    """Return why parts of the first period of a slice cannot be compared; None if they can."""
    domain = one.metric.domain
    if not isinstance(domain, RetentionDomain):
        return None
    first = members_of(domain)[:1].astype(np.float64)
    shares = Shares.of_slice(one)
    (part,), (variance,) = first @ shares.values, shares.variances(first)
    return UNSURE if part <= normal_quantile(_SURE) * np.sqrt(variance) else None


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
    labels: Callable[[Slice], Sequence[str]],
    ratios: Callable[[Any], Iterable[tuple[Any, Any]]],
) -> Findings:
    """Answer with a share of each of *labels* and, of all but the first, its part of another group.

    All intervals hold at once; those of parts are Fieller's.

    Args: measures: what a share is of, and what a part is of.
          ratios: returns part and whole for each label but the first, of what ``members_of`` does.
    """
    rows: list[Row] = []
    level = alpha / max(sum(2 * len(labels(one)) - 1 for one in slices), 1)
    for one in slices:
        shares = [{ITEM: label, MEASURE: measures[0]} for label in labels(one)]
        parts = [{ITEM: label, MEASURE: measures[1]} for label in labels(one)[1:]]
        if one.refusal is not None:
            rows += refused_rows(one, [*shares, *parts], alpha, simultaneous=True)
            continue
        counts, members = Shares.of_slice(one), members_of(_domain_of(one))
        estimates = counts.groups(members, level)
        rows += rows_of(one, shares, estimates, alpha, simultaneous=True, note=counts.note)
        for name, (part, whole) in zip(parts, ratios(members), strict=True):
            ratio = counts.ratio(part, whole, level)
            if ratio is None:
                rows += refused_rows(one, [name], alpha, reason=UNSURE, simultaneous=True)
            else:
                rows += rows_of(one, [name], [ratio], alpha, simultaneous=True, note=counts.note)
    return Findings(tuple(rows))


def _domain_of(one: Slice) -> FunnelDomain | RetentionDomain:
    domain = one.metric.domain
    assert isinstance(domain, FunnelDomain | RetentionDomain)  # noqa: S101 - see the verbs' refusals
    return domain


def _anything() -> Estimate:
    """Return what is known of a share of which nothing is known."""
    return Estimate(0.5, 0.5, 0.0, 1.0)
