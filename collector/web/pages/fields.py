"""The form of a question: a field for each of its options, filled with what is chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import msgspec
from msgspec.inspect import (
    BoolType,
    FloatType,
    IntType,
    LiteralType,
    NoneType,
    UnionType,
    type_info,
)

from client_sdk.registry.metric import Metric

from ...analytics.verb import QUANTILE, load
from ...query.options import types_of
from .items import called, item_needed, items_of
from .questions import needs_item

OPTION: Final = "option."  # what the name of an option of the verb follows
_ELSEWHERE: Final = frozenset({"by", "ranges", "alphabet"})  # chosen in other fields
_ALWAYS_ELSEWHERE: Final = "dimension"  # the field of what the question is about
_LABELS: Final[Mapping[str, str]] = {
    "k": "How many",
    "order": "Which end",
    "buckets": "Buckets",
    "levels": "Quantiles (0.5 is the median, 0.95 is p95)",
    "points": "Numbers",
    "low": "From",
    "high": "To",
    "item": "Of",
    "control": "Control",
    "against": "Against",
    "window": "Moving window (periods)",
    "population": "Interval for",
    "simultaneous": "All intervals hold at once",
    "coarsen": "Join cells (along each side)",
    "keys": "Key",
    "threshold": "Least share (0.01 is 1 %)",
    "candidates": "Look for these strings",
    "effect": "Difference to detect (0.02 is 2 points)",
    "of": "Of",
    "numerator": "Above",
    "denominator": "Below",
}
_QUANTILES: Final = (("0.5", "median"), ("0.9", "p90"), ("0.95", "p95"), ("0.99", "p99"))
_FOLLOWED: Final = (("", "mean"), *_QUANTILES)
_CHOICES: Final[Mapping[str, str]] = {
    "most": "most common first",
    "least": "least common first",
    "drawn": "all devices like these",
    "new": "all devices like these, others in each period",
    "reported": "the devices that reported",
    "means": "averages and shares",
    "totals": "totals",
    "raw": "none: unbiased numbers",
    "norm_sub": "shares add up to 100 %",
    "base_cut": "small shares become 0",
    "simplex_l2": "add up to 100 %, least squares",
    "simplex_l1": "add up to 100 %, least change",
    "isotonic": "never falling",
    "pooled": "drawn towards the mean of all",
}


@dataclass(frozen=True)
class Field:
    """A choice of the form: one of a list, a number, a text, or yes."""

    name: str
    label: str
    kind: Literal["choice", "number", "text", "check"]
    value: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    least: str = ""
    most: str = ""


def fields_of(
    verb: str,
    metric: Metric,
    options: Mapping[str, object],
    *,
    dimension: str = "",
    partner: Metric | None = None,
) -> Iterator[Field]:
    """Yield a field for each option of *verb*, filled with *options*.

    Args: dimension: that the question is about, if it is about one.
          partner: the other metric, of a question about two.
    """
    for name, type_ in types_of(verb).items():
        if name == _ALWAYS_ELSEWHERE or (name in _ELSEWHERE and not options.get(name)):
            continue
        plain = _typed(name, type_)
        field = _special(name, verb, metric, partner or metric, dimension)
        if field is None or plain.kind == "choice":
            field = plain
        if field.kind != "choice" or len(field.choices) > 1:
            given = options.get(name, _default(verb, name))
            yield field if given is None else replace(field, value=as_text(given))


def _default(verb: str, name: str) -> Any:
    """Return what an option of *verb* is if it is not given, None if that has no value."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(load(verb).options)}
    default = fields[name].default
    return None if default is msgspec.NODEFAULT else default


def as_text(value: Any) -> str:
    """Return an option as the form has it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(as_text, value))
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def labelled(values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return *values* of a list with what they are called."""
    return tuple((value, _CHOICES.get(value, value)) for value in values)


def _items(metric: Metric) -> tuple[str, ...]:
    return items_of(metric)[:200] if item_needed(metric) else ()


def _special(name: str, verb: str, metric: Metric, partner: Metric, dimension: str) -> Field | None:
    """Return the field of an option whose choices the metric has; None of any other option."""
    label = _LABELS.get(name, name)
    match name:
        case "item":
            first = () if needs_item(verb, metric) else (("", load(verb).offer.no_item),)
            items = tuple((item, called(metric, item)) for item in items_of(metric)[:200])
            return Field(name, label, "choice", "", (*first, *items))
        case "control":
            return Field(name, label, "choice", "", labelled(metric.segments.get(dimension, ())))
        case "against":
            values = labelled(metric.segments.get(dimension, ()))
            return Field(name, label, "choice", "", (("", "all others"), *values) if values else ())
        case "keys":
            keys = labelled(metric.domain.labels[:200])
            return Field(name, label, "choice", "", (("", "all of them"), *keys))
        case "numerator" | "denominator":
            other = partner if name == "denominator" else metric
            return Field(name, f"{label}: {other.title}", "choice", "", labelled(_items(other)))
        case "of":
            parts = labelled(tuple(metric.domain.parts))
            return Field(name, label, "choice", "", (("", "all devices"), *parts) if parts else ())
        case "levels" if load(verb).needs_time:  # a line follows one of them
            has_levels = load(QUANTILE).refusal(metric) is None
            return Field(name, "Follow", "choice", "", _FOLLOWED if has_levels else ())
        case "low" | "high":
            return _end(name, metric)
    return None


def _end(name: str, metric: Metric) -> Field:
    """Return the field of one end of a range."""
    grid = metric.domain.grid
    if grid is None:
        return Field(
            name, _LABELS[name], "choice", "", (("", "no limit"), *labelled(metric.domain.labels))
        )
    ends = (as_text(float(number)) for number in (grid.minimum, grid.maximum))
    unit = f" ({metric.domain.unit})" if metric.domain.unit else ""
    return Field(name, _LABELS[name] + unit, "number", "", (), *ends)


def _typed(name: str, type_: Any) -> Field:
    """Return the field of an option that only its type says something of."""
    label = _LABELS.get(name, name.replace("_", " ").capitalize())
    match _plain(type_info(type_)):
        case BoolType():
            return Field(name, label, "check")
        case LiteralType(values=values):
            return Field(name, label, "choice", "", labelled([str(value) for value in values]))
        case IntType(ge=least, le=most):
            ends = ("" if end is None else str(end) for end in (least, most))
            return Field(name, label, "number", "", (), *ends)
        case FloatType():
            return Field(name, label, "number")
    return Field(name, label, "text")


def _plain(kind: Any) -> Any:
    """Return *kind* without the null that it may be instead."""
    if isinstance(kind, UnionType):
        kinds = [each for each in kind.types if not isinstance(each, NoneType)]
        return kinds[0] if len(kinds) == 1 else kind
    return kind
