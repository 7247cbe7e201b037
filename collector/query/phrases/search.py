"""Questions in the words that people type: "crash 1.3 android", "median startup by platform".

No model and no network: each typed word is held against the words of metrics (title, name,
question, values), of verbs (their files hold the words that ask for them), of dimensions and their
values, and of time.  A question is a metric and a verb; its score is what the typed words have to
do with it.  Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from math import log, prod
from typing import Final, Literal, NamedTuple

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import Metric

from ...analytics.comparing.arms import arms_of
from ...analytics.rows import TIME, Chart
from ...analytics.verb import AVERAGED, load, names
from ..options import types_of
from ..request import Query
from ..window import PREVIOUS
from .times import Times, times_in
from .words import NEAR, SAID, SAME, likeness, plain, raw_words, stem_of, words_in, words_of_value

MOST_CHARACTERS: Final = 200  # of a phrase; what is longer is cut off
MOST_WORDS: Final = 12
_LIMIT: Final = 8  # questions that are returned
_MOST_ITEMS: Final = 2_048  # of a metric; more would take a second of a processor to look through
_LEVEL: Final = re.compile(r"p?(\d{1,2}(?:\.\d)?)(?:st|nd|rd|th)?")
_LEAST: Final = 0.4  # what the words of a metric must say, of which one word that fits is more
# What a word of each place says of a metric.
_TITLE, _VALUE, _QUESTION = 1.0, 0.8, 0.6
_VERB: Final = 0.8  # what a word of a verb says of it
_ASKS: Final = 0.5  # what a word says that asks for a verb, whatever of
_USUAL: Final = 0.5  # of what a word says of the usual verb of a metric, to its other verbs
_FORM: Final = 1.5  # what a comparison with an earlier time says of the verbs that make one
_EXPERIMENT: Final = 0.8  # and what arms, or two values of a dimension, say of theirs
_WHOLE: Final = 0.2  # for a title of which every word was typed
_PREFERENCE: Final = 0.3  # of the verb that a metric is asked first, over all others
_UNREAD: Final = 0.2  # what a word takes off that has to do with nothing
_OVER_TIME: Final = "overtime"
_DEVICES: Final = "devices"
_ABOUT: Final = ("by", "dimension")  # options that name the dimension that an answer is about
_NEGATIONS: Final = frozenset(SAID["negations"].split())
_CHANGES: Final = words_in(SAID["changes"])
_PEOPLE: Final = frozenset(SAID["people"].split())


@dataclass(frozen=True)
class Match:
    """A question that a phrase may mean; *unread* are the words that it has nothing to do with."""

    query: Query
    score: float
    unread: tuple[str, ...] = field(default=())


class _Phrase(NamedTuple):
    """What was typed: words in small letters, and what is taken out of them beforehand."""

    words: tuple[str, ...]
    times: Times
    is_over_time: bool
    negated: Mapping[str, str]  # "not", or its like, by the word after it
    doubtful: tuple[str, ...]  # which may be values or words that say nothing, and are not read

    def leaves_out(self, value: str) -> bool:
        """Whether *value* stands after "not"."""
        words = words_of_value(value)
        return any(likeness(typed, word) >= NEAR for typed in self.negated for word in words)


def find(
    text: str,
    metrics: Sequence[Metric],
    verbs_of: Callable[[Metric], Sequence[str]],
    today: date,
    limit: int = _LIMIT,
) -> list[Match]:
    """Return the questions about *metrics* that *text* may mean, the likeliest first.

    There are none if no word of it has to do with any metric.  People alone are the devices that
    reported.

    Args: verbs_of: what can be asked of a metric, the usual first.
    """
    phrase = _read(text, _short_values(metrics), today)
    matches = _matches(phrase, metrics, verbs_of, today)
    if not matches and _PEOPLE.intersection(raw_words(text)):
        counted = phrase._replace(words=(*phrase.words, _DEVICES))
        matches = _matches(counted, metrics, verbs_of, today)
    return sorted(matches, key=lambda match: -match.score)[:limit]


def _matches(
    phrase: _Phrase,
    metrics: Sequence[Metric],
    verbs_of: Callable[[Metric], Sequence[str]],
    today: date,
) -> list[Match]:
    vocabulary = _Vocabulary(metrics, phrase.words)
    matches: list[Match] = []
    for metric in metrics:
        verbs = verbs_of(metric)
        reading = _Reading(metric, phrase, vocabulary, verbs, today)
        matches += (reading.match(verb) for verb in verbs if reading.is_about(verb))
    return matches


def changed_range(
    text: str, metrics: Sequence[Metric], today: date
) -> str | tuple[str, str] | None:
    """Return the range in which *text* asks what changed, of all *metrics*; "" if it names none.

    None if it asks anything else.
    """
    phrase = _read(text, _short_values(metrics), today)
    is_asked = phrase.words and not phrase.doubtful and not phrase.negated
    if not is_asked or not all(
        max(_like(word, _CHANGES).values(), default=0) for word in phrase.words
    ):
        return None
    return phrase.times.date_range_of_all() or ""


def _short_values(metrics: Sequence[Metric]) -> frozenset[str]:
    """Return the values of dimensions that are words which say nothing elsewhere: "us", "in"."""
    values = {v for metric in metrics for each in metric.segments.values() for v in each}
    return frozenset(value.casefold() for value in values if not words_in(value))


def _read(text: str, short_values: frozenset[str], today: date) -> _Phrase:
    """Read *text*; one of *short_values* is meant where it is written in capitals."""
    text = text[:MOST_CHARACTERS]
    doubtful = [word for word in raw_words(text) if word in short_values]
    meant = [word for word in doubtful if re.search(rf"\b{word.upper()}\b", text)]
    times = times_in(plain(text), today)
    said_words = [word for word in times.rest.split() if word in meant or words_in(word)]
    negated = {after: word for word, after in pairwise(said_words) if word in _NEGATIONS}
    typed = tuple(word for word in dict.fromkeys(said_words[:MOST_WORDS]) if word not in _NEGATIONS)
    return _Phrase(
        words=typed,
        times=times,
        is_over_time=_OVER_TIME in typed,
        negated=negated,
        doubtful=tuple(word for word in doubtful if word not in meant),
    )


class _Vocabulary:
    """What typed words have to do with the words of metrics, verbs and dimensions."""

    def __init__(self, metrics: Sequence[Metric], typed: Sequence[str]) -> None:
        self._of_metric = {metric.address: dict(_words_of(metric, typed)) for metric in metrics}
        counts = Counter(
            stem for words in self._of_metric.values() for stem in {stem_of(word) for word in words}
        )
        # A word of all metrics tells none apart, and one of a single metric is as good as its name.
        known = {word for words in self._of_metric.values() for word in words}
        self._rarity = {
            word: 1 - 0.5 * log(counts[stem_of(word)]) / log(len(metrics) + 1) for word in known
        }
        self._likeness = {word: _like(word, known) for word in typed}
        self._verbs = {
            (verb, word): max(_like(word, words_in(load(verb).offer.typed)).values(), default=0.0)
            for verb in names()
            for word in typed
        }
        self._texts: dict[str, float] = {}

    def of_metric(self, metric: Metric, typed: str) -> float:
        """Return what a typed word says of *metric*."""
        words = self._of_metric[metric.address]
        typed_words = self._likeness[typed].items()
        worth = (
            much * words[word] * self._rarity[word] for word, much in typed_words if word in words
        )
        return max(worth, default=0.0)

    def of_verb(self, verb: str, typed: str) -> float:
        """Return what a typed word says of *verb*."""
        if _has_levels(verb) and typed[0] == "p" and _LEVEL.fullmatch(typed):
            return SAME
        return _VERB * self._verbs[verb, typed]

    def of_text(self, text: str) -> float:
        """Return how much all words of *text*, such as the value of a dimension, were typed."""
        if text not in self._texts:
            words = words_of_value(text)
            typed = [
                max((likeness(t, word) for t in self._likeness), default=0.0) for word in words
            ]
            self._texts[text] = min(typed, default=0.0)
        return self._texts[text]


def _like(typed: str, words: Iterable[str]) -> dict[str, float]:
    """Return what a *typed* word has to do with each of *words*, where it has."""
    return {word: much for word in words if (much := likeness(typed, word))}


def _words_of(metric: Metric, typed: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield the words of a metric with what they say of it; those that say most come last."""
    places: list[tuple[str, float]] = [(metric.question, _QUESTION), (metric.group, _QUESTION)]
    places += [(item, _VALUE) for item in _items_of(metric, typed)]
    places += [(metric.app, _QUESTION), (metric.name, _TITLE), (metric.title, _TITLE)]
    for text, weight in places:
        words = words_in(text)
        yield from ((word, weight) for word in (*raw_words(text), *words))
        yield from (("".join(pair), weight) for pair in pairwise(words))


