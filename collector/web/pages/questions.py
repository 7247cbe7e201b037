"""Questions in plain words: which a metric can answer, and what each of them leaves to choose.

A question is a verb of the API.  Every choice has a value to begin with that gives an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from client_sdk.core.epoch import LENGTHS, ONCE
from client_sdk.registry.metric import Metric

from ...analytics.verb import load, names, summary
from ...query.options import types_of
from ...query.window import EPOCH, GRANULARITIES, PERIOD
from .items import item_needed, items_of

_LENGTHS: Final = (*LENGTHS, ONCE)  # of epochs: the shorter, the more there is to compare


@dataclass(frozen=True)
class Question:
    """A verb in words; those that are not *usual* stand apart."""

    verb: str
    words: str
    is_usual: bool = True


def questions_of(metric: Metric, metrics: Sequence[Metric]) -> list[Question]:
    """Return what can be asked of *metric*, alone or with another of *metrics*, in order."""
    questions = [
        Question(verb, words_of(verb, metric), _is_usual(verb, metric, metrics))
        for verb in _in_order()
        if is_answerable(verb, metric, metrics) and load(verb).offer.has_sense(metric)
    ]
    return sorted(questions, key=lambda question: not question.is_usual)


def _in_order() -> list[str]:
    return sorted(names(), key=lambda verb: load(verb).offer.place)


def by_length(metrics: Iterable[Metric]) -> list[Metric]:
    """Return *metrics*, the ones with the most detail over time first."""
    return sorted(metrics, key=lambda metric: _LENGTHS.index(metric.every))


def common_questions(metrics: Sequence[Metric]) -> list[tuple[Question, Metric]]:
    """Return each usual question once, in order, with the metric that answers it best.

    That is a metric whose type is made for the question, or else the one with the shortest epochs;
    questions that need no choice of an item come first.
    """
    questions: dict[str, tuple[Question, Metric]] = {}
    by_past = by_length(metrics)
    for verb in _in_order():
        made_for = [metric for metric in by_past if metric.domain.verb == verb]
        others = sorted(by_past, key=item_needed)
        likely = (*made_for, *others)
        best = next((metric for metric in likely if _is_common(verb, metric, metrics)), None)
        if best is not None:
            question = Question(verb, words_of(verb, best))
            questions.setdefault(question.words, (question, best))
    return list(questions.values())


def _is_common(verb: str, metric: Metric, metrics: Sequence[Metric]) -> bool:
    usual = load(verb).offer.has_sense(metric) and _is_usual(verb, metric, metrics)
    return usual and is_answerable(verb, metric, metrics)


def is_answerable(verb: str, metric: Metric, metrics: Sequence[Metric]) -> bool:
    """Return whether the form can ask *verb* of *metric* so that there is an answer."""
    kind = load(verb)
    if kind.refusal(metric) is not None:
        return False
    if kind.needs_time and metric.every == ONCE:
        return False
    if kind.needs_segment and not metric.segments:
        return False
    if kind.compares:
        return metric.every != ONCE or bool(metric.segments)
    return not kind.offer.needs_partner(metric) or bool(partners_of(verb, metric, metrics))


def partners_of(verb: str, metric: Metric, metrics: Sequence[Metric]) -> list[Metric]:
    """Return the *metrics* that *verb* can relate to *metric*."""
    kind, offer = load(verb), load(verb).offer
    if not offer.needs_partner(metric):
        return []
    others = [
        other
        for other in metrics
        if other.address != metric.address
        and kind.refusal(other) is None
        and offer.may_pair(metric, other)
    ]
    return sorted(
        others,
        key=lambda other: (
            not offer.is_likely_pair(metric, other),
            other.app != metric.app,
            other.every != metric.every,
            item_needed(other),
        ),
    )


def words_of(verb: str, metric: Metric, dimension: str = "") -> str:
    """Return the question that *verb* is of *metric*, about one *dimension* if it is chosen."""
    offer = load(verb).offer
    own = offer.words(metric, dimension) if offer.words else ""
    return own or offer.question or summary(verb)


def _is_usual(verb: str, metric: Metric, metrics: Sequence[Metric]) -> bool:
    offer = load(verb).offer
    if offer.needs_partner(metric):
        others = partners_of(verb, metric, metrics)
        return any(offer.is_likely_pair(metric, other) for other in others)
    return offer.is_usual(metric)


def stretches_of(metrics: Sequence[Metric]) -> list[str]:
    """Return the stretches of time by which answers about *metrics* can be broken down."""
    return [
        name
        for name, lengths in GRANULARITIES.items()
        if name not in (EPOCH, PERIOD) and all(metric.every in lengths for metric in metrics)
    ]


def needs_item(verb: str, metric: Metric) -> bool:
    """Return whether *verb* is about one item, which must be chosen."""
    is_of_one = "item" in types_of(verb) and item_needed(metric)
    return is_of_one and len(items_of(metric)) > load(verb).offer.items
