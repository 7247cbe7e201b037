"""Questions in plain words: which a metric can answer, and what each of them leaves to choose.

A question is a verb of the API.  Every choice has a value to begin with that gives an answer.
"""

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

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import Metric

from ...analytics.comparing import arms
from ...analytics.verb import load, names, summary
from ...query.options import types_of
from ...query.window import EPOCH, GRANULARITIES, PERIOD
from .metric import SPREADING, called, item_needed, items_of

COMPARE, LIFT, TREND = "compare", "lift", "trend"
ADOPTION, SEGMENTS, CROSSTAB, RATIO = "adoption", "segments", "crosstab", "ratio"
MOST_TOGETHER: Final = 20  # items that one answer tells of without choosing one
OPTION: Final = "option."  # what the name of an option of the verb follows
_WORDS: Final[Mapping[str, str]] = {  # in the order of the page
    "top_k": "Which are most common?",
    "heavy_hitters": "Which are most common?",
    "map": "Where?",
    "funnel": "How far did they get?",
    "retention": "Who came back?",
    "key_values": "How many have each, and how much of it?",
    "vector": "How much of each on average?",
    CROSSTAB: "How do two answers relate?",
    "frequency": "How many?",
    "mean": "How much on average?",
    "sum": "How much in total?",
    RATIO: "How much of this for each of another?",
    "quantile": "Up to which number? Median, p95",
    "histogram": "How are the numbers spread?",
    "range": "How many lie between two limits?",
    COMPARE: "Did it change?",
    TREND: "How did it run over time?",
    SEGMENTS: "Does it differ between segments?",
    LIFT: "What did the experiment change?",
    ADOPTION: "How far has each version spread?",
    "actives": "How many devices reported?",
    "cdf": "How many lie below each number?",
    "variance": "How much do devices differ?",
    "estimate": "All of it in one table",
}
_ASIDE: Final = frozenset({"cdf", "variance", "estimate"})
_OF_ITEMS: Final = frozenset({"top_k", "frequency", "range"})
_NEEDS_TIME: Final = frozenset({TREND, "actives", ADOPTION})
NEEDS_SEGMENT: Final = frozenset({SEGMENTS, LIFT, ADOPTION})  # one dimension is what they are about
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
_NO_ITEM: Final = {ADOPTION: "nothing: shares of reports"}  # what an answer is of without an item
_QUANTILES: Final = (("0.5", "median"), ("0.9", "p90"), ("0.95", "p95"), ("0.99", "p99"))
_FOLLOWED: Final = (("", "mean"), *_QUANTILES)
_CHOICES: Final[Mapping[str, str]] = {
    "most": "most common first",
    "least": "least common first",
    "drawn": "all devices like these",
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
class Question:
    """A verb in words; those that are not *usual* stand apart."""

    verb: str
    words: str
    is_usual: bool = True


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


def questions_of(metric: Metric, metrics: Sequence[Metric]) -> list[Question]:
    """Return what can be asked of *metric*, alone or with another of *metrics*, in order."""
    order = [*_WORDS, *(name for name in names() if name not in _WORDS)]
    questions = [
        Question(verb, words_of(verb, metric), _is_usual(verb, metric, metrics))
        for verb in order
        if verb in names() and is_answerable(verb, metric, metrics) and _has_sense(verb, metric)
    ]
    return sorted(questions, key=lambda question: not question.is_usual)


def is_answerable(verb: str, metric: Metric, metrics: Sequence[Metric]) -> bool:
    """Return whether the form can ask *verb* of *metric* so that there is an answer."""
    if load(verb).refusal(metric) is not None:
        return False
    if verb in _NEEDS_TIME and metric.every == ONCE:
        return False
    if verb in NEEDS_SEGMENT and not metric.segments:
        return False
    if verb == COMPARE:
        return metric.every != ONCE or bool(metric.segments)
    if verb == "range" and metric.domain.boolean:
        return False
    return not needs_partner(verb, metric) or bool(partners_of(verb, metric, metrics))


def _has_sense(verb: str, metric: Metric) -> bool:
    """Return whether *verb* is worth offering: what lies between items has no meaning."""
    return verb != "range" or metric.domain.grid is not None


def needs_partner(verb: str, metric: Metric) -> bool:
    """Return whether *verb* is about *metric* and another one."""
    return load(verb).most_metrics > 1 and not (verb == CROSSTAB and metric.domain.parts)


def partners_of(verb: str, metric: Metric, metrics: Sequence[Metric]) -> list[Metric]:
    """Return those of *metrics* that *verb* can be asked of beside *metric*."""
    if not needs_partner(verb, metric):
        return []
    others = [
        other
        for other in metrics
        if other.address != metric.address
        and load(verb).refusal(other) is None
        and not (verb == CROSSTAB and other.domain.parts)
        and not (verb == RATIO and other.every != metric.every)
    ]
    return sorted(
        others,
        key=lambda other: (
            verb == RATIO and not _is_rate(metric, other),
            other.app != metric.app,
            other.every != metric.every,
            item_needed(other),
        ),
    )


def _is_rate(metric: Metric, other: Metric) -> bool:
    """Return whether one over the other is a rate: of two numbers, or of a number and a boolean."""
    domains = metric.domain, other.domain
    numbers = sum(domain.grid is not None for domain in domains)
    return numbers + sum(domain.boolean for domain in domains) == len(domains) and numbers > 0


def words_of(verb: str, metric: Metric, dimension: str = "") -> str:
    """Return the question that *verb* is of *metric*, about one *dimension* if it is chosen."""
    if verb == SEGMENTS and metric.segments:
        chosen = [dimension] if dimension else metric.segments
        *others, last = (name.replace("_", " ") for name in chosen)
        return f"Does it differ by {', '.join(others)}{' or ' if others else ''}{last}?"
    if verb == "frequency" and not metric.domain.boolean:
        return "What share has each?"
    if verb == CROSSTAB and metric.domain.parts:
        return f"How do {' and '.join(metric.domain.parts)} relate?"
    return _WORDS.get(verb) or summary(verb)


def _is_usual(verb: str, metric: Metric, metrics: Sequence[Metric]) -> bool:
    domain = metric.domain
    if verb in _ASIDE or verb not in _WORDS:
        return False
    if verb == RATIO:
        return any(_is_rate(metric, other) for other in partners_of(verb, metric, metrics))
    if verb == CROSSTAB:
        return bool(domain.parts)  # of two that were reported apart there are bounds only
    if verb in _OF_ITEMS and not domain.grid and domain.verb not in _OF_ITEMS:
        return verb == "frequency" and domain.boolean  # the type's own question tells it better
    if verb == "top_k":
        return not domain.boolean
    if verb == LIFT:
        return any(arms.are_arms(*each) for each in metric.segments.items())
    return verb != ADOPTION or bool(SPREADING.intersection(metric.segments))


def dimension_of(verb: str, metric: Metric) -> str:
    """Return the dimension that *verb* is about if none is chosen."""
    names = tuple(metric.segments)
    likely = {
        LIFT: [name for name in names if arms.are_arms(name, metric.segments[name])],
        ADOPTION: [name for name in names if name in SPREADING],
    }
    return next(iter((*likely.get(verb, ()), *names)), "")


def control_of(metric: Metric, dimension: str) -> str:
    """Return the arm that others are held against if none is chosen."""
    values = metric.segments[dimension]
    return arms.control_of(values) or values[0]


def stretches_of(metrics: Sequence[Metric]) -> list[str]:
    """Return by which stretches of time rows of *metrics* can be told apart."""
    return [
        name
        for name, lengths in GRANULARITIES.items()
        if name not in (EPOCH, PERIOD) and all(metric.every in lengths for metric in metrics)
    ]


def defaults_of(verb: str, metric: Metric) -> dict[str, Any]:
    """Return options with which *verb* has an answer that says something."""
    grid = metric.domain.grid
    if verb != "range":
        return {}
    if grid is None:
        return {"high": metric.domain.labels[(metric.domain.size - 1) // 2]}
    middle = grid.minimum + (grid.size - 1) // 2 * grid.step
    return {"low": float(middle)}


def needs_item(verb: str, metric: Metric) -> bool:
    """Return whether *verb* tells of one item only, which must be chosen."""
    if "item" not in types_of(verb) or verb == ADOPTION or not item_needed(metric):
        return False
    return verb == SEGMENTS or len(items_of(metric)) > MOST_TOGETHER


def fields_of(
    verb: str,
    metric: Metric,
    options: Mapping[str, Any],
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
        field = _special(name, verb, metric, partner or metric, dimension)
        if field is None:
            field = _typed(name, type_)
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
            first = () if needs_item(verb, metric) else (("", _NO_ITEM.get(verb, "all of them")),)
            items = tuple((item, called(metric, item)) for item in items_of(metric)[:200])
            return Field(name, label, "choice", "", (*first, *items))
        case "control":
            return Field(name, label, "choice", "", labelled(metric.segments.get(dimension, ())))
        case "against" if verb == COMPARE:
            values = labelled(metric.segments.get(dimension, ()))
            return Field(name, label, "choice", "", (("", "all others"), *values) if values else ())
        case "keys":
            keys = labelled(metric.domain.labels[:200])
            return Field(name, label, "choice", "", (("", "all of them"), *keys))
        case "numerator" | "denominator":
            other = partner if name == "denominator" else metric
            return Field(name, f"{label}: {other.title}", "choice", "", labelled(_items(other)))
        case "of" if verb == CROSSTAB:
            parts = labelled(tuple(metric.domain.parts))
            return Field(name, label, "choice", "", (("", "all devices"), *parts) if parts else ())
        case "levels" if verb == TREND:
            has_levels = load("quantile").refusal(metric) is None
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
