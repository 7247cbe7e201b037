"""The numbers on top of the overview: the devices of a day, a week and four weeks, and new ones.

Only metrics that show their count are asked: their reports of one period are devices, exactly.
How many of those are new is an estimate, by a metric that has the value NEW.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from flask import url_for
from msgspec import structs

from client_sdk.core.epoch import DAY, day_of_date, epoch_label, epoch_of
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.rows import ITEM, LEFT_OUT, TIME, Row
from ...analytics.verb import ACTIVES, COMPARE
from ...core.errors import DamagedTallyError, QueryError, RefusedByStoreError
from ...core.remarks import WORDS, Code
from ...query import Query
from ...query.window import PERIOD, PREVIOUS
from ...rendering.numbers import change_of, margin, numbers_of, range_of, reading, value_of
from ...rendering.possible import possible
from ...rendering.wording import days_in_words, last_day
from .arrivals import Progress, is_short
from .devices import PERIODS
from .panels import Answers, in_page

NEW: Final = "new"  # the value of devices that were not there before
_CATEGORY: Final = "category"  # the type whose values exclude each other
# Of each length of a period: the title of the last whole one, and what the running one is called.
_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "1d": ("Devices yesterday", "Today"),
    "7d": ("Devices last week", "This week"),
    "28d": ("Devices in four weeks", "These four weeks"),
}
_NEW_TITLE: Final = "New devices"
UNREADABLE: Final = "The stored counts are damaged or cannot be read. Run hearsay fsck."
_SILENT: Final = "No reports arrived in this period."
_NOTHING: Final = "No reports yet."
_EXCLUDED: Final = "No reports of this period are counted."


@dataclass(frozen=True)
class Card:
    """A number of devices in the last whole period, with the period before and the running one."""

    title: str
    url: str
    days: str = ""  # of the number, in words
    value: str = ""  # without its unit
    margin: str = ""  # "" of what was counted
    change: str = ""  # against the period before, in words
    before: str = ""  # the number of the period before, with its days
    running: str = ""  # the number of the running period, in words
    is_open: bool = False  # the number is of the running period
    reason: str = ""  # why there is no number
    fault: str = ""  # what is wrong
    left_out: tuple[str, ...] = ()  # what operators have taken out, in sentences


@dataclass(frozen=True)
class _Stretch:
    """A period of a metric: its first and its last day, and those days in words."""

    first: str
    last: str
    words: str


def cards_of(metrics: Sequence[Metric], answers: Answers) -> Iterator[Card]:
    """Yield the card of each number of devices that the *metrics* of one app know."""
    counting = _counting(metrics)
    cards = [(_counted, _TITLES[every][0], metric) for every, metric in counting.items()]
    cards += [(_new, _NEW_TITLE, metric) for metric in _knowing_new(metrics)[:1]]
    for build, title, metric in cards:
        card = Card(title, url_for("metric.metric_page", name=metric.address))
        try:
            yield build(card, metric, answers)
        except (DamagedTallyError, RefusedByStoreError):
            yield replace(card, fault=UNREADABLE)
        except QueryError as error:
            yield replace(card, reason=in_page(error))


def missing_lines(metrics: Sequence[Metric]) -> list[tuple[str, str]]:
    """Return each number, in words, that no one of *metrics* gives, and the lines that would."""
    counting = _counting(metrics)
    lines = [
        (f"the devices of {words}", f'show = "{COUNT}", every = "{every}"')
        for every, words in PERIODS.items()
        if every not in counting
    ]
    if not _knowing_new(metrics):
        lines.append(("new devices", f'show = "{COUNT}", values = ["{NEW}", "returning"]'))
    return lines


def _counting(metrics: Sequence[Metric]) -> dict[str, Metric]:
    """Return the first of *metrics* that counts the devices of each length of a period."""
    counting = [metric for metric in metrics if metric.show == COUNT]
    firsts = {metric.every: metric for metric in reversed(counting)}
    return {every: firsts[every] for every in _TITLES if every in firsts}


def _knowing_new(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the ones of *metrics* that count devices and say which are new."""
    counting = _counting(metrics).values()
    return [m for m in counting if m.type == _CATEGORY and NEW in m.domain.labels]


