"""What the one report of a fake device can stand for, per mechanism.  Pure.

An estimate is the mean of what its reports stand for.  Honest reports stand for the truth on
average; one that was made up can stand for anything between two limits, which follow from the
mechanism alone.  With a pure channel a report stands for (1-q)/(p-q) devices that hold an item if
it supports it, and for -q/(p-q) if not.

Source: Cao, Jia, Gong, *Data Poisoning Attacks to Local Differential Privacy Protocols*, USENIX
    Security 2021, for the attacks on pure protocols; the limits of all others are derived here,
    from the estimator of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from client_sdk.domains import NumberDomain
from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    SetMechanism,
)
from client_sdk.mechanisms._sketch import Sketch
from client_sdk.mechanisms.cms import CMS
from client_sdk.mechanisms.dbitflip import DBitFlip
from client_sdk.mechanisms.exponential import Exponential
from client_sdk.mechanisms.grr import GRR
from client_sdk.mechanisms.sampled_item import SampledItem
from client_sdk.mechanisms.subset_selection import SubsetSelection

from ...estimate import is_pure

MOST_SYMBOLS: Final = (
    1_024  # payloads looked at one by one; beyond, payloads rise with their number
)


@dataclass(frozen=True)
class Reach:
    """The least and the most that one report can stand for, in the unit of the estimate.

    ``crowd``: only one honest report in so many bears upon the estimate, while a fake one always
    does; 1 where all do.
    """

    low: float
    high: float
    crowd: float = 1.0

    def scaled(self, factor: float, offset: float = 0.0) -> Reach:
        """Return the reach in another unit, *factor* > 0."""
        return Reach(self.low * factor + offset, self.high * factor + offset, self.crowd)


def share_reach(mechanism: Mechanism[Any], item: int) -> Reach | None:
    """Return the reach of the share of *item*; None if none is known (a regression)."""
    if is_pure(mechanism):
        return _supported(mechanism)
    if isinstance(mechanism, SampledItem):
        q = float(mechanism.flip)
        return Reach(-q / (1 - 2 * q), (1 - q) / (1 - 2 * q), float(mechanism.domain_size))
    if isinstance(mechanism, DBitFlip):
        return _supported(mechanism).scaled(mechanism.domain_size / mechanism.sampled)
    if isinstance(mechanism, Sketch):
        return _sketched(mechanism)
    if isinstance(mechanism, Exponential):
        return _near(mechanism, item)
    if isinstance(mechanism, KeyValueMechanism):
        p, q = float(mechanism.holding.p), float(mechanism.holding.q)
        return Reach(-q / (p - q), (1 - q) / (p - q))
    return None


def group_reach(mechanism: FrequencyOracle | SetMechanism, items: int) -> Reach:
    """Return the reach of the sum of the shares of *items* items, of a pure channel.

    One report supports as many of them as it can: the best attack on all at once.
    """
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    most = most_supported(mechanism, items)
    return Reach(-items * q / (p - q), (most - items * q) / (p - q))


def most_supported(mechanism: FrequencyOracle | SetMechanism, items: int) -> int:
    """Return how many of *items* items one report can support: an upper bound."""
    if isinstance(mechanism, GRR):
        return min(items, 1)
    return min(items, mechanism.subset_size) if isinstance(mechanism, SubsetSelection) else items


def mean_reach(mechanism: Mechanism[Any], domain: NumberDomain) -> Reach | None:
    """Return the reach of the mean of numbers, in their unit; None if none is known."""
    if isinstance(mechanism, MeanMechanism):
        stands = [float(mechanism.decode(payload)) for payload in _payloads(mechanism)]
    elif isinstance(mechanism, DistributionMechanism):
        one = np.eye(mechanism.symbols, dtype=np.int64)
        stands = [float(mechanism.debias(tally, 1, np).totals[0]) for tally in one]
    else:
        return None
    return Reach(min(stands), max(stands)).scaled(float(domain.step), float(domain.minimum))


def key_mean_reach(
    mechanism: KeyValueMechanism, domain: NumberDomain, share: float
) -> Reach | None:
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
    return Reach((1 - beyond) / 2, (1 + beyond) / 2, weight / share).scaled(extent, low)


def _supported(mechanism: FrequencyOracle | SetMechanism) -> Reach:
    """Return what a report stands for that supports an item, or not."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    return Reach(-q / (p - q), (1 - q) / (p - q))


def _sketched(sketch: Sketch) -> Reach:
    """Return the reach through a cell of a sketch, less what all items lose to collisions."""
    p, q, columns = float(sketch.channel.p), float(sketch.channel.q), sketch.columns
    cell = (
        Reach(-q / (p - q), (1 - q) / (p - q))
        if isinstance(sketch, CMS)
        else Reach(-1 / (p - q), 1 / (p - q))
    )
    return cell.scaled(columns / (columns - 1), -1 / (columns - 1))


def _near(mechanism: Exponential, item: int) -> Reach:
    """Return the reach of the inverse matrix: a report bears on its own item and the two beside."""
    size = mechanism.domain_size
    stands = [0.0] if size > 3 else []  # of a report further away
    for told in range(max(item - 1, 0), min(item + 2, size)):
        tally = np.zeros(size, dtype=np.int64)
        tally[told] = 1
        stands.append(float(mechanism.debias(tally, 1, np).totals[item]))
    return Reach(min(stands), max(stands))


def _payloads(mechanism: MeanMechanism) -> list[bytes]:
    """Return the payloads among which are the least and the greatest: all, or the two ends."""
    count: int = mechanism.payload_count  # type: ignore[attr-defined]  # all report numbers
    reports = range(count) if count <= MOST_SYMBOLS else (0, count - 1)
    return [report.to_bytes(mechanism.payload_size, "big") for report in reports]
