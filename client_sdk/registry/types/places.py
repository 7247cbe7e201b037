"""Places on the earth: the cells of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import cos, prod, radians

from ...core.dataclass import dataclass
from ...core.errors import InvalidValueError
from ...core.typing import TYPE_CHECKING, ClassVar, Final
from .. import fields
from ..fields import Problems
from .items import ItemDomain
from .joint import MAX_JOINT
from .numbers import NumberDomain

if TYPE_CHECKING:
    from typing import Self

_ENDS: Final = (180, 90)  # degrees from 0 that longitude and latitude reach

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
    coded = True
    python_type = "tuple[float, float]"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
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

    @cached_property
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
        # the last cell holds the end
        return self.cell(min(row, rows - 1), min(column, columns - 1))

    def cell(self, row: int, column: int) -> int:
        """Return the item of a cell."""
        return row * self.shape[1] + column

    def place(self, item: int) -> tuple[int, int]:
        """Return the row and the column of *item*."""
        return divmod(item, self.shape[1])

    def corners(self, item: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Return the west, south, east and north end of a cell, in degrees."""
        row, column = self.place(item)
        parallels, meridians = self._lines
        return meridians[column], parallels[row], meridians[column + 1], parallels[row + 1]

    @cached_property
    def _lines(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """The latitudes and the longitudes that cells end at; fractions take long to add."""
        rows, columns = self.shape
        south, west = self.latitude.minimum, self.longitude.minimum
        return (
            tuple(south + row * self.latitude.step for row in range(rows + 1)),
            tuple(west + column * self.longitude.step for column in range(columns + 1)),
        )

    def centre(self, item: int) -> tuple[Fraction, Fraction]:
        """Return the longitude and the latitude of the middle of a cell, in degrees."""
        west, south, east, north = self.corners(item)
        return (west + east) / 2, (south + north) / 2

    def item_in_words(self, item: int) -> str:
        """Return where the cell is."""
        return _area(self.corners(item))

    def headline(self, item: str, measure: str = "") -> str:
        """Return where the cell is."""
        cell = self._find(item)
        return item if cell is None else self.item_in_words(cell)

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

    @classmethod
    def declared(
        cls, canonical: Mapping[str, object], parameters: Mapping[str, int]
    ) -> Mapping[str, object]:
        """Return the corners with fractions for texts."""
        corners = {
            key: [fields.fraction_of(end) for end in ends]
            for key, ends in canonical.items()
            if key in ("min", "max") and isinstance(ends, list)
        }
        return {**canonical, **corners}

    def as_json(self) -> dict[str, object]:
        """Return the corners as floats."""
        west, south, east, north = map(float, self.box)
        return {"min": (west, south), "max": (east, north), "cells": (*reversed(self.shape),)}

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return (
            f"Longitude {self.longitude.ends} and latitude {self.latitude.ends}, in this order;"
            " what lies beyond counts as the nearest cell. "
        )


def _area(ends: Sequence[Fraction]) -> str:
    """Return in words what lies between the west, south, east and north end."""
    west, south, east, north = map(float, ends)
    return f"from {_span(west, east, 'west', 'east')}, {_span(south, north, 'south', 'north')}"


def _span(low: float, high: float, minus: str, plus: str) -> str:
    """Return a range of degrees in words, with sides of the world instead of signs."""
    if low >= 0:
        return f"{low:.6g}° to {high:.6g}° {plus}"
    if high <= 0:
        return f"{abs(high):.6g}° to {abs(low):.6g}° {minus}"
    return f"{abs(low):.6g}° {minus} to {high:.6g}° {plus}"


def _two_digits(number: float) -> str:
    return f"{float(f'{number:.2g}'):,g}"


def _corner(place: str, entry: object, problems: Problems) -> tuple[Fraction, Fraction] | None:
    """Return a pair of longitude and latitude, in degrees."""
    degrees = list(entry) if isinstance(entry, list) and len(entry) == len(_ENDS) else [None]
    ignored = Problems()  # one line for the corner says it all
    numbers = [
        number for degree in degrees if (number := fields.decimal("", degree, ignored)) is not None
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
