"""The types of a metric: for each the keys of its table that tell the domain, and their reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias

from . import registry_fields as fields
from .domains import (
    BOOLEAN_LABELS,
    MEAN_OF,
    BooleanDomain,
    Domain,
    ItemDomain,
    KeyValueDomain,
    NumberDomain,
    SetDomain,
)
from .mechanisms import MAX_DOMAIN_SIZE, MAX_LENGTH
from .registry_fields import Problems
from .text_domain import TextDomain

# Of a metric's place, table and problems: its domain, or None after adding a problem.
Reader: TypeAlias = Callable[[str, Mapping[str, Any], Problems], Domain | None]


class Kind(NamedTuple):
    """A type: the keys that only its domain has, its reader, and whether a value is one item."""

    keys: frozenset[str]
    read: Reader
    items: bool = False


def _boolean(place: str, entry: Mapping[str, Any], problems: Problems) -> Domain | None:
    return BooleanDomain(BOOLEAN_LABELS)


def _category(place: str, entry: Mapping[str, Any], problems: Problems) -> Domain | None:
    labels = fields.labels(f"{place}.values", entry.get("values"), problems)
    return ItemDomain(labels) if labels else None


def _set(place: str, entry: Mapping[str, Any], problems: Problems) -> Domain | None:
    labels = fields.labels(f"{place}.values", entry.get("values"), problems)
    return SetDomain(labels) if labels else None


def _numbers(place: str, entry: Mapping[str, Any], problems: Problems) -> Domain | None:
    low, high, unit = _range(place, entry, problems)
    step = fields.decimal(f"{place}.step", entry.get("step"), problems)
    if low is None or high is None or step is None:
        return None
    if step <= 0 or low >= high or (high - low) % step:
        problems.add(
            f"{place}.step", "must be positive and divide max - min, which must be positive"
        )
        return None
    if (high - low) / step >= MAX_DOMAIN_SIZE:
        problems.add(f"{place}.step", f"must leave fewer than {MAX_DOMAIN_SIZE} grid points")
        return None
    return NumberDomain(low, high, step, unit)


def _key_values(place: str, entry: Mapping[str, Any], problems: Problems) -> Domain | None:
    labels = fields.labels(f"{place}.values", entry.get("values"), problems)
    if any(MEAN_OF + label in labels for label in labels):
        problems.add(f"{place}.values", f'must not hold both a key and "{MEAN_OF}" that key')
    low, high, unit = _range(place, entry, problems)
    most = fields.integer(f"{place}.most", entry.get("most", max(len(labels), 1)), 1, problems)
    if labels and most > len(labels):
        problems.add(f"{place}.most", f"must be at most the number of values, {len(labels)}")
    if low is None or high is None or not labels:
        return None
    if low >= high:
        problems.add(f"{place}.max", "must be above min")
        return None
    return KeyValueDomain(ItemDomain(labels), NumberDomain(low, high, high - low, unit), most)


def _range(
    place: str, entry: Mapping[str, Any], problems: Problems
) -> tuple[Fraction | None, Fraction | None, str]:
    low, high = (
        fields.decimal(f"{place}.{key}", entry.get(key), problems) for key in ("min", "max")
    )
    return low, high, fields.text(f"{place}.unit", entry.get("unit"), problems)


def _text(place: str, entry: Mapping[str, Any], problems: Problems) -> Domain | None:
    length = entry.get("length")
    if type(length) is not int or not 2 <= length <= MAX_LENGTH:
        problems.add(f"{place}.length", f"must be the bytes that count, from 2 to {MAX_LENGTH}")
        return None
    return TextDomain(length)


def _structured(place: str, entry: Mapping[str, Any], problems: Problems) -> Domain | None:
    from .registry_structures import READERS  # few registries have any

    return READERS[entry["type"]](place, entry, problems)


_VALUES: Final = frozenset({"values"})
_NUMBERS: Final = Kind(frozenset({"min", "max", "step", "unit", "shape"}), _numbers)

KINDS: Final[dict[str, Kind]] = {
    "boolean": Kind(frozenset(), _boolean, items=True),
    "category": Kind(_VALUES, _category, items=True),
    "set": Kind(_VALUES, _set),
    "number": _NUMBERS,
    "count": _NUMBERS,
    "duration": _NUMBERS,
    "key_value": Kind(frozenset({"values", "min", "max", "unit", "most"}), _key_values),
    "string": Kind(frozenset({"length"}), _text),
    "location": Kind(frozenset({"min", "max", "cells"}), _structured, items=True),
    "pair": Kind(frozenset({"parts"}), _structured, items=True),
    "funnel": Kind(_VALUES, _structured, items=True),
    "retention": Kind(frozenset({"periods"}), _structured, items=True),
}
