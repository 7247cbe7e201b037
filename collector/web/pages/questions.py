"""Questions in plain words: which a metric can answer, and what each of them leaves to choose.

A question is a verb of the API.  Every choice has a value to begin with that gives an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from client_sdk.core.epoch import LENGTHS, ONCE
from client_sdk.registry.metric import Metric

from ...analytics.verb import load, names, summary
from ...query.completion import (
    ADOPTION,
    COMPARE,
    LIFT,
    NEEDS_SEGMENT,
    SEGMENTS,
    SPREADING,
    arms_of,
)
from ...query.options import types_of
from ...query.window import EPOCH, GRANULARITIES, PERIOD
from .metric import item_needed, items_of

ACTIVES, CROSSTAB, RATIO, TREND = "actives", "crosstab", "ratio", "trend"
_MOST_TOGETHER: Final = 20  # items that one answer tells of without choosing one
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
    RATIO: "What is the ratio to another metric?",
    "quantile": "Up to which number? Median, p95",
    "histogram": "How are the numbers spread?",
    "range": "How many lie between two limits?",
    COMPARE: "Did it change?",
    TREND: "How did it run over time?",
    SEGMENTS: "Does it differ between segments?",
    LIFT: "What did the experiment change?",
    ADOPTION: "How far has each version spread?",
    ACTIVES: "How many devices reported?",
    "cdf": "How many lie below each number?",
    "variance": "How much do devices differ?",
    "estimate": "All of it in one table",
}
_ASIDE: Final = frozenset({"cdf", "variance", "estimate"})
_OF_ITEMS: Final = frozenset({"top_k", "frequency", "range"})
_NEEDS_TIME: Final = frozenset({TREND, ACTIVES, ADOPTION})


@dataclass(frozen=True)
class Question:
    """A verb in words; those that are not *usual* stand apart."""

    verb: str
    words: str
    is_usual: bool = True


def questions_of(metric: Metric, metrics: Sequence[Metric]) -> list[Question]:
    """Return what can be asked of *metric*, alone or with another of *metrics*, in order."""
    order = [*_WORDS, *(name for name in names() if name not in _WORDS)]
    questions = [
        Question(verb, words_of(verb, metric), _is_usual(verb, metric, metrics))
        for verb in order
        if verb in names() and is_answerable(verb, metric, metrics) and _has_sense(verb, metric)
    ]
    return sorted(questions, key=lambda question: not question.is_usual)


_LENGTHS: Final = (*LENGTHS, ONCE)  # of epochs: the shorter, the more there is to compare


def by_length(metrics: Iterable[Metric]) -> list[Metric]:
    """Return *metrics*, those first of whose past most can be told."""
    return sorted(metrics, key=lambda metric: _LENGTHS.index(metric.every))


def common_questions(metrics: Sequence[Metric]) -> list[tuple[Question, Metric]]:
    """Return each usual question once, in order, with the metric that tells most of it.

    That is the one whose type is made for the question, or else that of the shortest epochs; what
    needs no item to be chosen first.
    """
    questions: dict[str, tuple[Question, Metric]] = {}
    by_past = by_length(metrics)
    for verb in _WORDS:
        made_for = [metric for metric in by_past if metric.domain.verb == verb]
        others = sorted(by_past, key=item_needed)
        likely = (*made_for, *others)
        best = next((metric for metric in likely if _is_common(verb, metric, metrics)), None)
        if best is not None:
            question = Question(verb, words_of(verb, best))
            questions.setdefault(question.words, (question, best))
    return list(questions.values())


def _is_common(verb: str, metric: Metric, metrics: Sequence[Metric]) -> bool:
    usual = _has_sense(verb, metric) and _is_usual(verb, metric, metrics)
    return usual and is_answerable(verb, metric, metrics)


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
    return not _needs_partner(verb, metric) or bool(partners_of(verb, metric, metrics))


def _has_sense(verb: str, metric: Metric) -> bool:
    """Return whether *verb* is worth offering.

    What lies between items has no meaning, and groups that no lot drew are no experiment.
    """
    if verb == LIFT:
        return bool(arms_of(metric))
    return verb != "range" or metric.domain.grid is not None


def _needs_partner(verb: str, metric: Metric) -> bool:
    """Return whether *verb* is about *metric* and another one."""
    return load(verb).most_metrics > 1 and not (verb == CROSSTAB and metric.domain.parts)


def partners_of(verb: str, metric: Metric, metrics: Sequence[Metric]) -> list[Metric]:
    """Return those of *metrics* that *verb* can be asked of beside *metric*."""
    if not _needs_partner(verb, metric):
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
        names = tuple(metric.domain.parts)
        pair = " and ".join(names) if len(names) == 2 else "each of the attributes and the label"
        return f"How do {pair} relate?"
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
    return verb != ADOPTION or bool(SPREADING.intersection(metric.segments))


def stretches_of(metrics: Sequence[Metric]) -> list[str]:
    """Return by which stretches of time rows of *metrics* can be told apart."""
    return [
        name
        for name, lengths in GRANULARITIES.items()
        if name not in (EPOCH, PERIOD) and all(metric.every in lengths for metric in metrics)
    ]


def needs_item(verb: str, metric: Metric) -> bool:
    """Return whether *verb* tells of one item only, which must be chosen."""
    if "item" not in types_of(verb) or verb == ADOPTION or not item_needed(metric):
        return False
    return verb == SEGMENTS or len(items_of(metric)) > _MOST_TOGETHER
