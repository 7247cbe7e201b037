"""Documents of people in the store: boards, saved questions, notes, shared links, with history.

A hash of each kind holds every document as it is now, by name; a hash of each document holds what
it was before, by version.  An index says of each what it occupies and who may be asked.
What a document says is for whoever reads it: here it is bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, Protocol, Self

import msgspec

from ..core.config import Config
from .connect import open_connection
from .connection import Command, Connection
from .keys import Keys

_SECRETS: Final = "secrets"
_INDEX: Final = "index"
_REPLACE: Final = "hearsay_replace"
_OVERHEAD: Final = 128  # bytes that the store takes beside each record


class Place(NamedTuple):
    """Where a document is."""

    kind: str
    name: str


class Version(NamedTuple):
    """What is known of one version of a document."""

    number: int
    size: int  # bytes
    by: str  # the id of its author

    @property
    def stored(self) -> int:
        """Bytes that it takes in the store."""
        return self.size + _OVERHEAD


class Entry(msgspec.Struct, frozen=True):
    """What is known of a document without reading it."""

    app: str  # "" if it is of all
    author: str  # the name of who saved the version of now
    at: int  # Unix time of that version
    versions: tuple[Version, ...]  # that are kept, that of now first
    began: str = ""  # the id of who saved the first version
    deleted: bool = False

    @property
    def older(self) -> int:
        """Bytes of the versions before the one of now."""
        return self.size - self.versions[0].stored

    @property
    def size(self) -> int:
        """Bytes of all its versions."""
        return sum(version.stored for version in self.versions)


class Reduction(NamedTuple):
    """What makes room: an entry before and after, None where all of a document goes."""

    was: Entry
    now: Entry | None
    gone: Collection[int] = ()  # the versions that are not in the entry any more


class DocumentStore(Protocol):
    """Records by kind and name, each replaced only by who has read it.

    Laws: a record is in the history of its document before another takes its place.  Every method
    may be repeated: a record that is there already was put.

    Raises, all methods: StorageUnavailableError, StorageFullError.
    """

    def records(self, kind: str) -> Mapping[str, bytes]:
        """Return every document of *kind* as it is now, by name."""

    def index(self) -> Mapping[Place, Entry]:
        """Return what is known of all documents."""

    def record(self, kind: str, name: str) -> bytes | None:
        """Return a document as it is now; None if there is none."""

    def put(
        self,
        kind: str,
        name: str,
        record: bytes,
        *,
        version: int = 1,
        read: bytes | None = None,
        entry: Entry | None = None,
    ) -> bool:
        """Store *record* as *version* in place of what was *read*; None for a new document.

        Args:    entry: of the index, which is written first, so that nothing is there uncounted.
        Returns: False if another record is there, or is being put; the index is as it was.
        """

    def history(self, kind: str, name: str) -> Mapping[int, bytes]:
        """Return the versions of a document before the one of now, the oldest first."""

    def reduce(self, reductions: Mapping[Place, Reduction]) -> None:
        """Delete versions and documents, and what the index says of them.

        Nothing of a document of which the index no longer has what it was.
        """

    def remove(self, kind: str, name: str) -> None:
        """Delete a document with its history, for good."""

    def secret(self, purpose: str, fresh: bytes) -> bytes:
        """Return the secret for *purpose*: *fresh* if there was none."""


class RedisDocuments:
    """The DocumentStore protocol on Redis or Valkey."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        """Use *connection* for the documents under *prefix*.  Raises ConfigError."""
        self._call, self._call_many = connection.call, connection.call_many
        self._prefix = f"{Keys(prefix, 1).prefix}:documents"

    @classmethod
    def of(cls, config: Config) -> Self:
        """Return those of *config*'s store.  Nothing is sent before their first use."""
        return cls(open_connection(config.redis_url), config.prefix)

    def records(self, kind: str) -> dict[str, bytes]:
        """Read the whole hash; a name that is not ours is passed over."""
        flat = self._call("HGETALL", self._key(kind))
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(): record for name, record in pairs if name.isascii()}

    def index(self) -> dict[Place, Entry]:
        """Read the whole hash: some hundred bytes a document."""
        flat = self._call("HGETALL", self._key(_INDEX))
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {
            Place(*name.decode().split(":", 1)): msgspec.json.decode(text, type=Entry)
            for name, text in pairs
        }

    def record(self, kind: str, name: str) -> bytes | None:
        """Read one field."""
        record: bytes | None = self._call("HGET", self._key(kind), name)
        return record

    def put(
        self,
        kind: str,
        name: str,
        record: bytes,
        *,
        version: int = 1,
        read: bytes | None = None,
        entry: Entry | None = None,
    ) -> bool:
        """Write history first: a death between leaves a copy there of what is still the newest."""
        place, text, was = f"{kind}:{name}", msgspec.json.encode(entry), None
        if read is not None:  # a full store refuses this, and nothing has changed
            self._call("HSET", self._key(kind, name), version - 1, read)
        if entry is not None:
            was = self._call("HGET", self._key(_INDEX), place)
            if not _replaced(self._call, self._key(_INDEX), place, was, text):
                return False
        is_there = _replaced(self._call, self._key(kind), name, read, record)
        if entry is not None and not is_there:
            if was is not None:
                _replaced(self._call, self._key(_INDEX), place, text, was)
            elif self.record(kind, name) is None:
                self._call("HDEL", self._key(_INDEX), place)
        return is_there

    def history(self, kind: str, name: str) -> dict[int, bytes]:
        """Read the hash of one document."""
        flat = self._call("HGETALL", self._key(kind, name))
        pairs = zip(flat[::2], flat[1::2], strict=True)
        versions = {int(version): record for version, record in pairs if version.isdigit()}
        return dict(sorted(versions.items()))

    def reduce(self, reductions: Mapping[Place, Reduction]) -> None:
        """Delete first: what the index counts may be gone, and never the other way round.

        In one round trip, after one that reads the index.
        """
        index, commands = self.index(), list[Command]()
        for place, (was, now, gone) in reductions.items():
            if index.get(place) != was:
                continue
            if now is None:
                commands += self._removal(place)
                continue
            if gone:
                commands.append(("HDEL", self._key(*place), *gone))
            commands.append(
                (
                    *("FCALL", _REPLACE, 1, self._key(_INDEX), ":".join(place)),
                    *(msgspec.json.encode(was), msgspec.json.encode(now)),
                )
            )
        self._call_many(commands)

    def remove(self, kind: str, name: str) -> None:
        """Delete the document first: what is left of a history belongs to nothing."""
        self._call_many(self._removal(Place(kind, name)))

    def _removal(self, place: Place) -> list[Command]:
        return [
            ("HDEL", self._key(place.kind), place.name),
            ("UNLINK", self._key(*place)),
            ("HDEL", self._key(_INDEX), ":".join(place)),
        ]

    def secret(self, purpose: str, fresh: bytes) -> bytes:
        """Write a field that is not there, and read it: all processes get the same."""
        secret: bytes | None = self._call("HGET", self._key(_SECRETS), purpose)
        if secret is None:
            self._call("HSETNX", self._key(_SECRETS), purpose, fresh)
            secret = self._call("HGET", self._key(_SECRETS), purpose)
        return secret or fresh

    def _key(self, *parts: str) -> str:
        return ":".join((self._prefix, *parts))


