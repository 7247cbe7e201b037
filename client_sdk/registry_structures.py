"""The readers of types with joint values: ``location``, ``pair``, ``funnel`` and ``retention``."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Any, Final

from . import registry_fields as fields
from .domains import ItemDomain, NumberDomain
from .registry_domains import Reader
from .registry_fields import Problems
from .structured_domains import (
    JOINER,
    LEAST_PERIODS,
    MAX_JOINT,
    MOST_PERIODS,
    NO_STEP,
    FunnelDomain,
    GridDomain,
    PairDomain,
    RetentionDomain,
)

_ENDS: Final = (180, 90)  # degrees from 0 to which longitude and latitude go


def _location(place: str, entry: Mapping[str, Any], problems: Problems) -> GridDomain | None:
    low, high = (_corner(f"{place}.{key}", entry.get(key), problems) for key in ("min", "max"))
    cells = _cells(f"{place}.cells", entry.get("cells"), problems)
    if low is None or high is None or cells is None:
        return None
    if not all(a < b for a, b in zip(low, high, strict=True)):
        problems.add(f"{place}.max", "must be east and north of min")
        return None
    ends = zip(low, high, cells, strict=True)
    return GridDomain(*(NumberDomain(a, b, (b - a) / n, "degrees") for a, b, n in ends))


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


def _pair(place: str, entry: Mapping[str, Any], problems: Problems) -> PairDomain | None:
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
    return PairDomain((names[0], names[1]), ItemDomain(values[0]), ItemDomain(values[1]))


def _part(place: str, entry: object, problems: Problems) -> tuple[str, ...]:
    labels = fields.labels(place, entry, problems)
    if any(JOINER in label for label in labels):
        problems.add(place, f'must not hold "{JOINER}", which joins the labels of a pair')
    return labels


def _funnel(place: str, entry: Mapping[str, Any], problems: Problems) -> FunnelDomain | None:
    steps = fields.labels(f"{place}.values", entry.get("values"), problems)
    if NO_STEP in steps:
        problems.add(f"{place}.values", f'must not hold "{NO_STEP}", the item of no step')
        return None
    return FunnelDomain(steps) if steps else None


def _retention(place: str, entry: Mapping[str, Any], problems: Problems) -> RetentionDomain | None:
    place = f"{place}.periods"
    periods = fields.labels(place, entry.get("periods"), problems)
    if not periods:
        return None
    if len(periods) > MOST_PERIODS:
        problems.add(place, f"must hold {LEAST_PERIODS} to {MOST_PERIODS} periods")
        return None
    return RetentionDomain(periods)


READERS: Final[dict[str, Reader]] = {
    "location": _location,
    "pair": _pair,
    "funnel": _funnel,
    "retention": _retention,
}
