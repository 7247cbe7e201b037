"""The store on Redis or Valkey.  Every change is one function of ``hearsay.lua``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final

from client_sdk.epoch import DAY
from client_sdk.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE

from ..config import STANDARD
from ..errors import TallyOverflowError
from . import Cell, Claimed, Increments, Sealed, Tallies
from .connection import Command, Connection, Part
from .keys import Keys
from .preparation import GROUP, prepare
from .replies import parse_entries

# The intake takes an upload until the end of the day that is MAX_REPORT_AGE after its sealing; a
# skewed clock of the store may make that a day later.
SEEN_DAYS: Final = MAX_REPORT_AGE + MAX_CLOCK_SKEW + 1  # days after that of sealing
MAX_DELTA: Final = (
    1 << 62
)  # what one fold adds to a cell stays below; so do the counters themselves
_SCAN_COUNT: Final = 500  # keys looked at a round trip

_log = logging.getLogger("hearsay.storage")


class RedisStorage:
    """The Storage protocol on one Redis or Valkey server."""

    def __init__(self, connection: Connection, keys: Keys, profile: str = STANDARD) -> None:
        """Use *connection* for the *keys* of one deployment, checked against *profile*."""
        self._connection, self._keys, self._profile = connection, keys, profile
        self._call, self._call_many = connection.call, connection.call_many
        self._cursors: dict[int, bytes] = {}  # of each shard, where to look for left entries next

    @property
    def shards(self) -> int:
        """Number of shards."""
        return self._keys.shards

    def prepare(self) -> None:
        """Check the server, load the library, record the shards, create the groups."""
        prepare(self._connection, self._keys, self._profile)

    def append(self, upload_id: bytes, sealed_day: int, entry: bytes) -> bool:
        """Queue one upload."""
        return bool(self._call(*self._append_command(upload_id, sealed_day, entry)))

    def append_many(self, uploads: Sequence[Sealed]) -> list[bool]:
        """Queue several uploads in one round trip."""
        replies = self._call_many([self._append_command(*upload) for upload in uploads])
        return [bool(reply) for reply in replies]

    def claim(self, shard: int, consumer: str, count: int, min_idle_ms: int) -> list[Claimed]:
        """Claim left entries, then new ones."""
        left = self._claim_left(shard, consumer, count, min_idle_ms)
        wanted = count - len(left)
        if wanted <= 0:
            return left
        stream = self._keys.stream(shard)
        reply = self._call(
            "XREADGROUP", "GROUP", GROUP, consumer, "COUNT", wanted, "STREAMS", stream, ">"
        )
        fresh = parse_entries(reply[0][1]) if reply else []
        # A group set back to its beginning delivers as new what was just claimed as left.
        known = {one.id for one in left}
        return left + [Claimed(*entry, 1) for entry in fresh if entry[0] not in known]

    def fold(self, shard: int, ids: Sequence[str], increments: Increments) -> tuple[str, ...]:
        """Delete entries and add increments, as one step."""
        if not ids:
            return ()
        if len(set(ids)) < len(ids):  # each would be found, deleted once, and counted twice
            raise ValueError("ids: must differ")
        keys = [self._keys.stream(shard)]
        arguments: list[Part] = [len(ids), *ids]
        for cell, pairs in increments.items():
            if sum(abs(delta) for _, delta in pairs) >= MAX_DELTA:
                raise TallyOverflowError("increments: must add less than 2^62 to a cell")
            keys += self._keys.tally(shard, cell), self._keys.cells(shard, cell.metric, cell.epoch)
            arguments += cell.segment, " ".join(map(str, chain.from_iterable(pairs)))
        missing = self._call("FCALL", "hearsay_fold", len(keys), *keys, *arguments)
        return tuple(entry_id.decode() for entry_id in missing)

    def tallies(self, metric: bytes, epochs: Iterable[int]) -> Tallies:
        """Read the index sets of all shards, then the vectors, one MGET a shard."""
        wanted = self._stored_cells(metric, list(epochs))
        replies = self._call_many(
            [
                ("MGET", *(self._keys.tally(shard, cell) for cell in cells))
                for shard, cells in wanted
            ]
        )
        found: Tallies = {}
        for (_, cells), vectors in zip(wanted, replies, strict=True):
            for cell, vector in zip(cells, vectors, strict=True):
                if vector is not None:
                    found.setdefault((cell.epoch, cell.segment), []).append(vector)
        return found

    def quarantine(self, shard: int, entry_id: str, reason: str) -> bool:
        """Move an entry to the shard's quarantine stream."""
        keys = self._keys.stream(shard), self._keys.quarantine(shard)
        return bool(self._call("FCALL", "hearsay_quarantine", 2, *keys, entry_id, reason))

    def retire(self, consumer: str) -> None:
        """Forget a consumer where it holds nothing."""
        streams = [self._keys.stream(shard) for shard in range(self.shards)]
        self._call_many([("FCALL", "hearsay_retire", 1, stream, consumer) for stream in streams])

    def backlog(self) -> int:
        """Sum the lengths of the streams."""
        return self._total_length(self._keys.stream)

    def quarantined(self) -> int:
        """Sum the lengths of the quarantine streams."""
        return self._total_length(self._keys.quarantine)

    def ping(self) -> None:
        """Ask every shard through a function that is refused whenever an append would be."""
        streams = [self._keys.stream(shard) for shard in range(self.shards)]
        self._call_many([("FCALL", "hearsay_ready", 1, stream) for stream in streams])

    def destroy(self) -> None:
        """Delete every key under the prefix."""
        cursor: Part = 0
        while True:
            cursor, found = self._call(
                "SCAN", cursor, "MATCH", self._keys.pattern, "COUNT", _SCAN_COUNT
            )
            self._call_many([("UNLINK", key) for key in found])
            if int(cursor) == 0:
                return

    def _append_command(self, upload_id: bytes, sealed_day: int, entry: bytes) -> Command:
        shard = self._keys.shard_of(upload_id)
        keys = self._keys.seen(shard, sealed_day), self._keys.stream(shard)
        forgotten = (sealed_day + SEEN_DAYS) * DAY
        return ("FCALL", "hearsay_append", 2, *keys, upload_id, entry, forgotten)

    def _claim_left(self, shard: int, consumer: str, count: int, min_idle_ms: int) -> list[Claimed]:
        """Claim what dead consumers left, going round the pending entries call by call."""
        stream = self._keys.stream(shard)
        cursor = self._cursors.get(shard, b"0-0")
        self._cursors[shard], reply, vanished = self._call(
            "XAUTOCLAIM", stream, GROUP, consumer, min_idle_ms, cursor, "COUNT", count
        )
        if vanished:  # somebody deleted or trimmed entries that nobody had folded
            _log.critical("shard=%d: %d acknowledged entries are gone", shard, len(vanished))
        left = parse_entries(reply)
        pending = self._call_many(
            [("XPENDING", stream, GROUP, entry_id, entry_id, 1, consumer) for entry_id, _ in left]
        )
        times = [int(rows[0][3]) if rows else 1 for rows in pending]
        return [Claimed(*entry, deliveries) for entry, deliveries in zip(left, times, strict=True)]

    def _stored_cells(self, metric: bytes, epochs: Sequence[int]) -> list[tuple[int, list[Cell]]]:
        """Return the cells that each shard has a tally of; shards without any are left out."""
        places = [(shard, epoch) for shard in range(self.shards) for epoch in epochs]
        replies = self._call_many([("SMEMBERS", self._keys.cells(s, metric, e)) for s, e in places])
        cells: dict[int, list[Cell]] = {}
        for (shard, epoch), segments in zip(places, replies, strict=True):
            for segment in segments:
                cells.setdefault(shard, []).append(Cell(metric, epoch, segment.decode()))
        return list(cells.items())

    def _total_length(self, key: Callable[[int], str]) -> int:
        lengths = self._call_many([("XLEN", key(shard)) for shard in range(self.shards)])
        return sum(int(length) for length in lengths)
