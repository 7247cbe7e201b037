"""The columns of records: what each cell of a histogram stands for, and values drawn within it.

Pure.  A cell is an item, or a bin of numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry.domains import NumberDomain
from client_sdk.registry.joint_domains import GridDomain, PairDomain
from client_sdk.registry.metric import Metric

PLACE_DIGITS: Final = 6  # of a degree: a tenth of a metre, far below any cell


class Axis(ABC):
    """One column of records."""

    name: str

    @abstractmethod
    def told(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns that tell what each cell is, each of shape (cells,)."""

    @abstractmethod
    def draw(self, cells: Any, generator: np.random.Generator) -> list[Any]:
        """Return one value from each of *cells*, indices of shape (records,)."""

    @property
    @abstractmethod
    def note(self) -> str:
        """What a value of the records is, in words."""


@dataclass(frozen=True)
class Labels(Axis):
    """The label of each cell."""

    name: str
    labels: tuple[str, ...]

    def told(self) -> Mapping[str, Sequence[str]]:
        """Return the labels."""
        return {self.name: self.labels}

    def draw(self, cells: Any, generator: np.random.Generator) -> list[str]:
        """Return the label of each of *cells*; nothing is left to chance."""
        return [self.labels[cell] for cell in cells.tolist()]

    @property
    def note(self) -> str:
        """What a value is."""
        return f"one of {len(dict.fromkeys(self.labels))} declared values"


@dataclass(frozen=True)
class Numbers(Axis):
    """Numbers on the grid of *domain*, from the *first* to the *last* position of each cell."""

    name: str
    domain: NumberDomain
    first: Any
    last: Any

    def told(self) -> Mapping[str, Sequence[float]]:
        """Return the lowest and the highest number of each cell."""
        ends = ((f"{self.name}_from", self.first), (f"{self.name}_to", self.last))
        return {name: self._numbers(positions) for name, positions in ends}

    def draw(self, cells: Any, generator: np.random.Generator) -> list[float]:
        """Return a number of the grid from each of *cells*, all of a cell with equal chance."""
        return self._numbers(generator.integers(self.first[cells], self.last[cells] + 1))

    @property
    def note(self) -> str:
        """What a value is."""
        low, high, step = map(float, (self.domain.minimum, self.domain.maximum, self.domain.step))
        return (
            f"{self.domain.unit}, from {low:g} to {high:g} in steps of {step:g}; "
            "numbers beyond an end were counted as that end"
        )

    def _numbers(self, positions: Any) -> list[float]:
        """Return positions as numbers: whole ones as int, others as the nearest float."""
        distinct, places = np.unique(positions, return_inverse=True)
        exact = [self.domain.minimum + self.domain.step * at for at in distinct.tolist()]
        whole = (self.domain.minimum.denominator, self.domain.step.denominator) == (1, 1)
        numbers = [int(number) if whole else float(number) for number in exact]
        return [numbers[place] for place in places.ravel().tolist()]


@dataclass(frozen=True)
class Degrees(Axis):
    """Degrees, from *low* to *high* of each cell."""

    name: str
    low: Any
    high: Any

    def told(self) -> Mapping[str, Sequence[float]]:
        """Return the ends of each cell."""
        ends = ((f"{self.name}_from", self.low), (f"{self.name}_to", self.high))
        return {name: end.round(PLACE_DIGITS).tolist() for name, end in ends}

    def draw(self, cells: Any, generator: np.random.Generator) -> list[float]:
        """Return a place from each of *cells*, anywhere within with equal chance."""
        drawn: list[float] = (
            generator.uniform(self.low[cells], self.high[cells]).round(PLACE_DIGITS).tolist()
        )
        return drawn

    @property
    def note(self) -> str:
        """What a value is."""
        return "degrees, anywhere within a cell of the declared grid"


def axes_of(metric: Metric) -> tuple[Axis, ...]:
    """Return the columns of records of *metric*, whose domain has items or bins."""
    domain, mechanism = metric.domain, metric.mechanism
    if isinstance(domain, PairDomain):
        places = [domain.place(item) for item in range(domain.size)]
        firsts = tuple(domain.first.labels[first] for first, _ in places)
        seconds = tuple(domain.second.labels[second] for _, second in places)
        return Labels(domain.names[0], firsts), Labels(domain.names[1], seconds)
    if isinstance(domain, GridDomain):
        ends = [[float(end) for end in domain.corners(item)] for item in range(domain.size)]
        west, south, east, north = np.array(ends).T
        return Degrees("longitude", west, east), Degrees("latitude", south, north)
    if domain.labels:
        return (Labels(metric.name, domain.labels),)
    assert domain.grid is not None  # noqa: S101 - the caller has asked
    assert isinstance(mechanism, DistributionMechanism)  # noqa: S101 - alike
    return (_bins(metric.name, domain.grid, mechanism),)


def _bins(name: str, domain: NumberDomain, mechanism: DistributionMechanism) -> Numbers:
    """Return the grid points nearest to each bin; one halfway belongs to the upper bin."""
    width = Fraction(mechanism.top, mechanism.bins - 1)
    starts = [max(ceil((i - Fraction(1, 2)) * width), 0) for i in range(mechanism.bins)]
    ends = [*(start - 1 for start in starts[1:]), mechanism.top]
    return Numbers(name, domain, np.array(starts), np.array(ends))
