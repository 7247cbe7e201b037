"""Tallies of many devices from the exact law of one report, without a call a device.

The payloads of a mechanism have a chance for each value that a device may hold.  Reports of devices
that hold the same are a multinomial of it, and each payload adds its own to the tally.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, Final, cast

import numpy as np

from client_sdk.mechanisms import DistributionMechanism, KeyValueMechanism, Mechanism
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.pgr import PGR
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.numbers import KeyValueDomain
from tests.support.enumeration.enumeration import distribution

_CELLS: Final = 1 << 22  # of one draw: 32 MiB
_MOST_SUBSETS: Final = 1 << 14


@dataclass(frozen=True)
class Law:
    """Chances of payloads by value, shape (values, payloads), and the tally of each payload."""

    chances: Any
    cells: Any  # shape (payloads, tally size); None where payloads are the cells

    def drawn(self, held: Any, times: int, generator: np.random.Generator) -> Any:
        """Return *times* tallies of devices of which so many hold each value.

        Args: held: shape (values,), or (times, values) for another population each time.
        """
        counts = np.broadcast_to(np.asarray(held), (times, len(self.chances)))
        step = max(1, _CELLS // self.chances.shape[1])
        return np.concatenate(
            [self._block(counts[i : i + step], generator) for i in range(0, times, step)]
        )

    def _block(self, counts: Any, generator: np.random.Generator) -> Any:
        found = np.zeros((len(counts), self.chances.shape[1]), dtype=np.int64)
        for column, chances in zip(counts.T, self.chances, strict=True):
            if column.any():
                found += generator.multinomial(column, chances)
        return found if self.cells is None else found @ self.cells


@dataclass(frozen=True)
class Bits:
    """The law of unary encoding, whose bits are independent."""

    p: float
    q: float

    def drawn(self, held: Any, times: int, generator: np.random.Generator) -> Any:
        """Return *times* tallies, as ``Law`` does."""
        counts = np.broadcast_to(np.asarray(held), (times, np.shape(held)[-1]))
        others = counts.sum(axis=1, keepdims=True) - counts
        return generator.binomial(counts, self.p) + generator.binomial(others, self.q)


@dataclass(frozen=True)
class Points:
    """The law of reports that are points: orthogonal to that of the item with the chance p.

    ``own`` and ``others`` list the points that are and are not, a row an item.
    """

    p: float
    own: Any
    others: Any

    def drawn(self, held: Any, times: int, generator: np.random.Generator) -> Any:
        """Return *times* tallies, as ``Law`` does; many items are drawn sooner so."""
        counts = np.broadcast_to(np.asarray(held), (times, len(self.own)))
        return np.array([self._one(row, generator) for row in counts])

    def _one(self, counts: Any, generator: np.random.Generator) -> Any:
        orthogonal = generator.binomial(counts, self.p)
        found = np.zeros(self.own.shape[1] + self.others.shape[1], dtype=np.int64)
        for devices, lists in ((orthogonal, self.own), (counts - orthogonal, self.others)):
            items = np.repeat(np.arange(len(lists)), devices)
            points = lists[items, generator.integers(lists.shape[1], size=items.size)]
            found += np.bincount(points, minlength=found.size)
        return found


def law_of(mechanism: Mechanism[Any]) -> Law | Bits | Points:
    """Return the law of reports of items, of bins, or of grid positions."""
    if isinstance(mechanism, OUE | SUE):
        return Bits(float(mechanism.channel.p), float(mechanism.channel.q))
    if isinstance(mechanism, GRR):
        p, q = float(mechanism.channel.p), float(mechanism.channel.q)
        return Law(_normal(q + (p - q) * np.eye(mechanism.domain_size)), None)
    if isinstance(mechanism, SubsetSelection):
        return _of_subsets(mechanism)
    if isinstance(mechanism, PGR):
        return _of_points(mechanism)
    if isinstance(mechanism, DistributionMechanism):
        return Law(_normal(mechanism.spread(np.eye(mechanism.bins), np)), None)
    values = [Fraction(place) for place in range(mechanism.domain_size)]
    return _enumerated(mechanism, values)


def law_of_key_values(metric: Metric) -> Law:
    """Return the law of devices that hold one key: each key with 0, then each with the top.

    A number between them is one of both by chance, and so is a mixture of their laws.
    """
    mechanism = cast("KeyValueMechanism", metric.mechanism)
    assert isinstance(metric.domain, KeyValueDomain)
    keys = range(mechanism.domain_size)
    ends = Fraction(0), Fraction(mechanism.top)
    return _enumerated(mechanism, [{key: end} for end in ends for key in keys])


def _enumerated(mechanism: Mechanism[Any], values: list[Any]) -> Law:
    """Follow the mechanism's own code along every path of its random choices."""
    laws = [
        distribution(lambda randomness, v=value: mechanism.randomize(v, randomness)).pmf  # type: ignore[misc]  # bound now
        for value in values
    ]
    payloads = sorted({cast("bytes", payload) for law in laws for payload in law})
    chances = [[float(law.get(payload, 0)) for payload in payloads] for law in laws]
    return Law(_normal(np.array(chances)), np.array([mechanism.tally(p, np) for p in payloads]))


def _of_subsets(mechanism: SubsetSelection) -> Law:
    items, size, truth = mechanism.domain_size, mechanism.subset_size, float(mechanism.truth)
    assert comb(items, size) <= _MOST_SUBSETS
    subsets = list(combinations(range(items), size))
    cells = np.zeros((len(subsets), items), dtype=np.int64)
    for row, subset in zip(cells, subsets, strict=True):
        row[list(subset)] = 1
    inside, outside = truth / comb(items - 1, size - 1), (1 - truth) / comb(items - 1, size)
    return Law(_normal(np.where(cells.T, inside, outside)), cells)


def _of_points(mechanism: PGR) -> Points:
    met = np.rint(mechanism.report_sums(np.eye(mechanism.domain_size), np)).astype(bool)
    own, others = (np.nonzero(part)[1].reshape(len(met), -1) for part in (met, ~met))
    return Points(float(mechanism.channel.p), own, others)


def _normal(chances: Any) -> Any:
    """Return *chances* whose rows sum to 1 in floats too."""
    return chances / chances.sum(axis=1, keepdims=True)