def _stretches(metric: Metric, answers: Answers) -> list[_Stretch]:
    """Return the running period of *metric*, the last whole one, and the one before that."""
    every, today = metric.every, answers.today
    running = epoch_of(every, day_of_date(today) * DAY)
    labels = [epoch_label(every, running - back) for back in range(3)]
    words = days_in_words(labels, every, alone=True, today=today)
    return [_Stretch(label, last_day(label, every), words[label]) for label in labels]


def _rows(
    metric: Metric, verb: str, stretches: Sequence[_Stretch], answers: Answers
) -> tuple[list[Row | None], tuple[str, ...]]:
    """Return the row of each of *stretches*, None without one, and what is left out of them.

    Of items it is the row of NEW.
    """
    days = stretches[-1].first, stretches[0].last
    query = Query(metrics=[metric.address], verb=verb, date_range=days, dimensions=[TIME])
    reply = answers.reply(query, is_checked=False)
    rows = possible(reply.rows, reply.meta.chart)
    known = {row.dimensions[TIME]: row for row in rows if row.item in ("", NEW)}
    left_out = tuple(reply.meta.facts.get(LEFT_OUT, ()))
    return [known.get(stretch.first) for stretch in stretches], left_out


def _counted(card: Card, metric: Metric, answers: Answers) -> Card:
    """Return *card* with how many devices reported."""
    stretches = _stretches(metric, answers)
    (now, whole, before), left_out = _rows(metric, ACTIVES, stretches, answers)
    card = replace(card, left_out=left_out)
    name = _TITLES[metric.every][1]
    if now is not None and whole is None and before is None:
        return replace(card, title=f"Devices {name.lower()}", value=_bare(now), is_open=True)
    running = f"{name} so far: {_bare(now)}" if now else ""
    card = replace(card, days=stretches[1].words, running=running)
    if whole is None and left_out:
        return replace(card, reason=_EXCLUDED)
    if whole is None:
        return replace(card, fault=_SILENT) if before else replace(card, reason=_NOTHING)
    if before is None:
        return replace(card, value=_bare(whole))
    return replace(
        card,
        value=_bare(whole),
        change=change_of(whole, before),
        before=f"{_bare(before)} ({stretches[2].words})",
    )


def _bare(row: Row) -> str:
    """Return a count of devices without its unit, or the bounds of it."""
    row = structs.replace(row, unit="")
    return range_of(row) or value_of(row)


def _new(card: Card, metric: Metric, answers: Answers) -> Card:
    """Return *card* with how many of the devices are new: their share of those that reported.

    The difference is between the shares, as its interval knows how the noise repeats.
    """
    _, *stretches = _stretches(metric, answers)
    counts, left_out = _rows(metric, ACTIVES, stretches, answers)
    shares, _ = _rows(metric, metric.domain.verb, stretches, answers)
    whole, before = map(_part, shares, counts)
    card = replace(card, days=stretches[0].words, left_out=left_out)
    if whole is None:
        return replace(card, reason=_why_none(metric, shares[0]))
    card = replace(card, value=value_of(whole), margin=margin(whole))
    if before is None:
        return card
    card = replace(card, before=f"{reading(before)} ({stretches[1].words})")
    query = Query(
        metrics=[metric.address],
        verb=COMPARE,
        date_range=(stretches[0].first, stretches[0].last),
        against=PREVIOUS,
        dimensions=[f"{TIME}:{PERIOD}"],
        options={ITEM: NEW},
    )
    rows = answers.reply(query, is_checked=False).rows
    is_noise = any(note.code == Code.NO_CHANGE for row in rows for note in row.notes)
    change = WORDS[Code.NO_CHANGE] if is_noise else f"share {reading(rows[0], signed=True)}"
    return replace(card, change=change)


def _why_none(metric: Metric, row: Row | None) -> str:
    if row is None:
        return _NOTHING
    return Progress(row.n, metric.min_reports).words if is_short(row) else row.reason or _NOTHING


def _part(share: Row | None, count: Row | None) -> Row | None:
    """Return *share* of an exact *count* of devices, as devices; None if either is not known."""
    if share is None or count is None or count.value is None:
        return None
    numbers = numbers_of(share)
    if numbers is None:
        return None
    value, low, high = (count.value * end for end in numbers)
    error = count.value * (share.std_error or 0.0)
    return structs.replace(share, unit="", value=value, ci_low=low, ci_high=high, std_error=error)
