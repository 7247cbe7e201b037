"""Dots with whiskers: a number of each segment, grouped by item where there are several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..analytics.rows import ITEM, Row
from .axes import FOOT, bottom_axis
from .columns import Columns
from .frame import DEFAULT, Face, Note, Picture, finish, nothing, subtitle_of
from .labels import label_of, named, unit_words, varying
from .marks import dot, lying_whisker, mark
from .number import extent, numbers_of, reading
from .palette import SERIES
from .remarks import remarks
from .scale import Linear
from .svg import Element

ROW: Final = 24  # user units
_HEADER: Final = 24  # user units
_NEAR_ZERO: Final = 0.4  # of the range of the numbers: how far off zero may be and still be shown


def dots(rows: Sequence[Row], title: str, face: Face = DEFAULT) -> str:
    """Return an SVG of *rows* in their order: a dot with its interval each."""
    return finish(dots_picture(rows, title, face), face)


def dots_picture(rows: Sequence[Row], title: str, face: Face) -> Picture:
    """Return the dots of *rows*, which share a unit; grouped by item if something else varies."""
    if not any(map(numbers_of, rows)):
        return nothing(title, rows, face)
    shown, unit = rows[: face.most_rows], rows[0].unit
    header = _header(shown)
    labels, common = named(shown, [header] if header else ())
    groups = list(dict.fromkeys(row.dimensions.get(header, "") for row in shown)) if header else []
    columns = Columns.of(shown, [*labels, *groups], face, unit)
    ticks, scale = columns.scale(*_ends(extent(shown)))
    foot = float(ROW * len(shown) + _HEADER * len(groups) + 6)
    body = bottom_axis(ticks, scale, unit, 0, foot)
    body += _body(shown, labels, header, scale, columns)
    notes = remarks(shown, "hollow: so far, the period is still running")
    if len(rows) > len(shown):
        notes.append(Note(f"and {len(rows) - len(shown):,} more"))
    return Picture(
        title,
        subtitle_of(shown, common, unit_words(unit)),
        _described(shown),
        tuple(body),
        foot + FOOT,
        tuple(notes),
    )


def _header(rows: Sequence[Row]) -> str | None:
    """Return the dimension that makes groups: the item, if segments vary as well."""
    names = varying(rows)
    if len(names) < 2:
        return None
    return ITEM if ITEM in names else names[0]


def _ends(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    if 0 < low <= _NEAR_ZERO * (high - low):
        return 0.0, high
    if 0 > high >= -_NEAR_ZERO * (high - low):
        return low, 0.0
    return ends


def _body(
    rows: Sequence[Row], labels: Sequence[str], header: str | None, scale: Linear, columns: Columns
) -> Iterator[Element]:
    numbers = {label: i % SERIES + 1 for i, label in enumerate(dict.fromkeys(labels))}
    groups: dict[str, list[tuple[Row, str]]] = {}
    for row, label in zip(rows, labels, strict=True):
        groups.setdefault(row.dimensions.get(header, "") if header else "", []).append((row, label))
    y = 3.0
    for group, members in groups.items():
        if header:
            yield columns.name(group, y + _HEADER / 2 + 2, "value")
            y += _HEADER
        for row, label in members:
            series = numbers[label] if header else 1
            yield from _drawn(row, label, group, y + ROW / 2, series, scale, columns)
            y += ROW


def _drawn(
    row: Row, label: str, group: str, y: float, series: int, scale: Linear, columns: Columns
) -> Iterator[Element]:
    yield columns.name(label, y)
    found = numbers_of(row)
    full = " · ".join(part for part in (group, label) if part)
    if found is None:
        yield mark(row, full, columns.words(reading(row), y))
        return
    _, whisker = lying_whisker(row, scale, y, f"reach-{series}")
    yield mark(row, full, whisker, dot(scale.at(found.value), y, series, row.is_open, 4.5))
    yield from columns.numbers(row, y)


def _described(rows: Sequence[Row]) -> str:
    first = "; ".join(f"{label_of(row)}: {reading(row)}" for row in rows[:4])
    more = f"; and {len(rows) - 4} more" if len(rows) > 4 else ""
    return f"Dots with intervals of {len(rows)} rows. {first}{more}."
