"""What the servers report about themselves, as far as our user may ask.  Nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from ..core.config import Config
from ..core.errors import RefusedByStoreError, StorageUnavailableError
from .connect import open_connection
from .connection import Connection, allowed
from .inspection import counted
from .keys import Keys
from .preparation import (
    GROUP,
    faults,
    library_of,
    may_replay,
    most_packed,
    needs_all_slots,
    settings_of,
)
from .values import Counters

_MICRO: Final = 1_000_000  # of a second
_LOG_FIELDS: Final = ("aof_last_write_status", "aof_last_bgrewrite_status")


@dataclass(frozen=True)
class Server:
    """One server that holds keys.  Settings are None if it does not report them."""

    info: Mapping[str, str]  # the fields of INFO; empty if refused
    appendfsync: str | None
    library: int | None  # version of the function library; 0 without one
    ahead: float | None  # seconds that its clock is before ours
    replays: bool | None = None  # whether a restart may replay the append-only file
    packed: int | None = None  # most members of a set of integers that it packs
    # Whether it stops, as all servers of its cluster do, while any slot has none.
    stops_with_others: bool = False

    @property
    def memory(self) -> int:
        """Bytes in use."""
        return int(self.info.get("used_memory", 0))

    @property
    def memory_limit(self) -> int:
        """Bytes from which it takes no more; 0 without a limit."""
        return int(self.info.get("maxmemory", 0))

    @property
    def replicas(self) -> int:
        """Replicas that are connected."""
        return int(self.info.get("connected_slaves", 0))

    @property
    def log_is_sound(self) -> bool:
        """Whether the append-only file could last be written and rewritten."""
        return all(self.info.get(name, "ok") == "ok" for name in _LOG_FIELDS)

    def keeps_what_it_takes(self, profile: str) -> bool:
        """Return whether its file is sound and its reported settings fit *profile*."""
        appendfsync = self.appendfsync or "always"  # unreadable: hearsay init checked it
        return self.log_is_sound and not (self.info and faults(self.info, appendfsync, profile))


@dataclass(frozen=True)
class Shard:
    """One shard: its counts, None if they may not be read, and whether it can be claimed from."""

    counters: Counters | None
    has_group: bool | None  # None if it may not be asked
    generation: str | None = None  # "" for none; None if it may not be asked
    confirmed: int | None = None  # the last epoch day that two clocks have confirmed


class UnfoldedEntries(NamedTuple):
    """The entries of a shard that were delivered to a worker and not folded yet."""

    entries: int
    oldest: str  # its id; "" if there is none


class Diagnosis:
    """Reads the state of a deployment's store."""

    def __init__(
        self, connection: Connection, keys: Keys, clock: Callable[[], float] = time.time
    ) -> None:
        """Ask over *connection*; compare clocks with *clock*, Unix time in seconds."""
        self._connection, self._keys, self._clock = connection, keys, clock

    def servers(self) -> list[Server]:
        """Return each server's report.  Raises StorageUnavailableError: one does not answer."""
        return [self._server(node) for node in self._connection.nodes()]

    def away(self) -> list[int]:
        """Return the shards whose server does not answer."""
        streams = map(self._keys.stream, range(self._keys.shards))
        replies = self._connection.try_many([("XLEN", stream) for stream in streams])
        return [
            shard
            for shard, reply in enumerate(replies)
            if isinstance(reply, StorageUnavailableError)
            and not isinstance(reply, RefusedByStoreError)
        ]

    def recorded(self) -> tuple[int | None, str | None]:
        """Return the number of shards and the profile that were recorded when it was prepared."""
        shards = allowed(partial(self._get, self._keys.shard_count), None)
        profile = allowed(partial(self._get, self._keys.checked_profile), None)
        return int(shards) if shards else None, profile

    def held(self) -> list[UnfoldedEntries | None]:
        """Return what was delivered and is in no fold, of each shard; None if it may not be asked.

        Called twice, with a pause, it shows the work that no worker gets done.
        """
        streams = (self._keys.stream(shard) for shard in range(self._keys.shards))
        return [allowed(partial(self._held, stream), None) for stream in streams]

    def unarchived(self) -> int | None:
        """Return how many folds wait to be archived; None if that may not be asked."""
        names = (self._keys.archive(shard) for shard in range(self._keys.shards))
        asks = [("XLEN", name) for name in names]
        return allowed(lambda: sum(map(int, self._connection.call_many(asks))), None)

    def shards(self) -> list[Shard]:
        """Return the state of each shard."""
        counters = allowed(lambda: counted(self._connection, self._keys), None)
        return [
            self._shard(shard, counters[shard] if counters else None)
            for shard in range(self._keys.shards)
        ]

    def _server(self, node: Connection) -> Server:
        info, appendfsync = settings_of(node)
        library = allowed(lambda: library_of(node), None)
        replays = may_replay(node, self._keys)
        packed = most_packed(node) if info else None
        stops = info.get("cluster_enabled") == "1" and needs_all_slots(node)
        return Server(info, appendfsync, library, self._ahead(node, info), replays, packed, stops)

    def _ahead(self, node: Connection, info: Mapping[str, str]) -> float | None:
        """Return how far the server's clock is ahead, from INFO where TIME is not allowed."""
        before = self._clock()
        reply = allowed(lambda: node.call("TIME"), None)
        ours = (before + self._clock()) / 2
        if reply:
            return float(int(reply[0]) + int(reply[1]) / _MICRO - ours)
        server_time = info.get("server_time_usec")
        return int(server_time) / _MICRO - ours if server_time else None

    def _shard(self, shard: int, counters: Counters | None) -> Shard:
        stream = self._keys.stream(shard)
        groups = allowed(lambda: self._groups(stream), None)
        has_group = None if groups is None else bool(groups)
        fields = self._keys.state(shard), "generation", "floor"
        state = allowed(lambda: self._call("HMGET", *fields), None)
        if state is None:
            return Shard(counters, has_group)
        generation, floor = state
        confirmed = int(floor) if floor else None
        return Shard(counters, has_group, generation.decode() if generation else "", confirmed)

    def _held(self, stream: str) -> UnfoldedEntries:
        count, first, *_ = self._call("XPENDING", stream, GROUP)
        return UnfoldedEntries(int(count), first.decode() if first else "")

    def _groups(self, stream: str) -> Sequence[Any]:
        if not self._call("EXISTS", stream):
            return []
        groups: Sequence[Any] = self._call("XINFO", "GROUPS", stream)
        return groups

    def _get(self, name: str) -> str | None:
        reply = self._call("GET", name)
        return reply.decode() if reply else None

    def _call(self, *command: str) -> Any:
        return self._connection.call(*command)


def diagnose(config: Config) -> Diagnosis:
    """Return the diagnosis of *config*'s store.  Nothing is sent before it is asked."""
    return Diagnosis(open_connection(config.redis_url), Keys(config.prefix, config.shards))