class RedisExclusions:
    """Records of what operators have taken out of answers; questions read them as tallies."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        """Use *connection* for the records under *prefix*.  Raises ConfigError."""
        self._call, self._key = connection.call, Keys(prefix, 1).exclusions

    @classmethod
    def of(cls, config: Config) -> Self:
        """Return those of *config*'s store.  Nothing is sent before their first use."""
        return cls(open_connection(config.redis_url), config.prefix)

    def put(self, name: str, record: bytes, read: bytes | None = None) -> bool:
        """Store *record* in place of what was *read*, None for a new one; return if it is there.

        Raises: StorageUnavailableError, StorageFullError.
        """
        return _replaced(self._call, self._key, name, read, record)


def _replaced(
    call: Callable[..., Any], key: str, name: str, read: bytes | None, record: bytes
) -> bool:
    """Put *record* in a hash in place of what was *read*, None for nothing; return if it is there.

    A command may be repeated, so what is there already was put.
    """
    if read is None:
        is_ours = call("HSETNX", key, name, record)
    else:
        is_ours = call("FCALL", _REPLACE, 1, key, name, read, record)
    return bool(is_ours) or call("HGET", key, name) == record


class MemoryDocuments:
    """The same protocol in memory: of an application that is given a store of its own."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._records: dict[str, dict[str, bytes]] = {}
        self._histories: dict[tuple[str, str], dict[int, bytes]] = {}
        self._secrets: dict[str, bytes] = {}
        self._index: dict[Place, Entry] = {}

    def records(self, kind: str) -> dict[str, bytes]:
        """Return a copy."""
        return dict(self._records.get(kind, {}))

    def index(self) -> dict[Place, Entry]:
        """Return a copy."""
        return dict(self._index)

    def record(self, kind: str, name: str) -> bytes | None:
        """Look it up."""
        return self._records.get(kind, {}).get(name)

    def put(
        self,
        kind: str,
        name: str,
        record: bytes,
        *,
        version: int = 1,
        read: bytes | None = None,
        entry: Entry | None = None,
    ) -> bool:
        """Compare and replace."""
        there = self.record(kind, name)
        if entry is not None and there in (read, record):
            self._index[Place(kind, name)] = entry
        if there != read:
            return there == record
        if read is not None:
            history = self._histories.setdefault((kind, name), {})
            history[version - 1] = read
        self._records.setdefault(kind, {})[name] = record
        return True

    def history(self, kind: str, name: str) -> dict[int, bytes]:
        """Return a copy."""
        return dict(self._histories.get((kind, name), {}))

    def reduce(self, reductions: Mapping[Place, Reduction]) -> None:
        """Forget them."""
        for place, (was, now, gone) in reductions.items():
            if self._index.get(place) != was:
                continue
            if now is None:
                self.remove(*place)
                continue
            for version in gone:
                self._histories.get(place, {}).pop(version, None)
            self._index[place] = now

    def remove(self, kind: str, name: str) -> None:
        """Forget it."""
        self._index.pop(Place(kind, name), None)
        self._records.get(kind, {}).pop(name, None)
        self._histories.pop((kind, name), None)

    def secret(self, purpose: str, fresh: bytes) -> bytes:
        """Keep the first."""
        return self._secrets.setdefault(purpose, fresh)
