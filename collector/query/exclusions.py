"""What operators have taken out of answers: left out while tallies are read, and listed.

A version that devices declare is left out as a filter on that dimension would.  A key is left out
by the rule of small sources, so that no difference of two answers tells of a few reports whose they
are.  In each *place*, which is an epoch, a segment and a way of coming of a metric, every key is a
source, and what came under no known key is one.  Sources with fewer than LEAST reports there are
together one; if they are still fewer than LEAST, the smallest of the others joins them.  Whatever
is taken out of a place is whole such sources: LEAST reports or more, or all that there are.  What
is together depends on the place alone and not on what is excluded, so what several exclusions
leave out is one union.

A question about a key takes, place by place, just what an exclusion of that key would take out, and
a question without a key the rest.  So whatever is asked, with whatever excluded, answers differ by
whole such sources.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from client_sdk.privacy.wording import counted
from client_sdk.registry.metric import Metric

from ..core.cells import (
    FACTS,
    OTHER_KEYS,
    SOURCE,
    Cell,
    Source,
    key_in,
    key_source,
    split_source,
    values_in,
)
from ..core.cells import KEY as _OF_KEY
from ..core.errors import QueryError
from ..core.exclusions import KEY, VERSION, Exclusion
from ..core.remarks import Code, Remark, remark
from ..estimation.tally import merge_cells, reports_of
from .request import Query

LEAST: Final = 100  # reports of a source in a place, below which it is together with others
_PLACES_KEPT: Final = 16_384  # texts of segments that are taken apart; some 500 bytes each
MOST_WAITING: Final = 64 * 1024 * 1024  # bytes of vectors that wait until their place is counted

Place: TypeAlias = tuple[int, str, Source]  # epoch, segment, and facts beside the key


class Excluded(NamedTuple):
    """The exclusions that a question meets, each once."""

    applied: tuple[Exclusion, ...] = ()
    later: tuple[Exclusion, ...] = ()  # not applied: a version was asked for, which never changes


class Selection(NamedTuple):
    """A filter of a question: what came under *keys* is wanted alone, or all but that."""

    keys: frozenset[str]
    is_wanted: bool


def together(counts: Mapping[str | None, int]) -> frozenset[str | None]:
    """Return the sources of a place that are together one, by the reports of each."""
    ordered = sorted(counts, key=lambda source: (counts[source], source or ""))
    small = [source for source in ordered if counts[source] < LEAST]
    total, rest = sum(counts[source] for source in small), ordered[len(small) :]
    if small and total < LEAST and rest:
        small.append(rest[0])
    return frozenset(small)


def taken_out(counts: Mapping[str | None, int], keys: Iterable[str]) -> frozenset[str | None]:
    """Return the sources of a place that go where *keys* are excluded."""
    gone = frozenset(key for key in keys if key in counts)
    small = together(counts)
    return gone | small if gone & small else gone


_KEYED: Final = re.compile(
    f"{_OF_KEY}([0-9a-f]{{12}}|{OTHER_KEYS})"
)  # as hearsay keys list shows it
NOTHING: Final = Excluded()


class ExcludedCounts(NamedTuple):
    """How many reports exclusions have taken out, and how many of these were of other keys."""

    reports: int
    merged: int  # of other keys, which went with the one excluded


class ExclusionFilter:
    """Lets the tallies of a metric pass that no exclusion takes out; counts those that it does."""

    def __init__(
        self,
        exclusions: Iterable[Exclusion],
        metric: Metric,
        cells: Iterable[Cell],
        most: int = MOST_WAITING,
    ) -> None:
        """Heed those of *exclusions* that are of *metric*.

        Args: cells: all that will be passed.  most: bytes of vectors that may wait.
        """
        self._width, self._most = metric.mechanism.tally_size, most
        mine = [exclusion for exclusion in exclusions if exclusion.covers(metric)]
        self._keys = [(each.epochs(metric), each.name) for each in mine if each.by == KEY]
        self._versions = [(each.epochs(metric), each.name) for each in mine if each.by == VERSION]
        self._keys_of: dict[int, frozenset[str]] = {}
        self._present: dict[Place, set[str]] = defaultdict(set)  # of a place the excluded keys
        for cell in cells if self._keys else ():
            place, key = place_of(cell)
            if key in self._excluded_keys(cell.epoch):
                self._present[place].add(key)
        self._counts: dict[Place, dict[str | None, int]] = defaultdict(lambda: defaultdict(int))
        self._waiting: list[tuple[Cell, bytes]] = []
        self._size = 0
        # Cells that were taken out, their reports, and whether these only went along with a key.
        self.left_out: list[tuple[Cell, int, bool]] = []

    def passes(self, cell: Cell, vector: bytes, wanted: bool) -> bool:
        """Return whether *cell* is surely not taken out; those in doubt are in :meth:`rest`.

        Args: wanted: whether the question is about it; if not, it only counts in its place.
        """
        if self._has_version(cell):
            if wanted:
                self.left_out.append((cell, reports_of(vector), False))
            return False
        if not self._excluded_keys(cell.epoch):
            return wanted
        place, key = place_of(cell)
        if not (present := self._present.get(place)):
            return wanted
        counts = self._counts[place]
        counts[key] += reports_of(vector)
        if key in present:
            if wanted:
                self.left_out.append((cell, reports_of(vector), False))
            return False
        if all(counts.get(source, 0) >= LEAST for source in (key, *present)):
            return wanted  # neither it nor an excluded key is together with others
        if wanted:
            self._waiting.append((cell, vector))
            self._size += len(vector)
            if self._size > self._most:
                self._add_up()
        return False

    def _add_up(self) -> None:
        """Add up over shards what waits.  Raises QueryError: it is too much all the same."""
        self._waiting = merge_cells(self._waiting, self._width)
        self._size = sum(len(vector) for _, vector in self._waiting)
        if self._size > self._most // 2:  # or the next ones would be added up one by one
            rule = "a key is excluded in too many of these epochs to count its reports at once"
            raise QueryError("date_range", f"{rule}; take a shorter window")

    def rest(self) -> Iterator[tuple[Cell, bytes]]:
        """Yield what was in doubt and stays, once all was given to :meth:`passes`."""
        gone = {
            place: taken_out(counts, self._excluded_keys(place[0]))
            for place, counts in self._counts.items()
        }
        for cell, vector in self._waiting:
            place, key = place_of(cell)
            if key in gone[place]:
                self.left_out.append((cell, reports_of(vector), True))
            else:
                yield cell, vector

    def _excluded_keys(self, epoch: int) -> frozenset[str]:
        keys = self._keys_of.get(epoch)
        if keys is None:
            keys = frozenset(name for epochs, name in self._keys if epoch in epochs)
            self._keys_of[epoch] = keys
        return keys

    def _has_version(self, cell: Cell) -> bool:
        if not self._versions:
            return False
        version = values_in(cell.segment).get(VERSION)
        return any(version == name and cell.epoch in epochs for epochs, name in self._versions)


class KeyFilter:
    """Does as ``ExclusionFilter`` for a question about keys; places wait until all is counted."""

    def __init__(
        self,
        exclusions: Iterable[Exclusion],
        metric: Metric,
        cells: Iterable[Cell],
        selections: Sequence[Selection],
    ) -> None:
        """Heed *exclusions* and *selections*.  *cells* are all that will be passed."""
        self._exclusions = ExclusionFilter(exclusions, metric, cells)
        self._selections = selections
        self._counts: dict[Place, dict[str | None, int]] = defaultdict(lambda: defaultdict(int))
        self._waiting: list[tuple[Cell, bytes]] = []
        self._size = 0
        self.left_out: list[tuple[Cell, int, bool]] = []

    def passes(self, cell: Cell, vector: bytes, wanted: bool) -> bool:
        """Count *cell*; whether it is wanted is in :meth:`rest`.  Raises QueryError: too many."""
        place, key = place_of(cell)
        self._counts[place][key] += reports_of(vector)
        if wanted:
            self._size += len(vector)
            if self._size > MOST_WAITING:
                rule = f"has too many tallies to be asked about keys by {SOURCE}"
                raise QueryError("date_range", f"{rule}; take a shorter window")
            self._waiting.append((cell, vector))
        else:
            self._exclusions.passes(cell, vector, wanted=False)
        return False

    def rest(self) -> Iterator[tuple[Cell, bytes]]:
        """Yield what is wanted and not taken out, once all was given to :meth:`passes`."""
        taken = {
            place: [taken_out(counts, selection.keys) for selection in self._selections]
            for place, counts in self._counts.items()
        }
        for cell, vector in self._waiting:
            place, key = place_of(cell)
            of_each = zip(self._selections, taken[place], strict=True)
            is_selected = all((key in sources) == each.is_wanted for each, sources in of_each)
            if self._exclusions.passes(cell, vector, wanted=is_selected):
                yield cell, vector
        yield from self._exclusions.rest()
        self.left_out = self._exclusions.left_out


@lru_cache(maxsize=_PLACES_KEPT)
def _parted(text: str) -> tuple[str, Source, str | None]:
    """Return of a stored segment *text* the segment, the facts beside the key, and the key."""
    source, segment = split_source(text)
    key = key_in(source)
    return segment, source if key is None else source - key_source(key), key


def place_of(cell: Cell) -> tuple[Place, str | None]:
    """Return the place of *cell*, and the name of its key."""
    segment, facts, key = _parted(cell.segment)
    return (cell.epoch, segment, facts), key


def overlapping(
    exclusions: Sequence[Exclusion], readings: Iterable[tuple[Metric, Sequence[int]]]
) -> tuple[Exclusion, ...]:
    """Return those of *exclusions* in force that meet a metric and epochs that are read."""
    wanted = list(readings)
    return tuple(
        exclusion
        for exclusion in exclusions
        if any(meets(exclusion, metric, epochs) for metric, epochs in wanted)
    )


def meets(exclusion: Exclusion, metric: Metric, epochs: Sequence[int]) -> bool:
    """Return whether *exclusion* takes something out of *epochs* of *metric*, if it is there."""
    if not exclusion.covers(metric) or not epochs:
        return False
    is_of_all = exclusion.by == VERSION and not exclusion.metrics  # that have the version
    if is_of_all and exclusion.name not in metric.segments.get(VERSION, ()):
        return False
    span = exclusion.epochs(metric)
    first = next((epoch for epoch in epochs if epoch >= span.start), None)
    return first is not None and first < span.stop


def remarks_on(
    excluded: Excluded, metric: Metric, epochs: Sequence[int], gone: ExcludedCounts
) -> list[Remark]:
    """Return what an answer says of the exclusions that *epochs* of *metric* meet."""
    name, remarks = metric.address, list[Remark]()
    applied = [each for each in excluded.applied if meets(each, metric, epochs)]
    for exclusion in applied:
        fate = "deleted" if exclusion.deleted else "left out"
        remarks.append(remark(Code.EXCLUSION, name, fate=fate, **_which(exclusion, metric)))
    if gone.reports or not all(exclusion.deleted for exclusion in applied):
        # How many are of other keys is not told: it would tell how few are of the excluded one.
        rule = f", some of other keys, as fewer than {LEAST} of a key would single somebody out"
        total, along = counted(gone.reports, "report"), rule if gone.merged else ""
        remarks.append(remark(Code.EXCLUDED, name, reports=total, along=along))
    for exclusion in excluded.later:
        if meets(exclusion, metric, epochs):
            remarks.append(remark(Code.EXCLUDED_LATER, name, **_which(exclusion, metric)))
    return remarks


def _which(exclusion: Exclusion, metric: Metric) -> dict[str, str]:
    """Return which reports an *exclusion* takes out of *metric*, and why."""
    when = exclusion.stretch(metric)
    reports = f"reports of {exclusion.source}{when and f' of {when}'}"
    return {"reports": reports, "reason": _reason(exclusion)}


def _reason(exclusion: Exclusion) -> str:
    day = datetime.fromtimestamp(exclusion.at, UTC).date()
    return f"{exclusion.because} ({exclusion.author}, {day}, exclusion {exclusion.id})"


def source_filters(query: Query) -> Iterator[tuple[bool, frozenset[str]]]:
    """Yield the filters of ways of coming.  Raises QueryError: one names what there is not."""
    for place, (kind, name, values) in enumerate(query.filters):
        if name == SOURCE and not all(map(_KEYED.fullmatch, values)):
            if not set(FACTS).issuperset(values):
                known = f"{', '.join(FACTS)}, or {_OF_KEY} and the id of a key"
                both = "; take keys by a filter of their own" if any(map(_is_key, values)) else ""
                raise QueryError(f"filters.{place}", f"{SOURCE} has the values {known}{both}")
            yield kind == "is", frozenset(values)


def key_filters(query: Query) -> Iterator[Selection]:
    """Yield the filters of keys."""
    for kind, name, values in query.filters:
        if name == SOURCE and all(map(_KEYED.fullmatch, values)):
            names = frozenset(value.removeprefix(_OF_KEY) for value in values)
            yield Selection(names, is_wanted=kind == "is")


def _is_key(value: str) -> bool:
    return value.startswith(_OF_KEY)


def source_notes(query: Query) -> Iterator[Remark]:
    """Yield what an answer says of the filters of ways of coming, and of keys."""
    for kind, name, values in query.filters:
        if name != SOURCE:
            continue
        said, not_ = " or ".join(dict.fromkeys(values)), "not " if kind == "is" else ""
        if not all(map(_is_key, values)):
            yield remark(Code.SOURCES, sources=not_ + said)
            continue
        said = said.replace(_OF_KEY, "key ")
        unknown = "left out" if kind == "is" else "counted"
        keys = f"{not_}come under {said}"
        yield remark(Code.KEYS, keys=keys, least=LEAST, unknown=unknown)
