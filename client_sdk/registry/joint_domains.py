"""Domains whose items are joint values: a place, two answers, a step reached, a series of periods.

Each value becomes one item, so that every mechanism of items serves it and one report tells of all
its parts together.  What one report does not join, no analysis of many reports can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import cos, prod, radians
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..core.dataclass import dataclass
from ..core.errors import InvalidValueError
from . import fields
from .domains import ItemDomain, NumberDomain, SetDomain, listed
from .fields import Problems

if TYPE_CHECKING:
    from typing import Self

MAX_JOINT: Final = 4_096  # items of a grid or a pair; the share of a cell of more drowns in noise
LEAST_PERIODS, MOST_PERIODS = 2, 8  # 4 to 256 items
JOINER: Final = "|"  # between the labels of a pair, which therefore hold none
NO_STEP: Final = "none"  # the item of a funnel of which no step was reached

_ENDS: Final = (180, 90)  # degrees from 0 to which longitude and latitude go
_KM_PER_DEGREE: Final = 111.2  # kilometres; the mean of a degree of latitude


@dataclass(frozen=True, init=False)
class GridDomain(ItemDomain):
    """Places, as the cells of a grid on a map: rows from the south, columns from the west.

    The step of ``longitude`` and of ``latitude`` is the width and the height of a cell, in degrees.
    A place outside counts as the nearest cell.  Labels are "row,column".
    """

    longitude: NumberDomain
    latitude: NumberDomain

    types: ClassVar[tuple[str, ...]] = ("location",)
    table_keys = frozenset({"min", "max", "cells"})
    ordered = False
    verb = "map"
    python_type = "tuple[float, float]"
    told_of = "in the cell {item}"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, Any], problems: Problems) -> Self | None:
        """Read two corners, and how many cells lie between them."""
        low, high = (_corner(f"{place}.{key}", entry.get(key), problems) for key in ("min", "max"))
        cells = _cells(f"{place}.cells", entry.get("cells"), problems)
        if low is None or high is None or cells is None:
            return None
        if not all(a < b for a, b in zip(low, high, strict=True)):
            problems.add(f"{place}.max", "must be east and north of min")
            return None
        ends = zip(low, high, cells, strict=True)
        return cls(*(NumberDomain(a, b, (b - a) / n, "degrees") for a, b, n in ends))

    def __init__(self, longitude: NumberDomain, latitude: NumberDomain) -> None:
        """Lay the grid between the ends of both axes, which are whole numbers of steps apart."""
        rows, columns = latitude.size - 1, longitude.size - 1
        labels = tuple(f"{row},{column}" for row in range(rows) for column in range(columns))
        self.__dict__.update(labels=labels, longitude=longitude, latitude=latitude)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.latitude.size - 1, self.longitude.size - 1

    @property
    def box(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """West, south, east and north end, in degrees."""
        west, east = self.longitude.minimum, self.longitude.maximum
        return west, self.latitude.minimum, east, self.latitude.maximum

    def encode(self, value: object, metric: str) -> int:
        """Return the cell of *value*, a pair of longitude and latitude in degrees.

        Raises: InvalidValueError: no list or tuple of two finite numbers; it names the part that
                is wrong, and does not show it.
        """
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise InvalidValueError(metric, "takes a pair of longitude and latitude, in degrees")
        rows, columns = self.shape
        column = int(self.longitude.encode(value[0], f"{metric}, longitude"))
        row = int(self.latitude.encode(value[1], f"{metric}, latitude"))
        return self.cell(min(row, rows - 1), min(column, columns - 1))  # an end is in the last one

    def cell(self, row: int, column: int) -> int:
        """Return the item of a cell."""
        return row * self.shape[1] + column

    def place(self, item: int) -> tuple[int, int]:
        """Return the row and the column of *item*."""
        return divmod(item, self.shape[1])

    def corners(self, item: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Return the west, south, east and north end of a cell, in degrees."""
        row, column = self.place(item)
        west = self.longitude.minimum + column * self.longitude.step
        south = self.latitude.minimum + row * self.latitude.step
        return west, south, west + self.longitude.step, south + self.latitude.step

    def centre(self, item: int) -> tuple[Fraction, Fraction]:
        """Return the longitude and the latitude of the middle of a cell, in degrees."""
        west, south, east, north = self.corners(item)
        return (west + east) / 2, (south + north) / 2

    def told(self, item: int) -> str:
        """Return where the cell is."""
        return _area(self.corners(item))

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        _, south, _, north = self.box
        height = _KM_PER_DEGREE * float(self.latitude.step)
        width = _KM_PER_DEGREE * float(self.longitude.step)
        width *= cos(radians(float(south + north) / 2))
        return (
            f"a place, as one of {self.size:,} areas, each about {_two_digits(width)} km wide and"
            f" {_two_digits(height)} km high, of the map {_area(self.box)}"
        )

    def canonical(self) -> dict[str, object]:
        """Return what the cells mean, exactly, as JSON."""
        west, south, east, north = map(str, self.box)
        return {"min": [west, south], "max": [east, north], "cells": [*reversed(self.shape)]}

    def as_json(self) -> dict[str, object]:
        """Return the corners as floats."""
        west, south, east, north = map(float, self.box)
        return {"min": (west, south), "max": (east, north), "cells": (*reversed(self.shape),)}

    def value_labels(self) -> tuple[str, ...]:
        """Return nothing: a value is two numbers."""
        return ()

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return (
            f"Longitude {self.longitude.ends} and latitude {self.latitude.ends}, in this order;"
            " what lies beyond counts as the nearest cell. "
        )


