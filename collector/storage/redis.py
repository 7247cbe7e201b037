"""The store on Redis or Valkey.  Every change is one function of ``hearsay.lua``."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final

from client_sdk.core.epoch import DAY
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE

from ..core.config import HA, STANDARD
from ..core.errors import (
    CollectorError,
    RefusedByStoreError,
    StorageUnavailableError,
    TallyOverflowError,
)
from .archive_queue import classes_of
from .connection import Command, Connection, Part, Proof, parse_info
from .inspection import counted, scan
from .keys import Keys, member_of
from .preparation import GROUP, answered_generation, faults, generation_of, prepare
from .protocols import ALONE_FROM, MAX_CLAIM
from .tally_reader import TallyReader
from .values import ClaimedEntry, Counters, Health, Increments, SealedUpload, TallyPlace

# The intake takes an upload until the end of the day that is MAX_REPORT_AGE after its sealing; a
# skewed clock of the store may make that a day later.
SEEN_DAYS: Final = MAX_REPORT_AGE + MAX_CLOCK_SKEW + 1  # days after the day of sealing
MAX_DELTA: Final = (
    1 << 62
)  # what one fold adds to a cell stays below; so do the counters themselves
_LOOK_BACK: Final = 64  # days before, whose ids a process looks for when it begins to delete
# Milliseconds for which an entry that is handed back seems to have been held: longer than anybody
# waits for what another holds.
_LONG_HELD: Final = 86_400_000
_GONE, _PART_GONE = 1, 2  # what a step says that deletes ids of a day; as in hearsay.lua
_AT_START: Final = "always"  # appendfsync is not in INFO, and was checked before the first upload
_TIME: Final = "server_time_usec"  # of INFO
_RUN: Final = ("run_id", "master_replid")  # drawn at a start; at a start, copy or promotion
_MICRO: Final = 1_000_000  # of a second

_log = logging.getLogger("hearsay.storage")


class RedisStorage(TallyReader):
    """Intake, Work and TallyStore on one Redis or Valkey server, or on a cluster of them."""

    def __init__(
        self,
        connection: Connection,
        keys: Keys,
        profile: str = STANDARD,
        *,
        archived: bool = False,
    ) -> None:
        """Use *connection* for the *keys* of one deployment, checked against *profile*.

        Args: archived: whether a fold also keeps what it folds, for the archive.
        """
        super().__init__(connection, keys)
        self._archived, self._profile = archived, profile
        self._proof = Proof(replicas=int(profile == HA), logged=profile == STANDARD)  # of an append
        self._cursors: dict[int, bytes] = {}  # of each shard, where to look for left entries next
        self._generation = ""  # as of the first use; "" before
        self._forgotten: dict[int, int] = {}  # of each shard, up to which day ids were looked for

    def prepare(self, renew: bool = False) -> None:
        """Check the servers, load the library, record shards and generation, create the groups."""
        prepare(self._connection, self._keys, self._profile, renew)
        self._generation = generation_of(self._connection, self._keys).id

    def append(self, upload_id: bytes, sealed_day: int, entry: bytes, reports: int) -> bool:
        """Queue one upload."""
        return self.append_many([SealedUpload(upload_id, sealed_day, entry, reports)])[0]

    def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
        """Queue several uploads in one round trip, by one command for each shard and day."""
        places: dict[tuple[int, int], list[int]] = {}
        for place, upload in enumerate(uploads):
            where = self._keys.shard_of(upload.upload_id), upload.sealed_day
            places.setdefault(where, []).append(place)
        commands = [
            self._append_command(*where, [uploads[place] for place in group])
            for where, group in places.items()
        ]
        replies = self._call_many(commands, self._proof)
        answered = zip(chain(*places.values()), chain(*replies), strict=True)
        return [bool(first) for _, first in sorted(answered)]

    def shard_of(self, upload_id: bytes) -> int:
        """Compute it from the id, without a request."""
        return self._keys.shard_of(upload_id)

    def server_of(self, upload_id: bytes) -> str:
        """Look it up in the last map of slots."""
        return self._connection.holder_of(self._keys.stream(self.shard_of(upload_id)))

    def existing(self, places: Collection[TallyPlace]) -> set[TallyPlace]:
        """Ask the index sets, in one round trip."""
        replies = self._call_many(
            [
                ("SISMEMBER", self._keys.cells(shard, cell.metric, cell.epoch), member_of(cell))
                for shard, cell in places
            ]
        )
        return {place for place, reply in zip(places, replies, strict=True) if reply}

    def claim(
        self, shard: int, consumer: str, count: int, min_idle_ms: int, size: int = MAX_CLAIM
    ) -> list[ClaimedEntry]:
        """Claim left entries, then new ones."""
        cursor = self._cursors.get(shard, b"0-0")
        arguments = consumer, count, size, min_idle_ms, cursor, ALONE_FROM
        stream = self._keys.stream(shard)
        self._cursors[shard], vanished, claimed = self._call(
            "FCALL", "hearsay_claim", 1, stream, *arguments
        )
        if vanished:  # entries were deleted or trimmed before they were folded
            _log.critical("shard=%d: %d acknowledged entries are gone", shard, len(vanished))
        return [ClaimedEntry(name.decode(), entry, int(times)) for name, entry, times in claimed]

    def spare(self, shard: int, consumer: str, ids: Sequence[str]) -> None:
        """Set the number of deliveries back, and the time of the last one."""
        if ids:
            how = "IDLE", _LONG_HELD, "RETRYCOUNT", 0, "JUSTID"
            self._call("XCLAIM", self._keys.stream(shard), GROUP, consumer, 0, *ids, *how)

    def forget_ids(self, shard: int, now: float) -> int:
        """Confirm the day, then delete the sets that lie far enough before it."""
        state = self._keys.state(shard)
        floor = int(self._call("FCALL", "hearsay_confirm_day", 1, state, int(now)))
        if floor < 0:  # the clocks do not agree, and never did
            return 0
        last = floor - SEEN_DAYS
        first = max(self._forgotten.get(shard, 0), last - _LOOK_BACK)
        left: list[Command] = [
            ("FCALL", "hearsay_forget_ids", 2, state, self._keys.seen(shard, day), day, SEEN_DAYS)
            for day in range(first + 1, last + 1)
        ]
        deleted = 0
        while left:  # a step deletes only a part of a day, as it blocks the server
            replies = list(map(int, self._call_many(left)))
            deleted += replies.count(_GONE)
            left = [step for step, reply in zip(left, replies, strict=True) if reply == _PART_GONE]
        self._forgotten[shard] = last
        return deleted

    def now(self, shard: int) -> int:
        """Ask the server that holds the shard."""
        return int(self._call("FCALL", "hearsay_now", 1, self._keys.stream(shard)))

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        """Delete entries and add increments, as one step."""
        if not ids:
            return ()
        if len(set(ids)) < len(ids):  # each would be found, deleted once, and counted twice
            raise ValueError("ids: must differ")
        reports, late = _reports(increments)
        keys = [self._keys.stream(shard), self._keys.counters(shard)]
        arguments: list[Part] = [len(ids), ending or 0, reports, late, *ids]
        for cell, pairs in increments.items():
            keys += self._keys.tally(shard, cell), self._keys.cells(shard, cell.metric, cell.epoch)
            arguments += member_of(cell), " ".join(map(str, chain.from_iterable(pairs)))
        function = "hearsay_fold"
        if self._archived:
            function = "hearsay_fold_archived"
            keys.append(self._keys.archive(shard))
            arguments.append(classes_of(increments))
        missing = self._call("FCALL", function, len(keys), *keys, *arguments)
        return tuple(entry_id.decode() for entry_id in missing)

    def quarantine(self, shard: int, entry_id: str, reason: str) -> bool:
        """Move an entry to the shard's quarantine stream."""
        name = self._keys
        keys = name.stream(shard), name.quarantine(shard), name.counters(shard)
        return bool(self._call("FCALL", "hearsay_quarantine", 3, *keys, entry_id, reason))

    def retire(self, consumer: str) -> None:
        """Forget a consumer where it holds nothing."""
        self._of_streams("hearsay_retire", consumer)

    def sweep(self, idle_ms: int) -> int:
        """Forget the consumers of workers that were killed."""
        return sum(self._of_streams("hearsay_sweep", idle_ms))

    def counters(self) -> list[Counters]:
        """Read counts and lengths, each shard in one step."""
        return counted(self._connection, self._keys)

    def backlog(self, but: Collection[int] = ()) -> int:
        """Sum the lengths of the streams."""
        shards = (shard for shard in range(self.shards) if shard not in but)
        commands = [("XLEN", self._keys.stream(shard)) for shard in shards]
        return sum(map(int, self._call_many(commands)))

    def health(self) -> Health:
        """Ask every server that holds keys, with one command each."""
        nodes = self._connection.nodes()
        replies = [reply for node in nodes for reply in node.try_many([("INFO",)])]
        servers = [parse_info(reply) for reply in replies if isinstance(reply, bytes)]
        failures = [reply for reply in replies if isinstance(reply, CollectorError)]
        if not servers or any(isinstance(failure, RefusedByStoreError) for failure in failures):
            raise failures[0]
        shares = [share for share in map(_memory, servers) if share is not None]
        limits = [int(info.get("maxmemory", 0)) for info in servers]
        unsafe = (fault for info in servers for fault in faults(info, _AT_START, self._profile))
        times = [int(info[_TIME]) / _MICRO for info in servers if _TIME in info]
        counters = map(self._keys.counters, range(self.shards))
        accepted = self._connection.try_many(
            [("HGET", name, "accepted.uploads") for name in counters]
        )
        contents = ""
        if len(servers) == len(nodes):
            with suppress(StorageUnavailableError):  # a part of what was read may have gone back
                contents = _contents(str(generation_of(self._connection, self._keys)), servers)
        return Health(
            memory=max(shares, default=None),
            faults=tuple(dict.fromkeys(unsafe)),
            times=tuple(times),
            memory_limit=sum(limits) * len(nodes) // len(servers) if all(limits) else 0,
            contents=contents,
            accepted=tuple(
                None if isinstance(count, CollectorError) else int(count or 0) for count in accepted
            ),
        )

    def refusing(self) -> dict[int, CollectorError]:
        """Ask every shard through a function that is refused whenever an append would be."""
        try:
            generation = self._first_generation()
        except CollectorError as error:
            return dict.fromkeys(range(self.shards), error)
        commands: list[Command] = [
            ("FCALL", "hearsay_ready", 2, stream, self._keys.state(shard), generation)
            for shard, stream in enumerate(map(self._keys.stream, range(self.shards)))
        ]
        replies = self._connection.try_many(commands, self._proof)
        return {
            shard: reply for shard, reply in enumerate(replies) if isinstance(reply, CollectorError)
        }

    def destroy(self) -> None:
        """Delete every key under the prefix."""
        for names in scan(self._connection, self._keys.pattern):
            self._call_many([("UNLINK", key) for key in names])

    def _append_command(
        self, shard: int, sealed_day: int, uploads: Sequence[SealedUpload]
    ) -> Command:
        name = self._keys
        keys = name.seen(shard, sealed_day), name.stream(shard), name.counters(shard)
        forgotten = (sealed_day + SEEN_DAYS) * DAY
        checked = forgotten, self._proof.replicas, self._first_generation(), sealed_day
        arguments: list[Part] = []
        for upload_id, _, entry, reports in uploads:
            arguments += upload_id, entry, reports
        return ("FCALL", "hearsay_append_many", 4, *keys, name.state(shard), *checked, *arguments)

    def _first_generation(self) -> str:
        """Return the generation of the first use, reading it then; "" while there is none."""
        if not self._generation:
            self._generation = answered_generation(self._connection, self._keys)
        return self._generation

    def _of_streams(self, function: str, *arguments: Part) -> list[int]:
        """Call a function of every shard's stream."""
        streams = [self._keys.stream(shard) for shard in range(self.shards)]
        commands = [("FCALL", function, 1, stream, *arguments) for stream in streams]
        return [int(reply) for reply in self._call_many(commands)]


def _contents(generation: str, servers: Sequence[Mapping[str, str]]) -> str:
    """Name what the store holds: a store goes back only by a start or a change of a primary."""
    runs = sorted(":".join(info.get(name, "") for name in _RUN) for info in servers)
    run = hashlib.sha256(" ".join(runs).encode()).hexdigest()[:16]
    return f"{generation}.{run}" if generation else ""


def _memory(info: Mapping[str, str]) -> float | None:
    limit = int(info.get("maxmemory", 0))
    return int(info["used_memory"]) / limit if limit else None


def _reports(increments: Increments) -> tuple[int, int]:
    """Return how many reports *increments* count, and how many of these are late.

    Raises: TallyOverflowError: more than the store can add to a counter at once.
    """
    total = late = added = 0
    for cell, pairs in increments.items():
        added = max(added, sum(abs(delta) for _, delta in pairs))
        n = sum(delta for index, delta in pairs if index == 0)
        total += n
        late += n if cell.lateness else 0
    if max(added, total) >= MAX_DELTA:
        raise TallyOverflowError("increments: must add less than 2^62 to a cell")
    return total, late
