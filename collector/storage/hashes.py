"""Hashes of a store, of Redis or in memory, and records in them that are compared and replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import msgspec

from ..core.config import Config
from .connect import open_connection
from .connection import Command, Connection, Part
from .keys import Keys

_REPLACE: Final = "hearsay_replace"
R = TypeVar("R")


class Removal(NamedTuple):
    """Deletes fields of a hash; without fields all of it."""

    key: str
    fields: tuple[str, ...] = ()


class Replacement(NamedTuple):
    """Puts *record* in place of what was *read*, if that is still there."""

    key: str
    field: str
    read: bytes
    record: bytes


Step: TypeAlias = Removal | Replacement


class Hashes(Protocol):
    """Hashes of one deployment, and in each fields by name.

    Raises, all methods: StorageUnavailableError, StorageFullError.  Each may be repeated.
    """

    def now(self) -> int:
        """Return the Unix time of the store's own clock."""

    def read(self, key: str) -> dict[str, bytes]:
        """Return all fields of a hash; a name that is no UTF-8 holds U+FFFD, as none of ours."""

    def get(self, key: str, field: str) -> bytes | None:
        """Return one field; None if it is not there."""

    def put(self, key: str, fields: Mapping[str, Part], until: int | None = None) -> None:
        """Write *fields* in place of older ones; forget the hash at the Unix time *until*."""

    def replace(self, key: str, field: str, read: bytes | None, record: bytes) -> bool:
        """Put *record* in place of what was *read*, None for nothing; return if it is there.

        A full store does so, too, where something was read.  A command may be repeated, so what is
        there already was put.

        Raises: NotPreparedError.
        """

    def apply(self, steps: Sequence[Step]) -> None:
        """Take all *steps* in one round trip."""


class RedisHashes:
    """Hashes in Redis or Valkey."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        """Use *connection* for the hashes under *prefix*.  Raises ConfigError."""
        self._connection, self._prefix = connection, Keys(prefix, 1).prefix

    def now(self) -> int:
        """Ask the first server that there is."""
        return int(self._connection.nodes()[0].call("TIME")[0])

    def read(self, key: str) -> dict[str, bytes]:
        """Read the whole hash: people and processes are few."""
        flat = self._connection.call("HGETALL", self._key(key))
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(errors="replace"): record for name, record in pairs}

    def get(self, key: str, field: str) -> bytes | None:
        """Read one field."""
        record: bytes | None = self._connection.call("HGET", self._key(key), field)
        return record

    def put(self, key: str, fields: Mapping[str, Part], until: int | None = None) -> None:
        """Write all in one round trip."""
        pairs = (part for pair in fields.items() for part in pair)
        commands: list[Command] = [("HSET", self._key(key), *pairs)]
        if until is not None:
            commands.append(("EXPIREAT", self._key(key), until))
        self._connection.call_many(commands)

    def replace(self, key: str, field: str, read: bytes | None, record: bytes) -> bool:
        """Write the first by a command, others by a function that compares and needs no room."""
        if read is None:
            is_ours = self._connection.call("HSETNX", self._key(key), field, record)
        else:
            is_ours = self._connection.call(*self._command(Replacement(key, field, read, record)))
        return bool(is_ours) or self.get(key, field) == record

    def apply(self, steps: Sequence[Step]) -> None:
        """Send a command a step."""
        self._connection.call_many([self._command(step) for step in steps])

    def _command(self, step: Step) -> Command:
        key = self._key(step.key)
        if isinstance(step, Replacement):
            return "FCALL", _REPLACE, 1, key, step.field, step.read, step.record
        return ("HDEL", key, *step.fields) if step.fields else ("UNLINK", key)

    def _key(self, key: str) -> str:
        return f"{self._prefix}:{key}"


class MemoryHashes:
    """Hashes in the memory of one process, kept until it ends."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Start empty.  *clock* gives Unix time, as the store's clock does."""
        self._clock, self._lock = clock, threading.Lock()
        self._hashes: dict[str, dict[str, bytes]] = {}

    def now(self) -> int:
        """Read the clock."""
        return int(self._clock())

    def read(self, key: str) -> dict[str, bytes]:
        """Return a copy."""
        return dict(self._hashes.get(key, {}))

    def get(self, key: str, field: str) -> bytes | None:
        """Look it up."""
        return self._hashes.get(key, {}).get(field)

    def put(self, key: str, fields: Mapping[str, Part], until: int | None = None) -> None:
        """Keep *fields* as the store would return them."""
        kept = {name: v if isinstance(v, bytes) else str(v).encode() for name, v in fields.items()}
        self._hashes.setdefault(key, {}).update(kept)

    def replace(self, key: str, field: str, read: bytes | None, record: bytes) -> bool:
        """Compare and replace."""
        with self._lock:
            there = self.get(key, field)
            if there == read:
                self.put(key, {field: record})
        return there in (read, record)

    def apply(self, steps: Sequence[Step]) -> None:
        """Take one after another."""
        for step in steps:
            if isinstance(step, Replacement):
                self.replace(*step)
                continue
            gone = step.fields or self.read(step.key)
            for field in gone:
                self._hashes.get(step.key, {}).pop(field, None)


class Records(Generic[R]):
    """Records of one kind by name, as JSON in a hash; what is not of the kind is passed over."""

    def __init__(self, hashes: Hashes, key: str, kind: type[R]) -> None:
        """Keep records of *kind* in the hash *key*."""
        self._hashes, self._key = hashes, key
        self._decode = msgspec.json.Decoder(kind).decode
        self.encode = msgspec.json.Encoder().encode

    def all(self) -> dict[str, R]:
        """Return every record by its name."""
        read = {name: self._record_of(text) for name, text in self._hashes.read(self._key).items()}
        return {name: record for name, record in read.items() if record is not None}

    def get(self, name: str) -> tuple[bytes | None, R | None]:
        """Return a record as stored and decoded; None if there is none."""
        text = self._hashes.get(self._key, name)
        return text, None if text is None else self._record_of(text)

    def put(self, name: str, record: R) -> None:
        """Write *record* in place of what was there."""
        self._hashes.put(self._key, {name: self.encode(record)})

    def replace(self, name: str, read: bytes | None, record: R) -> bytes | None:
        """Put *record* in place of what was *read*, None for nothing; return it as stored.

        None: another is there; nothing was changed.
        """
        text = self.encode(record)
        return text if self._hashes.replace(self._key, name, read, text) else None

    def forget(self, names: Iterable[str]) -> None:
        """Delete the records of *names*."""
        if fields := tuple(names):
            self._hashes.apply([Removal(self._key, fields)])

    def _record_of(self, text: bytes) -> R | None:
        try:
            return self._decode(text)
        except (ValueError, msgspec.MsgspecError):
            return None


class HashStore:
    """What one deployment keeps in hashes."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = hashes

    @classmethod
    def of(cls, config: Config) -> Self:
        """Open *config*'s store.  Nothing is sent before its first use."""
        return cls(RedisHashes(open_connection(config.redis_url), config.prefix))