@dataclass(frozen=True, init=False)
class PairDomain(ItemDomain):
    """Two answers together, each one of its own labels.  Labels are "of the first | of the second".

    Items are in the order of the first answer, then of the second.
    """

    names: tuple[str, str]
    first: ItemDomain
    second: ItemDomain

    types: ClassVar[tuple[str, ...]] = ("pair",)
    table_keys = frozenset({"parts"})
    ordered = False
    verb = "crosstab"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, Any], problems: Problems) -> Self | None:
        """Read two names, each with its labels."""
        place, parts = f"{place}.parts", entry.get("parts")
        if not isinstance(parts, dict) or len(parts) != 2:
            problems.add(place, "must be a table of two names, each with a list of values")
            return None
        before = len(problems.lines)
        names = [fields.name(f"{place}.{name}", name, problems) for name in parts]
        values = [_part(f"{place}.{name}", labels, problems) for name, labels in parts.items()]
        size = prod(map(len, values))
        if size > MAX_JOINT:
            problems.add(place, f"must have at most {MAX_JOINT} pairs of values, not {size}")
        if len(problems.lines) > before:
            return None
        return cls((names[0], names[1]), ItemDomain(values[0]), ItemDomain(values[1]))

    def __init__(self, names: tuple[str, str], first: ItemDomain, second: ItemDomain) -> None:
        """Join every label of *first*, called by the first name, with every one of *second*."""
        labels = tuple(f"{a} {JOINER} {b}" for a in first.labels for b in second.labels)
        self.__dict__.update(labels=labels, names=names, first=first, second=second)

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of each answer by its name, the first one first."""
        return dict(zip(self.names, (self.first.labels, self.second.labels), strict=True))

    def encode(self, value: object, metric: str) -> int:
        """Return the item of *value*, a mapping of both names to a label of each.

        Raises: InvalidValueError: another type, a missing or another name, or an unknown label; it
                names the part that is wrong, and does not show it.
        """
        if not isinstance(value, Mapping) or len(value) != 2 or not _holds(value, self.names):
            rule = f"takes a mapping of {' and '.join(self.names)} to a registered value of each"
            raise InvalidValueError(metric, rule)
        parts = zip(self.names, (self.first, self.second), strict=True)
        first, second = (part.index_of(value[name], f"{metric}, {name}") for name, part in parts)
        return self.cell(first, second)

    def cell(self, first: int, second: int) -> int:
        """Return the item of the label with index *first* and that with index *second*."""
        return first * self.second.size + second

    def place(self, item: int) -> tuple[int, int]:
        """Return the index of the first and of the second label of *item*."""
        return divmod(item, self.second.size)

    def told(self, item: int) -> str:
        """Return both answers with their names."""
        first, second = self.place(item)
        answers = self.first.labels[first], self.second.labels[second]
        return ", ".join(f"{name}: {a}" for name, a in zip(self.names, answers, strict=True))

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        each = (f"{name} (one of: {listed(labels)})" for name, labels in self.parts.items())
        return f"two things together, {' and '.join(each)}"

    def canonical(self) -> dict[str, object]:
        """Return what the items mean, as JSON, in which a list keeps its order."""
        return {"parts": [[name, list(labels)] for name, labels in self.parts.items()]}

    def as_json(self) -> dict[str, object]:
        """Return the parts as objects in a list."""
        return {"parts": [{"name": name, "values": self.parts[name]} for name in self.parts]}

    def value_labels(self) -> tuple[str, ...]:
        """Return nothing: the labels are of two kinds."""
        return ()


def _holds(value: Mapping[object, object], names: Sequence[str]) -> bool:
    return all(name in value for name in names)


@dataclass(frozen=True, init=False)
class FunnelDomain(ItemDomain):
    """The furthest of the ``steps`` that was reached; the first item stands for none of them.

    So the index of an item is how many steps were taken.
    """

    steps: tuple[str, ...]

    types: ClassVar[tuple[str, ...]] = ("funnel",)
    largest = "the furthest"
    aggregates: ClassVar[tuple[str, ...]] = ("last", "most_common", "max")
    verb = "funnel"
    python_type = "{label} | None"
    told_of = "reached {item}"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, Any], problems: Problems) -> Self | None:
        """Read the steps."""
        steps = fields.labels(f"{place}.values", entry.get("values"), problems)
        if NO_STEP in steps:
            problems.add(f"{place}.values", f'must not hold "{NO_STEP}", the item of no step')
            return None
        return cls(steps) if steps else None

    def __init__(self, steps: tuple[str, ...]) -> None:
        """Take the *steps* in order."""
        self.__dict__.update(labels=(NO_STEP, *steps), steps=steps)

    def encode(self, value: object, metric: str) -> int:
        """Return the item of the step *value*; None and "none" stand for no step.

        Raises: InvalidValueError: not in the domain; the error does not show the value.
        """
        return self.index_of(NO_STEP if value is None else value, metric)

    def told(self, item: int) -> str:
        """Return how far it went."""
        return f"as far as {self.labels[item]}" if item else "no step"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"the furthest step that was reached, if any, of: {listed(self.steps)}"

    def canonical(self) -> dict[str, object]:
        """Return the steps, as JSON."""
        return {"values": list(self.steps)}

    @property
    def compared(self) -> tuple[str, ...]:
        """The steps."""
        return self.steps

    def value_labels(self) -> tuple[str, ...]:
        """Return the steps."""
        return self.steps

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return "The furthest step that was reached; None if none was. "


@dataclass(frozen=True, init=False)
class RetentionDomain(ItemDomain):
    """In which of the ``periods`` there was activity.  Labels are bitmaps such as "1011"."""

    periods: tuple[str, ...]

    types: ClassVar[tuple[str, ...]] = ("retention",)
    table_keys = frozenset({"periods"})
    ordered = False
    verb = "retention"
    python_type = "Items[{label}]"
    told_of = "{measure}came back in {item}"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, Any], problems: Problems) -> Self | None:
        """Read the periods."""
        place = f"{place}.periods"
        periods = fields.labels(place, entry.get("periods"), problems)
        if not periods:
            return None
        if len(periods) > MOST_PERIODS:
            problems.add(place, f"must hold {LEAST_PERIODS} to {MOST_PERIODS} periods")
            return None
        return cls(periods)

    def __init__(self, periods: tuple[str, ...]) -> None:
        """Take the *periods* in order; an item is a number whose highest bit is of the first."""
        count = len(periods)
        labels = tuple(f"{item:0{count}b}" for item in range(1 << count))
        self.__dict__.update(labels=labels, periods=periods)

    @cached_property
    def _active(self) -> SetDomain:
        return SetDomain(self.periods)

    def encode(self, value: object, metric: str) -> int:
        """Return the item of *value*, a list, tuple, set or frozenset of periods.

        Raises: InvalidValueError: another type, or what is no period; it is not shown.
        """
        last = len(self.periods) - 1
        return sum(1 << last - period for period in self._active.encode(value, metric))

    def bits(self, item: int) -> tuple[int, ...]:
        """Return for each period whether *item* has activity in it, 1 or 0."""
        return tuple(map(int, self.labels[item]))

    def told(self, item: int) -> str:
        """Return the periods with activity."""
        held = [period for period, bit in zip(self.periods, self.bits(item), strict=True) if bit]
        return f"active in {' and '.join(held)}" if held else "never active"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"in which of these periods there was activity, if any: {listed(self.periods)}"

    def canonical(self) -> dict[str, object]:
        """Return the periods, as JSON."""
        return {"periods": list(self.periods)}

    @property
    def compared(self) -> tuple[str, ...]:
        """The periods in which devices can come back."""
        return self.periods[1:]

    def value_labels(self) -> tuple[str, ...]:
        """Return the periods."""
        return self.periods

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return "The periods with activity. "


def _area(ends: Sequence[Fraction]) -> str:
    """Return in words what lies between the west, south, east and north end."""
    west, south, east, north = map(float, ends)
    return f"from {_span(west, east, 'west', 'east')}, {_span(south, north, 'south', 'north')}"


def _span(low: float, high: float, minus: str, plus: str) -> str:
    """Return a range of degrees in words: nobody reads a sign as a side of the world."""
    if low >= 0:
        return f"{low:.6g}° to {high:.6g}° {plus}"
    if high <= 0:
        return f"{abs(high):.6g}° to {abs(low):.6g}° {minus}"
    return f"{abs(low):.6g}° {minus} to {high:.6g}° {plus}"


def _two_digits(number: float) -> str:
    return f"{float(f'{number:.2g}'):,g}"


def _corner(place: str, entry: object, problems: Problems) -> tuple[Fraction, Fraction] | None:
    """Return a pair of longitude and latitude, in degrees."""
    found = list(entry) if isinstance(entry, list) and len(entry) == len(_ENDS) else [None]
    ignored = Problems()  # one line for the corner says it all
    numbers = [
        number for each in found if (number := fields.decimal("", each, ignored)) is not None
    ]
    if len(numbers) == len(_ENDS) and all(map(_within, numbers, _ENDS)):
        return numbers[0], numbers[1]
    rule = "must be [longitude, latitude] in degrees, from [-180, -90] to [180, 90]"
    problems.add(place, rule)
    return None


def _within(number: Fraction, end: int) -> bool:
    return -end <= number <= end


def _cells(place: str, entry: object, problems: Problems) -> tuple[int, int] | None:
    """Return how many columns and rows a grid has."""
    counts = entry if isinstance(entry, list) and all(type(n) is int for n in entry) else []
    if len(counts) == 2 and min(counts) > 0 and 2 <= prod(counts) <= MAX_JOINT:
        return counts[0], counts[1]
    problems.add(place, f"must be [columns, rows], integers of 2 to {MAX_JOINT} cells together")
    return None


def _part(place: str, entry: object, problems: Problems) -> tuple[str, ...]:
    labels = fields.labels(place, entry, problems)
    if any(JOINER in label for label in labels):
        problems.add(place, f'must not hold "{JOINER}", which joins the labels of a pair')
    return labels
