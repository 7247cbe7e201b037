"""Take a source out of all answers, and put it back: what is checked before a record is written.

A command that cannot be meant is refused, and changes nothing.  What it would do is counted from
the tallies first, so that an operator sees it before anybody else does.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, Protocol

import msgspec
from msgspec import structs

from client_sdk.core.epoch import ONCE, epoch_label, epoch_start
from client_sdk.registry.metric import Metric

from ..core.catalog import Catalog
from ..core.cells import OTHER_KEYS, Cell, key_in, split_source, values_in
from ..core.errors import ExclusionError
from ..core.exclusions import (
    KEY,
    MAX_AUTHOR,
    MAX_REASON,
    MOST,
    VERSION,
    Exclusion,
    Inclusion,
    checked_words,
    read_all,
    to_json,
)
from ..estimation.tally import reports_of
from ..storage.protocols import ExclusionRecords, TallyStore
from ..storage.values import COUNTER_SIZE, Health
from .exclusions import ExcludedCounts, ExclusionFilter
from .gate import require_affordable, require_few_indexes
from .window import day_of_text

_ID_DIGITS: Final = 8


class Store(TallyStore, Protocol):
    """The tallies, and the clock of where they are."""

    def health(self) -> Health:
        """Return what the servers say of themselves."""


@dataclass(frozen=True)
class ExclusionRequest:
    """What an operator wants taken out.  Days are dates; without any it is of what is asked once.

    Without metrics it is of all that the catalog knows.
    """

    by: Literal["key", "version"]
    name: str
    because: str
    author: str
    metrics: tuple[str, ...] = ()
    first: str = ""
    last: str = ""


class Effect(NamedTuple):
    """What an exclusion does to a metric, counted in its tallies as they are now."""

    metric: Metric
    stretch: str  # all days of the whole epochs, in words; "" if it is asked once
    gone: ExcludedCounts
    of: int  # reports in these epochs
    already: int = 0  # of those that go, how many other exclusions leave out, too
    unknown: int = 0  # of these, those whose key nobody knows
    others: int = 0  # of these, those of the keys that are not kept apart, if it is of another


def _clock_of(store: Store) -> int:
    """Return the Unix time of the store, the latest of its servers: no operator's clock counts.

    Raises: ExclusionError: no server tells it.
    """
    times = store.health().times
    if not times:
        raise ExclusionError("clock: the store does not tell its time, so no day can be checked")
    return int(max(times))


def proposed(
    request: ExclusionRequest, catalog: Catalog, store: Store, keys: Collection[str]
) -> tuple[Exclusion, list[Effect]]:
    """Return the exclusion that *request* asks for, and what it would do; nothing is written.

    Args:   keys: names of the keys that there are or were.
    Raises: ExclusionError: it cannot be meant, or what is stored cannot be parted.
            UnknownMetricError, QueryError: too many epochs at once.
    """
    now = _clock_of(store)
    first, last = _days(request, now)
    exclusion = Exclusion(
        id="",
        by=request.by,
        name=request.name,
        metrics=tuple(sorted({Exclusion.address_of(catalog.metric(n)) for n in request.metrics})),
        first=first,
        last=last,
        author=checked_words("author", request.author, MAX_AUTHOR),
        because=checked_words("because", request.because, MAX_REASON),
        at=now,
    )
    if request.by == VERSION and not request.metrics:
        exclusion = structs.replace(exclusion, metrics=_versioned(exclusion, catalog, store))
    known = read_all(store.exclusions())
    alike = [each for each in known if _key(each) == _key(exclusion)]
    for each in alike:
        if each.included is None:
            raise ExclusionError(
                f"{request.by}={request.name}: is excluded there already, by {each.id}"
            )
    exclusion = structs.replace(exclusion, id=_id(exclusion, len(alike)))
    metrics = list(_metrics(exclusion, catalog, store))
    effects = [_effect(exclusion, metric, catalog, store, known) for metric in metrics]
    if not any(effect.gone.reports for effect in effects):
        raise ExclusionError(
            f"{request.by}={request.name}: {_why_nothing(request, catalog, keys, effects)}"
        )
    return exclusion, [each for each in effects if each.gone.reports or each.unknown or each.others]


def kept_once_only(
    request: ExclusionRequest, exclusion: Exclusion, catalog: Catalog, store: Store
) -> list[Metric]:
    """Return the metrics that are asked once and keep reports of the source.

    Days were given, and these metrics have none.
    """
    if not request.first or request.metrics:
        return []
    of_all_days = structs.replace(exclusion, metrics=(), first="", last="")
    return [
        metric
        for metric in catalog
        if of_all_days.is_meant(metric) and _has_reports(of_all_days, metric, catalog, store)
    ]


def exclude(exclusion: Exclusion, store: Store, records: ExclusionRecords) -> None:
    """Write what was proposed.  Raises ExclusionError: there are as many as there may be."""
    if len(store.exclusions()) >= MOST:
        raise ExclusionError(f"exclusions: there are {MOST} already, which is the most")
    if not records.put(exclusion.id, to_json(exclusion)):
        raise ExclusionError(f"id={exclusion.id}: is taken; run the command again")


def record_deleted(
    key: str,
    epochs: Iterable[tuple[Metric, int]],
    author: str,
    store: Store,
    records: ExclusionRecords,
) -> None:
    """Write that the tallies of *key* are deleted in *epochs*, before they are.

    So no answer rests on a part of them, and each says that they are gone.  Nothing is written of
    what is recorded already.

    Raises: ExclusionError: there are as many exclusions as there may be.
    """
    known = read_all(store.exclusions())
    deleted = [each for each in known if each.deleted and (each.by, each.name) == (KEY, key)]
    new = [
        (metric, epoch)
        for metric, epoch in epochs
        if not any(each.covers(metric) and epoch in each.epochs(metric) for each in deleted)
    ]
    for is_once in (False, True):
        mine = [(metric, epoch) for metric, epoch in new if (metric.every == ONCE) == is_once]
        if not mine:
            continue
        first = min(epoch_start(metric.every, epoch) for metric, epoch in mine)
        last = max(epoch_start(metric.every, epoch + 1) - 1 for metric, epoch in mine)
        days = [datetime.fromtimestamp(end, UTC).date().isoformat() for end in (first, last)]
        exclusion = Exclusion(
            id="",
            by=KEY,
            name=key,
            metrics=tuple(sorted({Exclusion.address_of(metric) for metric, _ in mine})),
            first="" if is_once else days[0],
            last="" if is_once else days[1],
            author=checked_words("author", author, MAX_AUTHOR),
            because="hearsay prune --key",
            at=_clock_of(store),
            deleted=True,
        )
        alike = sum(_key(each) == _key(exclusion) for each in known)
        exclude(structs.replace(exclusion, id=_id(exclusion, alike)), store, records)


def include(
    name: str, because: str, author: str, store: Store, records: ExclusionRecords
) -> Exclusion:
    """Take the exclusion *name* back.  Raises ExclusionError: there is none in force."""
    stored = store.exclusions()
    if name not in stored:
        raise ExclusionError("id: no such exclusion; see hearsay exclusions")
    (exclusion,) = read_all({name: stored[name]})
    if exclusion.deleted:
        raise ExclusionError(f"id={name}: its reports are deleted, so nothing can be put back")
    if exclusion.included is not None:
        raise ExclusionError(f"id={name}: was taken back by {exclusion.included.author} already")
    back = Inclusion(
        author=checked_words("author", author, MAX_AUTHOR),
        because=checked_words("because", because, MAX_REASON),
        at=_clock_of(store),
    )
    ended = structs.replace(exclusion, included=back)
    if not records.put(name, to_json(ended), stored[name]):
        raise ExclusionError(f"id={name}: somebody else has changed it meanwhile; look again")
    return ended


def _id(exclusion: Exclusion, before: int) -> str:
    """Return the id of *exclusion*, which so many *before* it were alike.

    It follows from what is taken out, so of two operators who ask for the same at once only one
    writes it.
    """
    text = msgspec.json.encode([*_key(exclusion), before])
    return hashlib.sha256(text).hexdigest()[:_ID_DIGITS]


def _key(exclusion: Exclusion) -> tuple[object, ...]:
    """Return what an exclusion takes out, whoever made it."""
    return exclusion.by, exclusion.name, exclusion.metrics, exclusion.first, exclusion.last


def _days(request: ExclusionRequest, now: int) -> tuple[str, str]:
    """Return the first and the last day as they are stored."""
    if not request.first and not request.last:
        return "", ""
    if not request.first or not request.last:
        raise ExclusionError("from, to: must both be given, or neither for what is asked once")
    first, last = day_of_text(request.first, "from"), day_of_text(request.last, "to")
    today = datetime.fromtimestamp(now, UTC).date()
    if first > last:
        raise ExclusionError(f"from={first}: must not be after {last}")
    if last > today:
        rule = f"must not be after {today}, which is today by the store's clock"
        raise ExclusionError(f"to={last}: {rule}; a key that must report no more is revoked")
    return first.isoformat(), last.isoformat()


def _versioned(exclusion: Exclusion, catalog: Catalog, store: Store) -> tuple[str, ...]:
    """Return the metrics that have the version of *exclusion*, one by one.

    Later registries may not list it any more, and this one may have stopped to.
    """
    metrics = (
        Exclusion.address_of(metric)
        for metric in catalog
        if exclusion.is_meant(metric) and _has_version(exclusion, metric, catalog, store)
    )
    return tuple(sorted(set(metrics)))


def _has_version(exclusion: Exclusion, metric: Metric, catalog: Catalog, store: Store) -> bool:
    is_listed = exclusion.name in metric.segments.get(VERSION, ())
    return is_listed or _has_reports(exclusion, metric, catalog, store)


def _has_reports(exclusion: Exclusion, metric: Metric, catalog: Catalog, store: Store) -> bool:
    """Return whether there are reports of the source of *exclusion* in its epochs."""
    epochs = exclusion.epochs(metric)
    require_few_indexes(len(epochs), store.shards)
    return any(
        exclusion.name == _source_of(cell, exclusion.by)
        for definition in catalog.definitions(metric)
        for cell in store.index(definition.digest, epochs).cells
    )


def _source_of(cell: Cell, by: str) -> str | None:
    """Return the key or the version of the reports in *cell*."""
    if by == VERSION:
        return values_in(cell.segment).get(VERSION)
    return key_in(split_source(cell.segment)[0])


def _metrics(exclusion: Exclusion, catalog: Catalog, store: Store) -> Iterator[Metric]:
    """Yield the metrics that *exclusion* can be of.  Raises ExclusionError: one named cannot."""
    for metric in catalog:
        named = Exclusion.address_of(metric) in exclusion.metrics
        if named and (metric.every == ONCE) == bool(exclusion.first):
            rule = "is asked once, so it has no days: leave out --from and --to"
            other = f"is asked every {metric.every}: give --from and --to"
            raise ExclusionError(f"metric={metric.address}: {rule if exclusion.first else other}")
        if exclusion.by == VERSION and not named:
            continue
        if exclusion.by == VERSION and not _has_version(exclusion, metric, catalog, store):
            rule = f"does not keep a version {exclusion.name} apart (dimension {VERSION})"
            raise ExclusionError(f"metric={metric.address}: {rule}")
        if exclusion.is_meant(metric):
            yield metric


def _effect(
    exclusion: Exclusion,
    metric: Metric,
    catalog: Catalog,
    store: Store,
    known: Sequence[Exclusion],
) -> Effect:
    epochs = exclusion.epochs(metric)
    require_few_indexes(len(epochs), store.shards)
    total, others, left_out, along, new = 0, 0, 0, 0, 0
    unknown = Counter[int]()  # reports under no known key, by epoch
    has_key = False
    for definition in catalog.definitions(metric):
        index = store.index(definition.digest, epochs)
        width = definition.mechanism.tally_size + 1
        require_affordable(index.tallies, 1, width)
        sieve, before, after = (
            ExclusionFilter(each, metric, index.cells)
            for each in ([exclusion], known, [*known, exclusion])
        )
        for cell, vector in store.vectors(index, width):
            n = reports_of(vector)
            key = key_in(split_source(cell.segment)[0])
            total += n
            others += n if key == OTHER_KEYS else 0
            unknown[cell.epoch] += n if key is None else 0
            has_key = has_key or key == exclusion.name
            for each in (sieve, before, after):
                each.passes(cell, vector[:COUNTER_SIZE], wanted=True)
        left_out += _reports_out(sieve)
        new += _reports_out(after) - _reports_out(before)
        along += sum(n for _, n, is_along in sieve.left_out if is_along)
    if exclusion.by == KEY and has_key:
        _require_known(metric, +unknown)
    is_of_key = exclusion.by == KEY
    nameless = sum(unknown.values()) if is_of_key else 0
    others = others if is_of_key and exclusion.name != OTHER_KEYS else 0
    gone = ExcludedCounts(left_out, along)
    stretch = exclusion.stretch(metric)
    return Effect(metric, stretch, gone, total, left_out - new, nameless, others)


def _reports_out(sieve: ExclusionFilter) -> int:
    """Return how many reports *sieve* leaves out, once all were given to it."""
    for _ in sieve.rest():
        pass
    return sum(n for _, n, _ in sieve.left_out)


def _require_known(metric: Metric, unknown: Mapping[int, int]) -> None:
    """Raise ExclusionError if some reports could be of the key, but nobody knows."""
    if unknown:
        ends = (epoch_label(metric.every, epoch) for epoch in (min(unknown), max(unknown)))
        stretch = " to ".join(dict.fromkeys(ends))
        rule = f"has {sum(unknown.values())} reports of {stretch} whose key is not known: they came"
        what = "before keys were kept apart, so no key can be parted from them; take other days"
        raise ExclusionError(f"metric={metric.address}: {rule} {what}")


def _why_nothing(
    request: ExclusionRequest, catalog: Catalog, keys: Collection[str], effects: Sequence[Effect]
) -> str:
    """Return why *request* finds nothing, and what would."""
    unknown, others = sum(each.unknown for each in effects), sum(each.others for each in effects)
    if request.by == VERSION:
        known = sorted({v for metric in catalog for v in metric.segments.get(VERSION, ())})
        if request.name not in known:
            return f"no metric has it among the values of {VERSION}: {', '.join(known) or 'none'}"
    elif request.name not in keys and request.name != OTHER_KEYS:
        return "there is no such key; hearsay keys list shows the id of each"
    elif others:
        rule = "are of keys that are not kept apart, perhaps of it: exclude the key other"
        return f"there are no reports of it there, but {others} {rule}"
    elif unknown:
        rule = "came before keys were kept apart, so no key can be parted from them"
        return f"there are no reports of it there, but {unknown} {rule}"
    if not request.first:
        rule = "no metric that is asked once has reports of it; to take it out of the others, give"
        return f"{rule} --from and --to"
    return "there are no reports of it on these days"
