"""Where the cells of a map lie: degrees in numbers, in words, and as GeoJSON.

An answer names a cell by its row and column; its facts have the bounds of each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ..analytics.rows import ITEM, LEFT_OUT, Row, column_of, flat
from ..core.errors import QueryError

_LONGITUDE: Final = "longitude"
_LATITUDE: Final = "latitude"
COLUMNS: Final = (_LONGITUDE, _LATITUDE, "west", "south", "east", "north")
_CELLS: Final = "cells"  # the fact of an answer that has places


class Box(NamedTuple):
    """What lies between four ends, in degrees; west and south of 0 are negative."""

    west: float
    south: float
    east: float
    north: float

    @property
    def middle(self) -> tuple[float, float]:
        """Longitude and latitude of the middle."""
        return (self.west + self.east) / 2, (self.south + self.north) / 2

    @property
    def longitude(self) -> str:
        """From west to east in words: "8° to 9° E"."""
        return _span(self.west, self.east, "W", "E")

    @property
    def latitude(self) -> str:
        """From south to north in words: "47° to 48° N"."""
        return _span(self.south, self.north, "S", "N")

    @property
    def in_words(self) -> str:
        """The place as charts call it."""
        return f"{self.latitude}, {self.longitude}"


def degrees(number: float, minus: str, plus: str) -> str:
    """Return *number* with its side of the world in place of a sign; 0 has none."""
    side = f" {plus if number > 0 else minus}" if round(number, 9) else ""
    return f"{abs(number):.6g}°{side}"


def places_of(facts: Mapping[str, Any]) -> dict[str, Box]:
    """Return the place of each item in the *facts* of an answer; none if it is no map."""
    return {item: Box(*ends) for item, ends in facts.get(_CELLS, {}).items()}


def numbers_of_place(box: Box) -> dict[str, float]:
    """Return the columns of a place: its middle, then its ends, in degrees."""
    return dict(zip(COLUMNS, (*box.middle, *box), strict=True))


def records_of(rows: Sequence[Row], facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return *rows* flat; a map's rows have their cells' degrees after the dimensions."""
    places, others = places_of(facts), _others(facts)
    said = {LEFT_OUT: "; ".join(facts[LEFT_OUT])} if LEFT_OUT in facts else {}
    if not places:
        return [flat(row, others) | said for row in rows]
    return [_with_place(row, places.get(row.item), others) | said for row in rows]


def _with_place(row: Row, box: Box | None, others: Collection[str]) -> dict[str, Any]:
    place = dict.fromkeys(COLUMNS) if box is None else numbers_of_place(box)
    dimensions = {column_of(name, others): value for name, value in row.dimensions.items()}
    return {**dimensions, **place, **flat(row, others)}


def leading_columns(rows: Sequence[Row], facts: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns before the numbers: dimensions, then a place."""
    others = _others(facts)
    dimensions = (column_of(name, others) for row in rows for name in row.dimensions)
    return [*dict.fromkeys(dimensions), *(COLUMNS if places_of(facts) else ())]


def _others(facts: Mapping[str, Any]) -> tuple[str, ...]:
    places = COLUMNS if places_of(facts) else ()
    return (*places, LEFT_OUT) if LEFT_OUT in facts else places


def located(rows: Sequence[Row], facts: Mapping[str, Any]) -> Sequence[Row]:
    """Return *rows*; a map's rows have latitude and longitude in words for their cells."""
    places = places_of(facts)
    if not places:
        return rows
    return [_in_words(row, places[row.item]) if row.item in places else row for row in rows]


def _in_words(row: Row, box: Box) -> Row:
    rest = {name: value for name, value in row.dimensions.items() if name != ITEM}
    return replace(row, dimensions={**rest, _LATITUDE: box.latitude, _LONGITUDE: box.longitude})


def geojson_of(rows: Sequence[Row], facts: Mapping[str, Any]) -> str:
    """Return the cells of a map as a collection of features: polygons with their numbers.

    Shares are parts of 1; a cell without a number says why in ``reason``.

    Raises: QueryError: the answer is no map.
    Source: RFC 7946: longitude first, rings against the clock, degrees of WGS 84.
    """
    places = places_of(facts)
    if not places:
        raise QueryError("geojson", "is for answers of the verb map, which have places; take csv")
    features = [_feature(row, places[row.item]) for row in rows if row.item in places]
    west, south, east, north = zip(*places.values(), strict=True)
    collection = {
        "type": "FeatureCollection",
        "bbox": [min(west), min(south), max(east), max(north)],
        "features": features,
        **({LEFT_OUT: facts[LEFT_OUT]} if LEFT_OUT in facts else {}),
    }
    return json.dumps(collection, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _feature(row: Row, box: Box) -> dict[str, Any]:
    west, south, east, north = box
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {"place": box.in_words, **flat(row, ("place",))},
    }


def _span(low: float, high: float, minus: str, plus: str) -> str:
    if low < 0 < high:
        return f"{degrees(low, minus, plus)} to {degrees(high, minus, plus)}"
    side = plus if high > 0 else minus
    return f"{abs(low):.6g}° to {abs(high):.6g}° {side}"
