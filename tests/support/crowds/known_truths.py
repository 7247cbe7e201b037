"""What the rows of every verb must say of a known crowd: one truth a verb, by the type of values.

A truth is worked out from the devices alone, without a look at any estimator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import sqrt
from typing import Any, Final

import numpy as np

from client_sdk.registry.types.items import MEAN_OF
from client_sdk.registry.types.record import ANSWER, ATTRIBUTE
from collector.analytics.answer import MEAN
from collector.analytics.rows import (
    ACTIVE,
    AGAINST,
    ALL,
    MEASURE,
    REACHED,
    RELATIVE,
    REST,
    TIME,
    Row,
)
from collector.analytics.verb import NOT_SAID, OTHER
from collector.analytics.verbs.histogram import DASH
from tests.support.crowds.known_crowds import Subject
from tests.support.crowds.known_sites import Reports

_CLOSE: Final = 1e-9  # of a share: where a quantile is at an end of a step


RANGE: Final = "/"  # between the first and the last epoch of a stretch


def _begins_in(stretch: str, label: str) -> bool:
    first, _, last = stretch.partition(RANGE)
    return first <= label <= last


def label_of(begin: datetime, granularity: str, every: str) -> str:
    """Return the label of the stretch of time that an epoch is in."""
    if granularity == "time:week":
        begin -= timedelta(days=begin.weekday())
    if granularity == TIME and every == "1h":
        return f"{begin:%Y-%m-%dT%H:%MZ}"
    return f"{begin:%Y-%m-%d}"


@dataclass(frozen=True)
class Crowds:
    """The devices of one metric that an answer rests on, as its *rows* name their groups."""

    name: str
    subject: Subject
    reports: Sequence[Reports]
    every: str
    granularity: str | None
    dimensions: tuple[str, ...]  # of segments
    rows: Sequence[Row]

    def of(self, names: Mapping[str, str]) -> list[Reports]:
        """Return the reports of the group that a row with these dimensions is of."""
        key = self.key(names)
        skipped = key[0] == ALL  # all of time
        return [each for each in self.reports if self.groups[id(each)][skipped:] == key[skipped:]]

    def alike(self, names: Mapping[str, str], by: str) -> list[Reports]:
        """Return the reports of all groups that differ from that of a row *by* one dimension."""
        place = (TIME, *self.dimensions).index(by)

        def others(key: tuple[str, ...]) -> tuple[str, ...]:
            return (*key[:place], *key[place + 1 :])

        own = others(self.key(names))
        return [each for each in self.reports if others(self.groups[id(each)]) == own]

    def beside(self, names: Mapping[str, str], by: str) -> list[Reports]:
        """Return the reports of what a row is compared with, along the dimension *by*."""
        if names[AGAINST] != REST:
            return self.of({**names, by: names[AGAINST]})
        own = self.key(names)
        return [each for each in self.alike(names, by) if self.groups[id(each)] != own]

    def key(self, names: Mapping[str, str]) -> tuple[str, ...]:
        """Return the group of a row with these dimensions: its time, then each dimension."""
        return tuple(names.get(name, "") for name in (TIME, *self.dimensions))

    @cached_property
    def groups(self) -> Mapping[int, tuple[str, ...]]:
        """The group of each of the reports: of small ones, the one that they are in together."""
        known = {self.key(row.dimensions) for row in self.rows}
        return {id(each): self._group(each, known) for each in self.reports}

    @cached_property
    def ranges(self) -> frozenset[str]:
        """The stretches of several epochs that rows compare, each as its first and last one."""
        texts = {row.dimensions.get(name, "") for row in self.rows for name in (TIME, AGAINST)}
        return frozenset(text for text in texts if RANGE in text)

    def _group(self, each: Reports, known: set[tuple[str, ...]]) -> tuple[str, ...]:
        time = label_of(each.begin, self.granularity, self.every) if self.granularity else ""
        if self.ranges:
            label = label_of(each.begin, TIME, self.every)
            time = next(text for text in self.ranges if _begins_in(text, label))
        own = (time, *(each.segment.get(name, NOT_SAID) for name in self.dimensions))
        fitting = [
            key for key in known if all(a in (b, OTHER) for a, b in zip(key, own, strict=True))
        ]
        return min(fitting, key=lambda key: key.count(OTHER), default=own)


def sent(reports: Iterable[Reports]) -> float:
    """Return how many reports there are, to the rounding of each tally."""
    return sum(each.sent for each in reports)


@dataclass(frozen=True)
class Case:
    """A question about known *crowds*: of one metric, or of two.

    ``answered`` says that it is about the devices that answered alone.  ``more`` are devices that
    are there beside, with one value in some reports: to see what they change.
    """

    verb: str
    crowds: tuple[Crowds, ...]
    options: Mapping[str, Any]
    answered: bool = False
    more: tuple[int, int, float] | None = None

    @property
    def subject(self) -> Subject:
        """Of the first metric."""
        return self.crowds[0].subject

    @property
    def by(self) -> str:
        """The dimension that rows are compared along."""
        return str(self.options.get("by") or self.options.get("dimension") or TIME)

    @property
    def answers(self) -> tuple[str, ...]:
        """The names of what a value joins."""
        return tuple(self.subject.answers(self.subject.values[0]))

    def truth(self, row: Row) -> float:
        """Return what *row* must say."""
        return TRUTHS[self.verb](self, row)

    def held(self, row: Row, metric: int = 0) -> Any:
        """Return the devices of the group of *row*, by value; each counts once an epoch."""
        return self._by_value(self.crowds[metric].of(row.dimensions))

    def beside(self, row: Row) -> Any:
        """Return the devices that *row* is compared with."""
        return self._by_value(self.crowds[0].beside(row.dimensions, self.by))

    def _by_value(self, reports: Sequence[Reports]) -> Any:
        devices = sum(each.devices * (each.share if self.answered else 1) for each in reports)
        if self.more and any(id(each) == self.more[0] for each in reports):
            devices = devices.copy()
            devices[self.more[1]] += self.more[2]
        return devices

    def reports(self, row: Row) -> list[list[Reports]]:
        """Return the reports whose number *row* counts: of each metric, or of both its sides."""
        first, *others = (crowds.of(row.dimensions) for crowds in self.crowds)
        if AGAINST in row.dimensions:
            return [first, self.crowds[0].beside(row.dimensions, self.by)]
        return [first, *others]

    def n(self, row: Row) -> float:
        """Return how many reports *row* must count; of both metrics together no more than either.

        A comparison that is refused counts those of its first side.
        """
        each = list(map(sent, self.reports(row)))
        if AGAINST in row.dimensions and row.value is None and row.reason not in _OF_BOTH:
            return each[0]
        if self.verb != "crosstab":
            return sum(each)
        if ATTRIBUTE in row.dimensions:
            return each[0] / (len(self.answers) - 1)  # a report is about one attribute
        return min(each[place] for place in self.places(row)) if each[1:] else each[0]

    def places(self, row: Row) -> list[int]:
        """Return of which metrics a row of two that were collected apart says an answer."""
        return [i for i, each in enumerate(self.crowds) if row.dimensions[each.name] != ALL]

    def frechet(self, row: Row) -> tuple[float, float]:
        """Return the least and the most that both answers of *row* can go together."""
        a, b = (
            crowds.subject.share(row.dimensions[crowds.name], self.held(row, place))
            for place, crowds in enumerate(self.crowds)
        )
        return max(0.0, a + b - 1), min(a, b)

    def drawn(self, row: Row) -> float:
        """Return the variance that a panel gives to the number of *row*, to first order.

        By definition, group and value it draws a part p of N devices, in m epochs at once, so it
        scatters by (1 - p) m N / p.  What one device more changes is seen by adding some.  Of two
        metrics it may draw the same devices: then errors add up.
        """
        classes: dict[tuple[Any, ...], list[Reports]] = {}
        for place, crowds in enumerate(self.crowds):
            for each in self._relevant(crowds, row):
                key = place, crowds.groups[id(each)], each.is_current
                classes.setdefault(key, []).append(each)
        truth, variances = self.truth(row), [0.0] * len(self.crowds)
        for (place, *_), reports in classes.items():
            one, devices = reports[0], sum(each.devices for each in reports)
            repeats = max(Counter(each.draw for each in _epochs(reports)).values())
            for value, count in enumerate(devices.tolist()):
                nudged = replace(self, more=(id(one), value, _MORE * count))
                slope = (nudged.truth(row) - truth) / (_MORE * count)
                law = (1 - one.share) / one.share * repeats
                variances[place] += law * count * slope**2
        return sum(map(sqrt, variances)) ** 2

    def _relevant(self, crowds: Crowds, row: Row) -> list[Reports]:
        if self.verb == "adoption" and "item" not in self.options:
            return crowds.alike(row.dimensions, self.by)
        own = crowds.of(row.dimensions)
        if AGAINST in row.dimensions:
            own = [*own, *crowds.beside(row.dimensions, self.by)]
        return own


_OF_BOTH: Final = ("no ratio: the control may be 0",)
_MORE: Final = 1e-4  # part of the devices that are added to see what they change


def _epochs(reports: Iterable[Reports]) -> Iterable[Reports]:
    """Return reports of each epoch once."""
    return {each.begin: each for each in reports}.values()


def number_of(subject: Subject, item: str, devices: Any) -> float:
    """Return the number of *item* that verbs follow over time, or compare."""
    if subject.number is not None:
        return subject.mean(subject.number, devices)
    if subject.steps:
        whole = next(iter(subject.steps.values())) if subject.type == "retention" else None
        return subject.mean(subject.steps[item], devices, *filter(None, [whole]))
    return subject.share(item, devices)


def quantile_of(subject: Subject, level: float, devices: Any) -> float:
    """Return the least number up to which a part *level* of the devices is."""
    numbers = sorted(zip(map(float, subject.values), devices.tolist(), strict=True))
    up_to = np.cumsum([many for _, many in numbers]) / devices.sum()
    return numbers[int(np.searchsorted(up_to + _CLOSE, level))][0]


def part_between(subject: Subject, low: float, high: float, devices: Any) -> float:
    """Return the share of the devices from *low* to *high*, both counted in."""
    return subject.mean(lambda value: low <= value <= high, devices)


def _share(case: Case, row: Row) -> float:
    return case.subject.share(row.item, case.held(row))


def _mean(case: Case, row: Row) -> float:
    return case.subject.mean(float, case.held(row))


def _sum(case: Case, row: Row) -> float:
    """Return the sum of the numbers of all devices, those that a panel did not draw included."""
    return _mean(case, row) * float(case.held(row).sum())


def _level(case: Case, row: Row) -> float:
    return quantile_of(case.subject, float(row.item.removeprefix("p")) / 100, case.held(row))


def _estimate(case: Case, row: Row) -> float:
    if case.subject.number is not None:
        return _mean(case, row) if row.item == MEAN else _level(case, row)
    if not row.item.startswith(MEAN_OF):
        return _share(case, row)
    numbers, key = case.subject.numbers, row.item.removeprefix(MEAN_OF)
    return case.subject.mean(
        lambda value: numbers(value)[key], case.held(row), lambda value: key in numbers(value)
    )


def _up_to(case: Case, row: Row) -> float:
    return part_between(case.subject, -np.inf, float(row.item), case.held(row))


def _bucket(case: Case, row: Row) -> float:
    """Return the share of a bucket, which holds its upper end; the first one both ends."""
    low, high = map(float, row.item.split(DASH))
    least = min(float(each.item.split(DASH)[0]) for each in case.crowds[0].rows)
    return part_between(case.subject, low + (low > least) * _CLOSE, high, case.held(row))


def _range(case: Case, row: Row) -> float:
    low, high = case.options["low"], case.options["high"]
    if case.subject.number is not None:
        return part_between(case.subject, low, high, case.held(row))
    return sum(case.subject.share(item, case.held(row)) for item in case.subject.items)


def _variance(case: Case, row: Row) -> float:
    mean = _mean(case, row)
    return case.subject.mean(lambda value: (value - mean) ** 2, case.held(row))


def _followed(case: Case, row: Row) -> float:
    if "levels" in case.options:
        return _level(case, row)
    return number_of(case.subject, row.item, case.held(row))


def _difference(case: Case, row: Row) -> float:
    first, second = (
        number_of(case.subject, row.item, devices) for devices in (case.held(row), case.beside(row))
    )
    return first / second - 1 if row.unit == RELATIVE else first - second


def _ratio(case: Case, row: Row) -> float:
    sides = []
    for place, option in enumerate(("numerator", "denominator")):
        devices, subject = case.held(row, place), case.crowds[place].subject
        whole = float(devices.sum()) if case.options["of"] == "totals" else 1
        sides.append(whole * number_of(subject, case.options.get(option, "true"), devices))
    return sides[0] / sides[1]


def _adoption(case: Case, row: Row) -> float:
    """Return the share of an item, or that of the devices of a value in their stretch of time."""
    if "item" in case.options:
        return number_of(case.subject, row.item, case.held(row))
    rest = _without(row, case.by)
    whole = sum(
        float(case.held(each).sum())
        for each in case.crowds[0].rows
        if _without(each, case.by) == rest
    )
    return float(case.held(row).sum()) / whole


def _without(row: Row, name: str) -> Mapping[str, str]:
    return {key: value for key, value in row.dimensions.items() if key != name}


def _actives(case: Case, row: Row) -> float:
    return float(case.held(row).sum())


def _joined(case: Case, row: Row) -> float:
    """Return the share of a step or a period, or its part of the group before it."""
    subject, devices, names = case.subject, case.held(row), list(case.subject.steps)
    inner = subject.steps[row.item]
    if row.dimensions[MEASURE] in (REACHED, ACTIVE):
        return subject.mean(inner, devices)
    outer = subject.steps[
        names[names.index(row.item) - 1] if subject.type == "funnel" else names[0]
    ]
    return subject.mean(lambda value: inner(value) and outer(value), devices, outer)


def _table(case: Case, row: Row) -> float:
    """Return the share of a cell or a margin, of all devices or of those with the answer *of*."""
    if len(case.crowds) == 2:  # of two metrics there are only margins
        (place,) = case.places(row)
        item = row.dimensions[case.crowds[place].name]
        return case.crowds[place].subject.share(item, case.held(row, place))
    answers, names = case.subject.answers, dict(row.dimensions)
    if ATTRIBUTE in names:
        names[names[ATTRIBUTE]] = names.pop(ANSWER)
    wanted = {key: names[key] for key in case.answers if names.get(key, ALL) != ALL}
    of = case.options.get("of")
    return case.subject.mean(
        lambda value: all(answers(value)[key] == label for key, label in wanted.items()),
        case.held(row),
        lambda value: of not in wanted or answers(value)[of] == wanted[of],
    )


TRUTHS: Final[Mapping[str, Callable[[Case, Row], float]]] = {
    "actives": _actives,
    "adoption": _adoption,
    "cdf": _up_to,
    "compare": _difference,
    "crosstab": _table,
    "estimate": _estimate,
    "frequency": _share,
    "funnel": _joined,
    "heavy_hitters": _share,
    "histogram": _bucket,
    "key_values": _estimate,
    "lift": _difference,
    "map": _share,
    "mean": _mean,
    "quantile": _level,
    "range": _range,
    "ratio": _ratio,
    "retention": _joined,
    "segments": _followed,
    "sum": _sum,
    "top_k": _share,
    "trend": _followed,
    "variance": _variance,
    "vector": _share,
}
