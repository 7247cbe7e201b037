"""Dimensions of rows in the words of a page: "yes", "the others", "10 to 16 Nov".

Files and the API keep what the rows say: "true", "(rest)", "2026-11-10/2026-11-16".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Final

from ..analytics.rows import AGAINST, ITEM, REST, Row, altered

_ANSWERS: Final = MappingProxyType({"true": "yes", "false": "no"})
_OTHERS: Final = "the others"
_BETWEEN: Final = "/"  # of the first and the last day of a stretch


def worded(rows: Sequence[Row], is_boolean: bool = False) -> list[Row]:
    """Return *rows* with dimensions as people call them.

    Args: is_boolean: the items are those of a yes or no.
    """
    values = {value for row in rows for value in row.dimensions.values()}
    names = days_in_words(values)
    items = _ANSWERS if is_boolean else {}
    if not names and not items and REST not in values:
        return list(rows)

    def word(name: str, value: str) -> str:
        if name == AGAINST and value == REST:
            return _OTHERS
        return items.get(value, value) if name == ITEM else names.get(value, value)

    return [
        altered(row, dimensions={name: word(name, value) for name, value in row.dimensions.items()})
        for row in rows
    ]


def days_in_words(labels: Iterable[str]) -> Mapping[str, str]:
    """Return those of *labels* that are stretches of days, in words: "28 Oct to 3 Nov".

    Single days are words beside stretches only.  Years are told where there are several.
    """
    stretches = {label: days for label in labels if (days := _days(label))}
    if not any(_BETWEEN in label for label in stretches):
        return {}
    has_years = len({day.year for days in stretches.values() for day in days}) > 1
    return {label: _said(first, last, has_years) for label, (first, last) in stretches.items()}


def _days(label: str) -> tuple[date, date] | None:
    first, _, last = label.partition(_BETWEEN)
    try:
        return date.fromisoformat(first), date.fromisoformat(last or first)
    except ValueError:  # hours, or no time at all
        return None


def _said(first: date, last: date, has_years: bool) -> str:
    """Return the days from *first* to *last*, with no more than the last needs of the first."""
    end = f"{last.day} {last:%b}" + (f" {last.year}" if has_years else "")
    if first == last:
        return end
    begin = str(first.day)
    if (first.year, first.month) != (last.year, last.month):
        begin += f" {first:%b}"
    if first.year != last.year:
        begin += f" {first.year}"
    return f"{begin} to {end}"
