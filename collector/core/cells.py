"""Cells: the address of a tally, and which segment and class of lateness a report falls in.  Pure.

Segments are the public dimensions by which a metric's tallies are kept apart.  Their text is "" for
a metric without dimensions, otherwise a JSON object of the metric's dimensions, sorted, with null
where the device did not say.  Dimensions are named in it because they are not part of the digest: a
registry may add or drop one, and what was stored keeps its meaning.

A source is what the collector knows of how a report came, and is no person: the facts RELAYED and
ATTESTED, and the key under which it was sent, by its public name.  Where there is a fact, the
segment's text names it under a key that no dimension can have.  So every store, archive and release
that keeps segments apart keeps sources apart, and a reader that does not know them adds them up.
Without a fact the text is that of the segment alone: of what came before keys were kept apart, none
is known, and it cannot be parted later.

Lateness is how long after the end of its epoch a report is folded, in a few closed classes.  Class
c ends on a day that is known beforehand; from then on nothing is added to it.  Version v of a
window is the sum of the classes 0 to v, so once published it gives the same integers for ever.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from client_sdk.core.epoch import DAY, ONCE, day_of, epoch_start
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from client_sdk.registry.metric import Metric

# Days after the last day of an epoch up to which a fold is of class 0, 1, 2, 3.  The last one is
# the horizon: an upload is taken MAX_REPORT_AGE after its sealing, its reports were made as long
# before it, and a day is left to fold them.
LAST_DAYS: Final = (1, 3, 7, 2 * MAX_REPORT_AGE + 1)
LAST_VERSION: Final = len(LAST_DAYS) - 1
BEYOND: Final = len(LAST_DAYS)  # folded after the horizon, by a worker long away: in no version
# Seconds that a clock which publishes may be ahead of the store's, which decides the class.
MARGIN: Final = 3_600

Source: TypeAlias = frozenset[str]  # facts
UNKNOWN: Final[Source] = frozenset()
RELAYED: Final = "relayed"  # came through a relay, and was the only report of its upload
ATTESTED: Final = "attested"  # came with a valid one-time token
FACTS: Final = (RELAYED, ATTESTED)
KEY: Final = "key:"  # what the name of the key follows in a source
MOST_KEYS: Final = 64  # keys of one app that are kept apart; a tally is kept of each
OTHER_KEYS: Final = "other"  # in place of a name: all keys beyond these
SOURCE: Final = "@source"  # in a segment's text, and in filters; no dimension has an "@"
_TEXTS_KEPT: Final = 16_384  # segments and sources that are taken apart; some 500 bytes each


class Cell(NamedTuple):
    """The address of one tally.  ``segment`` is canonical text, opaque here: "" for everybody."""

    metric: bytes  # the digest
    epoch: int
    segment: str
    lateness: int = 0  # class of the day of the fold; not known, and so 0, before


def is_declared(segment: Mapping[str, str], metric: Metric) -> bool:
    """Return whether *segment* has declared values in every dimension that *metric* keeps apart."""
    return all(
        segment[dimension] in vocabulary
        for dimension, vocabulary in metric.segments.items()
        if dimension in segment
    )


def segment_text(metric: Metric, segment: Mapping[str, str], source: Source = UNKNOWN) -> str:
    """Return the text of *segment* as far as *metric* keeps it apart, and of *source*."""
    if not metric.segments and not source:
        return ""
    facts = {SOURCE: sorted(source)} if source else {}
    values = {dimension: segment.get(dimension) for dimension in sorted(metric.segments)}
    return json.dumps(facts | values, separators=(",", ":"), ensure_ascii=True)


@lru_cache(maxsize=_TEXTS_KEPT)
def split_source(text: str) -> tuple[Source, str]:
    """Return the source that a stored segment *text* names, and the text without it."""
    if not text.startswith(f'{{"{SOURCE}":'):  # every other text is returned as it is
        return UNKNOWN, text
    values = json.loads(text)
    source = frozenset(values.pop(SOURCE))
    rest = json.dumps(values, separators=(",", ":"), ensure_ascii=True) if values else ""
    return source, rest


def key_source(name: str) -> Source:
    """Return the source of what comes under the key *name*."""
    return frozenset({f"{KEY}{name}"})


def key_in(source: Source) -> str | None:
    """Return the name of the key in a *source*; None if it is not known."""
    return next((fact.removeprefix(KEY) for fact in source if fact.startswith(KEY)), None)


@lru_cache(maxsize=_TEXTS_KEPT)
def values_in(text: str) -> Mapping[str, str | None]:
    """Return the value of each dimension that a stored segment *text* names."""
    values: dict[str, str | None] = json.loads(text) if text else {}
    values.pop(SOURCE, None)
    return values


def matches(text: str, selection: Mapping[str, str]) -> bool:
    """Return whether a stored segment *text* has the *selection* value of each dimension."""
    values = json.loads(text) if text else {}
    return all(values.get(dimension) == value for dimension, value in selection.items())


def ends(every: str, epoch: int) -> tuple[int, ...]:
    """Return the Unix times at which the classes 0, 1, … of *epoch* end; () for ``once``."""
    if every == ONCE:
        return ()
    last_day = day_of(epoch_start(every, epoch + 1) - 1)
    return tuple((last_day + days + 1) * DAY for days in LAST_DAYS)


def first_day(every: str, epoch: int, lateness: int) -> int | None:
    """Return the first epoch day on which a fold can be of class *lateness*; None for ``once``."""
    limits = ends(every, epoch)
    if not limits:
        return None
    if lateness:
        return limits[lateness - 1] // DAY
    return day_of(epoch_start(every, epoch)) - MAX_CLOCK_SKEW


def class_of(every: str, epoch: int, now: float) -> tuple[int, int | None]:
    """Return the class of what is folded at *now*, and when that class ends, None for never."""
    limits = ends(every, epoch)
    lateness = bisect_right(limits, now)
    return lateness, limits[lateness] if lateness < len(limits) else None


def version_of(every: str, epochs: Iterable[int], now: float) -> int | None:
    """Return the highest version of a window of *epochs* that is published at *now*, or None."""
    ended = bisect_right(ends(every, max(epochs)), now - MARGIN)
    return ended - 1 if ended else None