def _items_of(metric: Metric, typed: Sequence[str]) -> Sequence[str]:
    """Return the values of a metric that have names; of very many, those *typed* as they are."""
    items = metric.domain.compared or (() if metric.domain.grid else metric.domain.labels)
    return items if len(items) <= _MOST_ITEMS else [i for i in items if i.casefold() in typed]


class _Reading:
    """What the words of a phrase say, if they are about one metric."""

    def __init__(
        self,
        metric: Metric,
        phrase: _Phrase,
        vocabulary: _Vocabulary,
        verbs: Sequence[str],
        today: date,
    ) -> None:
        self._metric, self._phrase, self._verbs = metric, phrase, verbs
        self._date_range = phrase.times.range_for(metric, today)
        epochs = phrase.times.most_epochs(metric, today)
        self._vocabulary = vocabulary
        self._own = {word: vocabulary.of_metric(metric, word) for word in phrase.words}
        named = {
            (name, value)
            for name, values in metric.segments.items()
            for value in values
            if vocabulary.of_text(value) >= NEAR
        }
        left_out = {(name, value) for name, value in named if phrase.leaves_out(value)}
        self._leaves_out = bool(left_out)
        self._are_named = bool(named)
        segments = {name for name in metric.segments if vocabulary.of_text(name)}
        counts = Counter(name for name, _ in named - left_out)
        several = {name for name, count in counts.items() if count > 1}
        self._held_together = sorted(several)  # ios vs android
        self.dimensions = [name for name in metric.segments if name in segments | several]
        sizes = (len(metric.segments[name]) + 1 for name in self.dimensions)
        self._groups_over_time = prod(sizes, start=epochs)  # one of each dimension is the others
        self.filters: list[tuple[Literal["is", "is_not"], str, list[str]]] = [
            ("is_not" if (name, value) in left_out else "is", name, [value])
            for name, value in sorted(named)
            if name not in self.dimensions or (name, value) in left_out
        ]
        texts = {*segments, *(value for _, value in named)}
        parts = {part for text in texts for part in words_of_value(text)}
        self._of_dimensions = {
            word: max(_like(word, parts).values(), default=0.0) for word in phrase.words
        }

    def is_about(self, verb: str) -> bool:
        """Whether a word has to do with the metric, or asks for a *verb* that needs no such word.

        That is the one of its type, one of arms, or one that only counts reports.  Values of its
        dimensions are enough where every other word asks for *verb*.
        """
        words = self._phrase.words
        if any(self._own[word] >= _LEAST for word in words):
            return True
        others = [word for word in words if not self._of_dimensions[word]]
        if self._are_named and all(self._vocabulary.of_verb(verb, w) >= _ASKS for w in others):
            return True
        kind = load(verb)
        is_of_arms = kind.about is arms_of and bool(arms_of(self._metric))
        is_free = verb == self._metric.domain.verb or kind.counts(kind.options()) or is_of_arms
        return is_free and any(self._vocabulary.of_verb(verb, word) >= _ASKS for word in words)

    def match(self, verb: str) -> Match:
        """Return the question that is *verb* of the metric."""
        usual, words = self._verbs[0], self._phrase.words
        said = {word: self._vocabulary.of_verb(verb, word) for word in words}
        is_by_time = self._phrase.is_over_time and self._is_more_than_a_line(verb, said)
        if is_by_time:
            said[_OVER_TIME] = _VERB
        worth = {
            word: max(
                self._own[word],
                said[word],
                self._of_dimensions[word],
                _USUAL * self._vocabulary.of_verb(usual, word),  # a share has a rate anyway
            )
            for word in words
        }
        unread = (
            *(word for word, much in worth.items() if not much),
            *(() if self._leaves_out else dict.fromkeys(self._phrase.negated.values())),
            *self._phrase.doubtful,
        )
        score = sum(worth.values()) + _WHOLE * self._part_of_title() - _UNREAD * len(unread)
        score += _PREFERENCE / (1 + self._verbs.index(verb))
        score += self._suits(verb, said)
        return Match(self._query(verb, is_by_time), score, unread)

    def _is_more_than_a_line(self, verb: str, said: Mapping[str, float]) -> bool:
        """Whether *verb* was asked for, has rows of times, and a line would not show it."""
        is_asked = any(much >= _ASKS for word, much in said.items() if word != _OVER_TIME)
        kind = load(verb)
        is_too_much = kind.chart == Chart.DIFFERENCES or kind.most_slices < self._groups_over_time
        if kind.offer.joins_stretches or is_too_much:
            return False
        return is_asked and verb in {self._metric.domain.verb, *self._verbs[1:]}

    def _suits(self, verb: str, said: Mapping[str, float]) -> float:
        """Return how the form of the phrase suits *verb*, whatever its words."""
        kind = load(verb)
        if self._phrase.times.against:
            return _FORM if kind.compares and not kind.needs_segment else 0.0
        about = arms_of(self._metric)
        if kind.about is arms_of and about:
            is_named = about[0] in self.dimensions or max(said.values(), default=0.0) >= _VERB
            return _EXPERIMENT if is_named else 0.0
        is_by_group = self._metric.domain.boolean and bool(self.dimensions)
        if kind.ranks_segments and (self._held_together or is_by_group):
            return _EXPERIMENT
        return -_PREFERENCE if "k" in types_of(verb) and self._item() else 0.0

    def _part_of_title(self) -> float:
        """Return which part of the words of the title were typed."""
        words = words_in(self._metric.title)
        return sum(self._vocabulary.of_text(word) > 0 for word in words) / max(len(words), 1)

    def _query(self, verb: str, is_by_time: bool) -> Query:
        kind, metric = load(verb), self._metric
        about = list(kind.about(metric)) if kind.needs_segment else []
        dimensions, filters = self.dimensions, self.filters
        if kind.needs_segment and not dimensions:
            dimensions = about[:1]
            filters = [each for each in filters if each[1] not in dimensions]
        against = self._phrase.times.against
        is_of_two = kind.compares or (kind.counts_devices and against is not None)
        is_held = is_of_two and not dimensions and metric.every != ONCE
        return Query(
            metrics=[metric.address],
            verb=verb,
            date_range=self._date_range,
            against=(against or PREVIOUS) if is_held else None,
            dimensions=[*dimensions, *([TIME] if is_by_time else [])],
            filters=filters,
            options=dict(AVERAGED) if is_held and kind.counts_devices else self._options(verb),
        )

    def _options(self, verb: str) -> dict[str, object]:
        known = types_of(verb)
        if _has_levels(verb) and (levels := sorted({*_levels(self._phrase.words)})):
            return {"levels": levels}
        options: dict[str, object] = (
            {"item": item} if "item" in known and (item := self._item()) else {}
        )
        if len(self.dimensions) > 1:
            about = [*self._held_together, *self.dimensions][0]
            options |= dict.fromkeys(known.keys() & _ABOUT, about)
        return options

    def _item(self) -> str:
        """Return the value of the metric that was typed, "" if none or more than one was."""
        items = _items_of(self._metric, self._phrase.words)
        typed = [item for item in items if self._vocabulary.of_text(item) >= NEAR]
        return typed[0] if len(typed) == 1 else ""


def _has_levels(verb: str) -> bool:
    """Whether rows of *verb* are of quantiles, and not only if some are asked for."""
    return bool(getattr(load(verb).options(), "levels", ()))


def _levels(words: Sequence[str]) -> Iterator[float]:
    """Yield the quantiles that *words* name: of p95, 90th and median 0.95, 0.9 and 0.5."""
    for word in words:
        match = _LEVEL.fullmatch(word)
        if stem_of(word) == stem_of("median"):
            yield 0.5
        elif match and not word.isdigit() and 0 < float(match[1]) < 100:
            yield round(float(match[1]) / 100, 3)
