"""From a question to what must be read: metrics, epochs, segments and groups, all checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import prod
from typing import Final

from msgspec import Struct, structs

from client_sdk.core.epoch import ONCE, epoch_label, epoch_of, epoch_start
from client_sdk.registry.metric import COUNT, Metric

from ..analytics.rows import TIME
from ..analytics.verb import ACTIVES, AVERAGED, ESTIMATE, Verb, load, names
from ..core.catalog import Catalog
from ..core.cells import LAST_VERSION, SOURCE, Source, version_of
from ..core.errors import QueryError
from ..core.remarks import Code, Remark, remark
from .completion import completed
from .exclusions import (
    NOTHING,
    Excluded,
    Selection,
    key_filters,
    source_filters,
    source_notes,
)
from .request import Query, convert
from .window import (
    EPOCH,
    PERIOD,
    PREVIOUS,
    day_of_text,
    days_for,
    earlier_epochs,
    epochs_of,
    labeller,
    usual_range,
)

MOST_GROUPS: Final = 50_000  # slices of one question
MOST_ROWS: Final = 200_000  # of all pages; each takes 500 bytes and 7 µs
_FEWER: Final = "take fewer dimensions, a longer stretch of time or a shorter window"


@dataclass(frozen=True)
class Reading:
    """What is read of one metric name: its definitions, the current one first, and epochs.

    ``version`` is the one asked for, or the last once it is published, so that its answer never
    changes.  Without one, all that has been folded so far counts: an earlier version would leave
    reports out of all periods that came later than it allows for the last.
    """

    definitions: tuple[Metric, ...]
    epochs: Sequence[int]
    version: int | None
    running: int | None  # the epoch that is still running, if it is in the window
    label: Callable[[int], str] | None  # of the stretch of time of an epoch; None: no time asked
    earlier: range | None = None  # those of the epochs that the others are held against

    @property
    def metric(self) -> Metric:
        """The current definition."""
        return self.definitions[0]

    @property
    def is_open(self) -> bool:
        """Whether an epoch is still running."""
        return self.running is not None

    @property
    def is_unfinished(self) -> bool:
        """Whether a period is still running; what is reported once has no periods."""
        return self.is_open and self.metric.every != ONCE

    @property
    def window(self) -> tuple[str, str]:
        """The labels of the first and the last epoch."""
        every = self.metric.every
        return epoch_label(every, self.epochs[0]), epoch_label(every, self.epochs[-1])

    @property
    def gap(self) -> tuple[str, str] | None:
        """The labels of the first and the last epoch between both stretches, which are not read."""
        if self.earlier is None or self.earlier.stop in self.epochs:
            return None
        last = next(epoch for epoch in self.epochs if epoch >= self.earlier.stop) - 1
        return epoch_label(self.metric.every, self.earlier.stop), epoch_label(
            self.metric.every, last
        )


@dataclass(frozen=True)
class Plan:
    """A question that can be answered."""

    query: Query
    verb: Verb
    options: Struct
    readings: tuple[Reading, ...]
    dimensions: tuple[str, ...]  # to group by, in the order asked; TIME for stretches of time
    filters: Mapping[str, frozenset[str]]  # of a segment's dimension the values that are taken
    # Of each definition the epoch before which all is pruned; None until the store was asked.
    marks: Mapping[bytes, int] | None = None
    notes: tuple[Remark, ...] = ()  # on what is pruned, and on sources that are left out
    # Of each filter of sources whether a report must have one of its facts, or none of them.
    sources: tuple[tuple[bool, frozenset[str]], ...] = ()
    keys: tuple[Selection, ...] = ()  # filters of keys
    excluded: Excluded = NOTHING  # what operators have taken out, as far as it is met
    is_as_folded: bool = False  # a version was asked for: what was published stays as it was

    @property
    def groups(self) -> tuple[str, ...]:
        """The dimensions of segments to group by."""
        return tuple(name for name in self.dimensions if name != TIME)

    @property
    def is_settled(self) -> bool:
        """Whether its answer can never change."""
        return all(reading.version is not None for reading in self.readings)

    def takes(self, source: Source) -> bool:
        """Return whether reports of *source* are asked for."""
        return all(bool(facts & source) == wanted for wanted, facts in self.sources)


def plan(query: Query, catalog: Catalog, now: float) -> Plan:
    """Return what must be read to answer *query* at Unix time *now*.

    Raises: QueryError: names the field at fault and what would work.
            UnknownMetricError: *catalog* has no metric of this name.
    """
    query = own_question(query, catalog)
    verb = _verb(query.verb)
    metrics = _metrics(query, verb, catalog)
    query = completed(query, metrics[0])
    granularity, dimensions = _dimensions(query, verb)
    for name in dimensions:
        if name != TIME:
            _require_dimension(metrics, name, "dimensions")
    if query.postprocess not in verb.postprocess:
        known = ", ".join(verb.postprocess)
        raise QueryError("postprocess", f"verb {query.verb} takes one of {known}")
    days = _days(query, metrics, now, compared=granularity == PERIOD)
    readings = tuple(_reading(catalog, metric, days, granularity, query, now) for metric in metrics)
    resolved = Plan(
        query=query,
        verb=verb,
        options=convert(query.options, verb.options, "options"),
        readings=readings,
        dimensions=dimensions,
        filters=_filters(query, metrics),
        sources=tuple(source_filters(query)),
        keys=tuple(key_filters(query)),
        notes=(*_definition_notes(query, metrics[0]), *source_notes(query)),
        is_as_folded=query.version is not None,
    )
    _require_moderate(resolved)
    return resolved


def own_question(query: Query, catalog: Catalog) -> Query:
    """Return *query*; the own question of a metric that shows its count is how many reported.

    Raises: UnknownMetricError: *catalog* has no such metric.
    """
    (name, *others) = query.metrics
    if query.verb != ESTIMATE or others or catalog.metric(name).show != COUNT:
        return query
    return structs.replace(query, verb=ACTIVES, options={**query.options, **AVERAGED})


def earlier(query: Query, catalog: Catalog, now: float) -> Query:
    """Return *query* over the range that it names in ``against`` alone, to be drawn beside it.

    Rows of both are matched by their place in their range.  Without ``against`` it is the
    previous range.

    Raises: as ``plan``.
    """
    query = own_question(query, catalog)
    metrics = _metrics(query, _verb(query.verb), catalog)
    first, last = _days(query, metrics, now)
    epochs = epochs_of(metrics[0], first, last, "date_range")
    every = metrics[0].every
    if every == ONCE:
        rule = "has no earlier range: it is reported once"
        raise QueryError("against", f"metric={metrics[0].address} {rule}")
    stretch = earlier_epochs(metrics[0], epochs, (first, last), query.against or PREVIOUS)
    ends = (
        datetime.fromtimestamp(epoch_start(every, stretch[i]), UTC).date().isoformat()
        for i in (0, -1)
    )
    return structs.replace(query, date_range=(next(ends), next(ends)), against=None)


def _verb(name: str) -> Verb:
    try:
        return load(name)
    except LookupError:
        raise QueryError("verb", f"must be one of {', '.join(names())}") from None


def _metrics(query: Query, verb: Verb, catalog: Catalog) -> list[Metric]:
    """Return the metrics asked for, which the verb takes."""
    if len(set(query.metrics)) < len(query.metrics):
        raise QueryError("metrics", "must be different")
    if len(query.metrics) > verb.most_metrics:
        rule = f"verb {query.verb} takes at most {verb.most_metrics}; ask once for each"
        raise QueryError("metrics", rule)
    if len(query.metrics) < verb.least_metrics:
        raise QueryError("metrics", f"verb {query.verb} takes {verb.least_metrics}; name another")
    metrics = [catalog.metric(name) for name in query.metrics]
    if query.definition is not None:
        metrics = [_defined(query.definition, metrics, catalog)]
    if len({metric.digest for metric in metrics}) < len(metrics):  # by name and by app/name
        raise QueryError("metrics", "must be different")
    for place, metric in enumerate(metrics):
        if reason := verb.refusal(metric):
            raise QueryError(f"metrics.{place}", f"{metric.address}: {reason}")
    return metrics


def _defined(definition: str, metrics: Sequence[Metric], catalog: Catalog) -> Metric:
    """Return the *definition* of the only metric.  Raises QueryError: it has no such one."""
    if len(metrics) > 1:
        raise QueryError("definition", "is of one metric; ask once for each")
    listed = catalog.listed(metrics[0])
    if definition not in listed:
        in_use, *others = listed
        earlier = f", earlier are {', '.join(others)}" if others else ", and there is no other"
        rule = f"of {metrics[0].address} {in_use} is in use{earlier} in the registry files"
        raise QueryError("definition", rule)
    return listed[definition]


def _definition_notes(query: Query, metric: Metric) -> Iterator[Remark]:
    if query.definition is not None:
        yield remark(
            Code.DEFINITION,
            metric.address,
            definition=query.definition,
            mechanism=metric.mechanism_name,
        )


def _dimensions(query: Query, verb: Verb) -> tuple[str | None, tuple[str, ...]]:
    """Return the granularity of time, if it is asked for, and the dimensions to tell rows apart."""
    granularity: str | None = None
    names: list[str] = []
    for place, name in enumerate(query.dimensions):
        head, _, stretch = name.partition(":")
        if head == TIME:
            granularity, name = stretch if ":" in name else EPOCH, TIME
        if name in names:
            raise QueryError(f"dimensions.{place}", "is given twice")
        names.append(name)
    if verb.needs_time and TIME not in names:
        granularity = EPOCH if query.against is None else PERIOD
        names.insert(0, TIME)
    if query.against is None:
        return granularity, tuple(names)
    if granularity not in (None, PERIOD):
        rule = "makes two stretches of time, each one row"
        other = "ask for each range by itself to see both over time"
        raise QueryError("against", f"{rule}, so no {TIME} is shown within them; {other}")
    return PERIOD, tuple(names) if TIME in names else (TIME, *names)


def _require_dimension(metrics: Sequence[Metric], name: str, place: str) -> None:
    for metric in metrics:
        if name not in metric.segments:
            names = ", ".join((TIME, *metric.segments))
            raise QueryError(place, f"metric={metric.address} has the dimensions {names}")


def _filters(query: Query, metrics: Sequence[Metric]) -> dict[str, frozenset[str]]:
    taken: dict[str, frozenset[str]] = {}
    for place, (kind, name, values) in enumerate(query.filters):
        if name == SOURCE:
            continue
        if name == TIME or ":" in name:
            raise QueryError(f"filters.{place}", "time is chosen by date_range")
        _require_dimension(metrics, name, f"filters.{place}")
        vocabulary = {value for metric in metrics for value in metric.segments[name]}
        if not vocabulary.issuperset(values):
            known = ", ".join(sorted(vocabulary))
            raise QueryError(f"filters.{place}", f"{name} has the values {known}")
        chosen = frozenset(values if kind == "is" else vocabulary.difference(values))
        taken[name] = taken.get(name, chosen) & chosen
        if not taken[name]:
            raise QueryError(f"filters.{place}", f"leaves no value of {name}")
    return taken


def _days(
    query: Query, metrics: Sequence[Metric], now: float, *, compared: bool = False
) -> tuple[date, date]:
    words = usual_range(metrics) if query.date_range is None else query.date_range
    if isinstance(words, str):
        return days_for(words, metrics, now, "date_range", compared=compared)
    first, last = words
    return day_of_text(first, "date_range.0"), day_of_text(last, "date_range.1")


def _reading(
    catalog: Catalog,
    metric: Metric,
    days: tuple[date, date],
    granularity: str | None,
    query: Query,
    now: float,
) -> Reading:
    chosen = epochs_of(metric, *days, "date_range")
    before: range | None = None
    if granularity == PERIOD and metric.every != ONCE:
        before = earlier_epochs(metric, chosen, days, query.against or PREVIOUS)
    label = None
    if granularity is not None:
        place = "dimensions" if query.against is None else "against"
        label = labeller(metric, granularity, chosen, place, before)
    epochs: Sequence[int] = chosen
    if before is not None:
        adjoins = before.stop == chosen.start
        epochs = range(before.start, chosen.stop) if adjoins else (*before, *chosen)
    today = epoch_of(metric.every, now)  # hours of today that are to come are in the window, too
    running = today if epochs[-1] >= today else None
    published = version_of(metric.every, epochs, now)
    version = query.version
    if version is None and published == LAST_VERSION:
        version = published
    if query.version is not None and (published is None or query.version > published):
        rule = "none yet" if published is None else f"at most {published}"
        raise QueryError("version", f"is not published; published is {rule}", query.version)
    definitions = (metric,) if query.definition else catalog.definitions(metric)
    return Reading(definitions, epochs, version, running, label, before)


def _require_moderate(plan: Plan) -> None:
    """Raise QueryError if so many groups are asked for that nobody could read them."""
    for reading in plan.readings:
        groups = most_groups(plan, reading)
        most = min(plan.verb.most_slices, MOST_GROUPS)
        if groups > most:
            rule = f"would give {groups} groups, must be at most {most} for {plan.query.verb}"
            raise QueryError("dimensions", f"{rule}; {_FEWER}")
        rows = groups * prod(_items(each.metric) for each in plan.readings)
        if rows > MOST_ROWS:
            rule = f"would give {rows} rows, must be at most {MOST_ROWS}"
            raise QueryError("dimensions", f"{rule}; {_FEWER}")


def most_groups(plan: Plan, reading: Reading) -> int:
    """Return how many groups there are, if all of them have reports."""
    stretches = len(set(map(reading.label, reading.epochs))) if reading.label else 1
    return stretches * prod(len(reading.metric.segments[name]) for name in plan.groups)


def _items(metric: Metric) -> int:
    """Return how many rows a slice of *metric* gives, about."""
    return len(metric.domain.labels) or 1
