"""A release: a consistent histogram, published once and for all, and records drawn from it.  Pure.

All of it is computed from randomized reports alone, so it costs no privacy, however often it is
made and whatever is done with it: that is post-processing, and it needs no noise.  So the records
may be drawn with any generator, from a published seed.

A column of records stands for the cells of a histogram: items, or bins of numbers within which
values are drawn.  Records are apportioned, not drawn one by one: each cell gets its share of them
rounded up or down, with the expectation kept.  That adds less chance than independent draws, and
none where there are as many records as reports.

Source: Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*, 2014, proposition
    2.1: post-processing.  Madow, Annals of Mathematical Statistics 1949: systematic sampling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final, TypeAlias

import numpy as np

from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry.domain import NumberGrid
from client_sdk.registry.encodings import VectorEncoding
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.joint import PairDomain
from client_sdk.registry.types.places import GridDomain

from ...analytics.postprocess import simplex_l1
from ...analytics.records import is_of_records
from ...analytics.verb import Slice, widened
from ...core.errors import QueryError
from ...estimation.arrays import Floats, Ints
from ...estimation.estimate import Estimate, shares
from ...estimation.histogram import best_fit

_PLACE_DIGITS: Final = 6  # of a degree: a tenth of a metre, far below any cell
MAX_RECORDS: Final = 5_000_000  # a gigabyte of memory while they are written
Columns: TypeAlias = Mapping[str, Sequence[Any]]


class Axis(ABC):
    """One column of records."""

    name: str

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns that tell what each cell is, each of shape (cells,)."""

    @abstractmethod
    def draw(self, cells: Ints, generator: np.random.Generator) -> list[Any]:
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

    def columns(self) -> Mapping[str, Sequence[str]]:
        """Return the labels."""
        return {self.name: self.labels}

    def draw(self, cells: Ints, generator: np.random.Generator) -> list[str]:
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
    domain: NumberGrid
    first: Ints
    last: Ints

    def columns(self) -> Mapping[str, Sequence[float]]:
        """Return the lowest and the highest number of each cell."""
        ends = ((f"{self.name}_from", self.first), (f"{self.name}_to", self.last))
        return {name: self._numbers(positions) for name, positions in ends}

    def draw(self, cells: Ints, generator: np.random.Generator) -> list[float]:
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

    def _numbers(self, positions: Ints) -> list[float]:
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
    low: Floats
    high: Floats

    def columns(self) -> Mapping[str, Sequence[float]]:
        """Return the ends of each cell."""
        ends = ((f"{self.name}_from", self.low), (f"{self.name}_to", self.high))
        return {name: end.round(_PLACE_DIGITS).tolist() for name, end in ends}

    def draw(self, cells: Ints, generator: np.random.Generator) -> list[float]:
        """Return a place from each of *cells*, anywhere within with equal chance."""
        drawn: list[float] = (
            generator.uniform(self.low[cells], self.high[cells]).round(_PLACE_DIGITS).tolist()
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


def _bins(name: str, domain: NumberGrid, mechanism: DistributionMechanism) -> Numbers:
    """Return the grid points nearest to each bin; one halfway belongs to the upper bin."""
    width = Fraction(mechanism.top, mechanism.bins - 1)
    starts = [max(ceil((i - Fraction(1, 2)) * width), 0) for i in range(mechanism.bins)]
    ends = [*(start - 1 for start in starts[1:]), mechanism.top]
    return Numbers(name, domain, np.array(starts), np.array(ends))


@dataclass(frozen=True)
class Part:
    """The histogram of one slice: ``counts`` of devices by cell, int64, shape (cells,).

    They sum to the reports, but for sets, of whose items a device may hold many.  ``estimates`` are
    the unbiased shares of items with their intervals; the bins of numbers have none.  ``smoothing``
    is the standard deviation of the bell that smoothed those, as a part of the range.
    """

    slice: Slice
    counts: Ints
    estimates: tuple[Estimate, ...]
    smoothing: float | None = None


def refusal(metric: Metric, *, records: bool) -> str | None:
    """Return why there is no histogram of *metric*, or no *records* drawn from one; else None."""
    domain = metric.domain
    if domain.numbers and domain.labels:
        return "tells of every key apart; ask for key_values instead"
    if domain.grid:
        if isinstance(metric.mechanism, DistributionMechanism):
            return None
        return 'tells a mean only; a histogram needs ask = ["quantiles"], or a category of ranges'
    if is_of_records(metric):
        return "tells of one attribute a report, so a row cannot be whole; ask for crosstab instead"
    if domain.encodes is VectorEncoding:
        return "tells the mean of every coordinate, no shares; ask for vector instead"
    if not domain.labels:
        return "has no closed list of values"
    if records and domain.several:
        return "is a set, of which reports do not tell what goes together; release the histogram"
    return None


def parts_of(slices: Sequence[Slice], alpha: float) -> tuple[Part, ...]:
    """Return the histogram of each of *slices*, all of one metric that has no ``refusal``.

    Raises: QueryError: a slice may have no number; nothing is released without it.
            InvalidTallyError: a tally cannot have come from its reports.
    """
    for part in slices:
        if part.refusal is not None or not part.n:
            named = ", ".join(part.dimensions.values())
            where = f"{part.metric.name} of {named}" if named else part.metric.name
            way = "; release it by fewer dimensions, or withhold small groups" if named else ""
            raise QueryError("metric", f"{part.refusal or 'no reports'}{way}", where)
    return tuple(_part(slice_, alpha) for slice_ in slices)


def _part(slice_: Slice, alpha: float) -> Part:
    domain, mechanism, n = slice_.metric.domain, slice_.metric.mechanism, slice_.n
    if isinstance(mechanism, DistributionMechanism):
        fit = best_fit(mechanism, slice_.tally, n)
        return Part(slice_, simplex_l1(fit.shares * n, n), (), fit.width)
    estimates = tuple(widened(slice_, shares(mechanism, slice_.tally, n, alpha), alpha))
    counts = np.array([estimate.value for estimate in estimates]) * n
    if domain.several:
        return Part(slice_, np.rint(counts.clip(0, n)).astype(np.int64), estimates)
    return Part(slice_, simplex_l1(counts, n), estimates)


def table(parts: Sequence[Part]) -> Columns:
    """Return the histogram as columns: what a row is of, its count, and the unbiased share.

    Raises: QueryError: two columns would have one name.
    """
    metric = parts[0].slice.metric
    edges = [column for axis in axes_of(metric) for column in axis.columns().items()]
    cells = len(parts[0].counts)
    columns = [
        *_dimensions(parts, cells),
        *((name, [*values] * len(parts)) for name, values in edges),
        ("count", [count for part in parts for count in part.counts.tolist()]),
        ("share", [float(count / part.slice.n) for part in parts for count in part.counts]),
    ]
    estimates = [estimate for part in parts for estimate in part.estimates]
    if estimates:
        columns.append(("unbiased", [estimate.value for estimate in estimates]))
        for name in ("ci_low", "ci_high", "std_error"):
            columns.append((name, [getattr(estimate, name) for estimate in estimates]))
    return _distinct(columns)


def records(parts: Sequence[Part], size: int, seed: int) -> Columns:
    """Return *size* records as columns, in random order; the same for the same *seed*.

    Raises: QueryError: two columns would have one name, or there are too many records.
    """
    if not 1 <= size <= MAX_RECORDS:
        raise QueryError("synthetic", f"must be from 1 to {MAX_RECORDS}")
    generator = np.random.default_rng(seed)
    counts = np.concatenate([part.counts for part in parts])
    each = apportioned(counts, size, int(generator.integers(counts.sum())))
    cells = len(parts[0].counts)
    drawn = generator.permutation(np.repeat(np.arange(counts.size), each))
    of_part, of_cell = np.divmod(drawn, cells)
    columns = [
        (name, [values[part] for part in of_part.tolist()])
        for name, values in _dimensions(parts, 1)
    ]
    for axis in axes_of(parts[0].slice.metric):
        columns.append((axis.name, axis.draw(of_cell, generator)))
    return _distinct(columns)


def apportioned(counts: Ints, size: int, start: int) -> Any:
    """Return how many of *size* records each cell gets: its part, rounded up or down.

    With *start* uniform over 0 … sum - 1 the expectation of each is exactly its part.

    Args: counts: int64, not negative, shape (cells,), with a sum above 0.
    """
    total = int(counts.sum())
    ends = [(size * end + start) // total for end in np.cumsum(counts).tolist()]
    return np.diff(np.array([0, *ends], dtype=np.int64))


def _dimensions(parts: Sequence[Part], rows: int) -> list[tuple[str, list[Any]]]:
    """Return a column for each dimension, in which each part has so many *rows*."""
    return [
        (name, [part.slice.dimensions[name] for part in parts for _ in range(rows)])
        for name in parts[0].slice.dimensions
    ]


def _distinct(columns: Sequence[tuple[str, list[Any]]]) -> Columns:
    names = [name for name, _ in columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise QueryError(
            "columns", f"{twice[0]} would be there twice; rename the metric, part or dimension"
        )
    return dict(columns)
