"""The choices of a visitor in the address of a page: a range of time, segments, an item.

A segment's value stands in the address as it is, or after "!" if it is left out:
``segment.platform=linux``, ``segment.platform=!linux``.  Several values of a dimension may be
named.  A value that itself begins with "!" or "=" stands after "=".
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias
from urllib.parse import urlencode

from werkzeug.datastructures import MultiDict

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import Metric

from ...analytics.rows import TIME, Period
from ...core.errors import QueryError
from ...query import Query
from ...query.request import SEGMENT
from ...query.window import PREVIOUS, RANGES, YEAR, Against, day_of_text, usual_range
from ..api.openapi import Parameter

Filter: TypeAlias = tuple[Literal["is", "is_not"], str, list[str]]

WORDS: Final[Mapping[str, str]] = {
    "7d": "7 days",
    "14d": "14 days",
    "28d": "28 days",
    "30d": "30 days",
    "91d": "91 days",
    "month": "this month",
    "6mo": "6 months",
    "12mo": "12 months",
    "year": "this year",
}
_WITHOUT, _WITH = "!", "="  # before a value in an address: without it; with it, as spelt
DATES: Final = "dates"  # the range with a given first and last day
AGAINST: Final = "against"  # the field for the period to compare with
EARLIER_DAYS: Final = (f"{AGAINST}.from", f"{AGAINST}.to")
EARLIER: Final = {
    PREVIOUS: "the previous period",
    YEAR: "the same dates a year ago",
    DATES: "other dates",
}
_MOST_DAYS: Final = 120  # of a line, one by one
_LONG: Final = frozenset({"6mo", "12mo", "year"})
_SHORT: Final = frozenset({"7d", "14d", "month", "year"})  # may hold no start of four weeks


@dataclass(frozen=True)
class Choices:
    """A range of time, in words or as two dates; values of segments; an item.

    ``range`` is "" where none was chosen: each metric is then shown over its usual one.
    ``segment`` has dimensions and values as addresses have them.
    """

    range: str = ""
    first: str = ""
    last: str = ""
    segment: tuple[tuple[str, str], ...] = ()
    item: str = ""
    against: str = ""  # the earlier period drawn below lines: one of EARLIER

    @property
    def date_range(self) -> str | tuple[str, str] | None:
        """The same as a question has it."""
        return (self.first, self.last) if self.range == DATES else self.range or None

    @property
    def is_long(self) -> bool:
        """Whether days are more than a line can show."""
        if self.range != DATES:
            return self.range in _LONG
        period = Period.read(f"{self.first}/{self.last}")
        return period is not None and (period.last - period.begin).days > _MOST_DAYS

    def shown_for(self, metrics: Iterable[Metric]) -> Choices:
        """Return these choices with the range that is in force for *metrics*."""
        return replace(self, range=self.range or usual_range(metrics))

    def ranges(self, metrics: Iterable[Metric]) -> dict[str, str]:
        """Return the ranges, in words, that hold an epoch of each of *metrics*, and the chosen.

        None if each is asked once of a device: its reports are of no days to choose among.
        """
        metrics = list(metrics)
        if metrics and all(metric.every == ONCE for metric in metrics):
            return {}
        is_monthly = any(metric.every == "28d" for metric in metrics)
        left_out = _SHORT - {self.range} if is_monthly else frozenset[str]()
        return {name: words for name, words in WORDS.items() if name not in left_out}

    def query(
        self,
        metric: Metric,
        verb: str,
        options: Mapping[str, object] | None = None,
        dimensions: Iterable[str] = (),
    ) -> Query:
        """Return a query on *metric* over these days and segments."""
        filters = filters_of((name, text) for name, text in self.segment if name in metric.segments)
        return Query(
            metrics=[metric.address],
            verb=verb,
            date_range=self.date_range,
            dimensions=list(dimensions),
            filters=filters,
            options=dict(options or {}),
        )

    def address(self) -> str:
        """Return it as the end of an address, "" for what is shown without one."""
        query = urlencode(list(self.parameters()))
        return f"?{query}" if query else ""

    def parameters(self) -> Iterator[tuple[str, str]]:
        """Yield the parameters of the address."""
        if self.range == DATES:
            yield from (("from", self.first), ("to", self.last))
        elif self.range:
            yield "range", self.range
        for name, value in self.segment:
            yield SEGMENT + name, value
        if self.item:
            yield "item", self.item
        if self.against:
            yield "before", self.against


def earlier_of(parameters: MultiDict[str, str]) -> Against | None:
    """Return the earlier range that an address names, None if it names none.  Raises QueryError."""
    words = parameters.get(AGAINST, "")
    if words in ("", PREVIOUS, YEAR):
        return words or None  # type: ignore[return-value]  # one of the two words
    if words != DATES:
        raise QueryError(AGAINST, f"must be one of {', '.join(EARLIER)}")
    first, last = (day_of_text(parameters.get(name, ""), name) for name in EARLIER_DAYS)
    return first.isoformat(), last.isoformat()


def filters_of(segment: Iterable[tuple[str, str]]) -> list[Filter]:
    """Return the filters of a query that *segment*, dimensions with values as in addresses, is."""
    filters: dict[tuple[Literal["is", "is_not"], str], list[str]] = {}
    for name, text in segment:
        kind: Literal["is", "is_not"] = "is_not" if text.startswith(_WITHOUT) else "is"
        value = text[1:] if text.startswith((_WITHOUT, _WITH)) else text
        filters.setdefault((kind, name), []).append(value)
    return [(kind, name, values) for (kind, name), values in filters.items()]


def segment_of(filters: Iterable[Filter]) -> tuple[tuple[str, str], ...]:
    """Return *filters* of a query as dimensions with values as addresses have them."""
    return tuple(
        (name, only(value) if kind == "is" else without(value))
        for kind, name, values in filters
        for value in values
    )


def only(value: str) -> str:
    """Return how an address names a *value* that is taken."""
    return f"{_WITH}{value}" if value.startswith((_WITHOUT, _WITH)) else value


def without(value: str) -> str:
    """Return how an address names a *value* that is left out."""
    return f"{_WITHOUT}{value}"


def filter_rows(metric: Metric, filters: Sequence[Filter]) -> list[dict[str, object]]:
    """Return what a form shows of each dimension of *metric*: its values, and those in *filters*.

    Each value has two boxes: to take it, and to leave it out.
    """
    chosen = segment_of(filters)
    return [
        {
            "field": SEGMENT + name,
            "title": name.replace("_", " ").capitalize(),
            "words": "; ".join(_taken(kind, which) for kind, of, which in filters if of == name),
            "values": [
                (
                    value,
                    [
                        (words, text, (name, text) in chosen)
                        for words, text in (("only", only(value)), ("not", without(value)))
                    ],
                )
                for value in values
            ],
        }
        for name, values in metric.segments.items()
    ]


def in_words(filters: Iterable[Filter]) -> str:
    """Return *filters* in words: "platform: linux; version: not 1.0"."""
    return "; ".join(
        f"{name.replace('_', ' ')}: {_taken(kind, values)}" for kind, name, values in filters
    )


def _taken(kind: str, values: Iterable[str]) -> str:
    return f"{'not ' if kind == 'is_not' else ''}{' or '.join(values)}"


def require_known(
    parameters: MultiDict[str, str],
    known: Iterable[Parameter] = (),
    *beginnings: str,
    many: Container[str] = (),
) -> None:
    """Raise QueryError if an address has a parameter that its page has not, or one twice.

    Args: known: the page's parameters.  beginnings: prefixes of names that the registry defines.
          many: names that may be given several times; names of segments may, too.
    """
    names = [parameter["name"] for parameter in known if parameter["in"] == "query"]
    for name, values in parameters.lists():
        if name not in names and not name.startswith(beginnings):
            allowed = ", ".join([*names, *(f"{start}…" for start in beginnings)]) or "none"
            raise QueryError("parameter", f"the address has an unknown one; known are {allowed}")
        if len(values) > 1 and name not in many and not name.startswith(SEGMENT):
            raise QueryError(name, "must be given once")


def choices_of(parameters: MultiDict[str, str]) -> Choices:
    """Read what was chosen from the *parameters* of an address; empty ones were not.

    Raises: QueryError: there is no such range, a day is no date, one of two is missing, or they
            are in the wrong order.
    """
    values = {name: value for name, value in parameters.items() if value}
    for name in ("from", "to", *EARLIER_DAYS):
        if name in values:
            day_of_text(values[name], name)
    words = values.get("range", DATES if "from" in values or "to" in values else "")
    if words not in (*RANGES, DATES, ""):
        raise QueryError("range", f"must be one of {', '.join(RANGES)}")
    if words == DATES:
        missing = [name for name in ("from", "to") if name not in values]
        if len(missing) == 1:
            raise QueryError(missing[0], "must be given, too: a range has two days")
        if not missing and values["from"] > values["to"]:
            first, last = values["from"], values["to"]
            raise QueryError("from", f"must not be after {last}; swap the two days", first)
        words = "" if missing else words
    segment = sorted(
        (name.removeprefix(SEGMENT), value)
        for name, texts in parameters.lists()
        for value in dict.fromkeys(texts)
        if name.startswith(SEGMENT) and value
    )
    dates = (values.get("from", ""), values.get("to", "")) if words == DATES else ("", "")
    against = values.get("before", "")
    if against not in ("", PREVIOUS, YEAR):
        raise QueryError("before", f"must be one of {PREVIOUS}, {YEAR}")
    return Choices(words, *dates, tuple(segment), values.get("item", ""), against)


def granularity(metric: Metric, choices: Choices) -> str:
    """Return the stretch of time for each point of a line."""
    if metric.every == "28d":
        return TIME
    if metric.every == "7d" or choices.is_long:
        return f"{TIME}:week"
    return f"{TIME}:day"
