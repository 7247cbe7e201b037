"""What an operator may see and move, entry by entry and tally by tally."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from ..core.cells import Cell
from .connection import (
    ENTRY,
    REASON,
    REPORTS,
    Command,
    Connection,
    Part,
    StoreView,
    field,
    parse_counters,
)
from .keys import Keys, cell_of, member_of
from .preparation import change_contents
from .tally_reader import read
from .values import COUNTER_SIZE, Counters, LostIds, ShardTally, StreamEntry, TallySize

_PAGE: Final = 8  # entries a round trip: of gateways, some hundred megabytes at most
_SCAN_COUNT: Final = 500  # keys looked at a round trip
_FIELD: Final = 64  # bytes of a counter in a hash, at most
_TALLIES: Final = 64  # tallies a round trip
_BUCKETS: Final = 1_000  # of ids, asked for at once
_DIGEST: Final = re.compile(rb"[0-9a-f]{12}")  # of a definition
_BATCH: Final = 100  # tallies that one step deletes, as it blocks the server


def counted(connection: Connection, keys: Keys) -> list[Counters]:
    """Return lengths and counts of each shard, each of one moment."""
    names = [(keys.stream(s), keys.quarantine(s), keys.counters(s)) for s in range(keys.shards)]
    replies = connection.call_many([("FCALL_RO", "hearsay_counted", 3, *name) for name in names])
    return [parse_counters(reply) for reply in replies]


def scan(connection: Connection, pattern: str) -> Iterator[list[bytes]]:
    """Yield the names of the keys that fit *pattern* on every server, page by page."""
    for node in connection.nodes():
        cursor: Part = 0
        while True:
            cursor, names = node.call("SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN_COUNT)
            yield names
            if int(cursor) == 0:
                break


class RedisInspection(StoreView):
    """The Inspection protocol on Redis or Valkey, and what the digests of tallies mean."""

    def define(self, records: Mapping[bytes, str]) -> None:
        """Write each record of a digest that has none: it never means anything else.

        Raises: StorageFullError.
        """
        key = self._keys.definitions
        self._call_many([("HSETNX", key, n.hex(), r) for n, r in records.items()])

    def definitions(self) -> dict[bytes, bytes]:
        """Read the record of each digest: a few hundred bytes."""
        flat = self._call("HGETALL", self._keys.definitions)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {bytes.fromhex(n.decode()): r for n, r in pairs if _DIGEST.fullmatch(n)}

    def counters(self) -> list[Counters]:
        """Read counts and lengths, each shard in one step."""
        return counted(self._connection, self._keys)

    def pending(self, shard: int) -> Iterator[StreamEntry]:
        """Walk the stream page by page."""
        return self._walk(shard, self._keys.stream(shard))

    def set_aside(self, shard: int) -> Iterator[StreamEntry]:
        """Walk the quarantine stream page by page."""
        return self._walk(shard, self._keys.quarantine(shard))

    def requeue(self, shard: int, entry_id: str) -> bool:
        """Move an entry back to the stream."""
        name = self._keys
        keys = name.quarantine(shard), name.stream(shard), name.counters(shard)
        return bool(self._call("FCALL", "hearsay_requeue", 3, *keys, entry_id))

    def drop(self, shard: int, entry_id: str) -> bool:
        """Delete an entry that was set aside."""
        keys = self._keys.quarantine(shard), self._keys.counters(shard)
        return bool(self._call("FCALL", "hearsay_drop", 2, *keys, entry_id))

    def tallies(self) -> Iterator[ShardTally]:
        """Scan the keys of every server: tallies, and index sets for those that are missing."""
        for names in self._names():
            places = [place for name in names if (place := self._keys.place_of(name))]
            for first in range(0, len(places), _TALLIES):
                yield from self._read(places[first : first + _TALLIES])
            yield from self._missing(names)

    def sizes(self, metrics: Collection[bytes] | None = None) -> Iterator[TallySize]:
        """Scan likewise, and read of each tally its length and its first counter."""
        for names in self._names():
            places = [
                place
                for name in names
                if (place := self._keys.place_of(name))
                and (metrics is None or place[1].metric in metrics)
            ]
            kinds = self._call_many([("TYPE", self._keys.tally(*place)) for place in places])
            is_sparse = [kind == b"hash" for kind in kinds]
            reads: list[Command] = []
            for place, sparse in zip(places, is_sparse, strict=True):
                key = self._keys.tally(*place)
                if sparse:
                    reads += ("HLEN", key), ("HGET", key, 0)
                else:
                    reads += ("STRLEN", key), ("GETRANGE", key, 0, COUNTER_SIZE - 1)
            replies = self._call_many(reads)
            columns = zip(places, is_sparse, replies[::2], replies[1::2], strict=True)
            for (shard, cell), sparse, length, first in columns:
                reports = int(first or 0) if sparse else int.from_bytes(first, "big", signed=True)
                yield TallySize(shard, cell, reports, int(length) * (_FIELD if sparse else 1))
            missing = self._missing(names) if metrics is None else ()
            yield from (TallySize(tally.shard, tally.cell, 0, 0) for tally in missing)

    def lost_ids(self) -> Iterator[LostIds]:
        """Scan for days of ids, and ask for each bucket that a day has."""
        for names in scan(self._connection, self._keys.day_pattern):
            for name in names:
                if (place := self._keys.day_of(name.decode(errors="replace"))) is not None:
                    yield from self._lost_ids(*place)

    def mark(self, metric: bytes, epoch: int) -> None:
        """Mark for the readers, then for the folds of each shard."""
        shards = map(self._keys.pruned, range(self.shards))
        for name in (self._keys.marks, *shards):
            self._call("FCALL", "hearsay_mark", 1, name, metric.hex(), epoch)

    def prune(
        self, shard: int, metric: bytes, epoch: int, members: Sequence[str], key: str = ""
    ) -> int:
        """Delete in small steps, so that other requests need not wait long."""
        name = self._keys
        head, deleted = name.tallies(shard, metric, epoch), 0
        for first in range(0, len(members), _BATCH):
            some = members[first : first + _BATCH]
            tallies = [head + member for member in some]
            keys = name.counters(shard), name.cells(shard, metric, epoch), *tallies
            step = ("hearsay_prune_key", [*some, key]) if key else ("hearsay_prune", some)
            count = int(self._call("FCALL", step[0], len(keys), *keys, *step[1]))
            if count < 0:
                raise ValueError("epoch: must be marked as pruned, or all tallies be of the key")
            deleted += count
        return deleted

    def change_contents(self) -> None:
        """Raise the counter in the hash of the generation."""
        change_contents(self._connection, self._keys)

    def marks(self) -> dict[bytes, int]:
        """Read the marks that are written before any shard's own."""
        flat = self._call("HGETALL", self._keys.marks)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {bytes.fromhex(metric.decode()): int(epoch) for metric, epoch in pairs}

    def lose(self, shard: int, then: Counters, missing: Sequence[Cell], reports: int) -> bool:
        """Count *reports* as lost and forget the *missing* tallies, in one step."""
        name = self._keys
        keys = [name.counters(shard)]
        for cell in missing:
            keys += name.cells(shard, cell.metric, cell.epoch), name.tally(shard, cell)
        arguments: list[Part] = [then.folded.reports, then.pruned_reports, then.lost_reports]
        arguments += [reports, *map(member_of, missing)]
        return bool(self._call("FCALL", "hearsay_lose", len(keys), *keys, *arguments))

    def _lost_ids(self, shard: int, day: int) -> Iterator[LostIds]:
        seen = self._keys.seen(shard, day)
        numbers = [name for name in self._call("HGETALL", seen)[::2] if name.isdigit()]
        names = [f"{seen}:{number.decode()}" for number in numbers]
        asks = [
            ("EXISTS", *names[first : first + _BUCKETS]) for first in range(0, len(names), _BUCKETS)
        ]
        lacking = len(names) - sum(map(int, self._call_many(asks)))
        # A worker that deletes the day says so before: it is over, and nothing is looked for there.
        gone, first = self._call("HMGET", seen, "gone", "first")
        if lacking and first is not None and gone is None:
            yield LostIds(shard, day, lacking, len(names))

    def _names(self) -> Iterator[list[str]]:
        for names in scan(self._connection, self._keys.tally_pattern):
            yield [name.decode(errors="replace") for name in names]

    def _walk(self, shard: int, stream: str) -> Iterator[StreamEntry]:
        start = "-"
        while page := self._call("XRANGE", stream, start, "+", "COUNT", _PAGE):
            for entry_id, fields in page:
                reports = field(fields, REPORTS)
                yield StreamEntry(
                    shard,
                    entry_id.decode(),
                    field(fields, ENTRY),
                    int(reports) if reports.isdigit() else 0,
                    field(fields, REASON).decode(errors="replace"),
                )
            start = f"({page[-1][0].decode()}"

    def _read(self, places: Sequence[tuple[int, Cell]]) -> Iterator[ShardTally]:
        vectors = read(self._connection, [[self._keys.tally(*place)] for place in places])
        asks = [
            ("SISMEMBER", self._keys.cells(shard, cell.metric, cell.epoch), member_of(cell))
            for shard, cell in places
        ]
        indexed = self._call_many(asks)
        for (shard, cell), vector, is_indexed in zip(places, vectors, indexed, strict=True):
            yield ShardTally(shard, cell, vector, bool(is_indexed))

    def _missing(self, names: list[str]) -> Iterator[ShardTally]:
        """Yield the cells that index sets among the keys *names* hold and that have no tally."""
        indexes = [place for name in names if (place := self._keys.index_of(name))]
        replies = self._call_many([("SMEMBERS", self._keys.cells(*place)) for place in indexes])
        cells = [
            (shard, cell_of(metric, epoch, member.decode()))
            for (shard, metric, epoch), members in zip(indexes, replies, strict=True)
            for member in members
        ]
        existing = self._call_many([("EXISTS", self._keys.tally(*place)) for place in cells])
        for (shard, cell), exists in zip(cells, existing, strict=True):
            if not exists:
                yield ShardTally(shard, cell, None, indexed=True, gone=True)
