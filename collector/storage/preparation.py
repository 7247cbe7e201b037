"""Make the servers ready: check them, load the library, record the shards, create the groups.

*Faults* are why a server might not keep what it acknowledges: settings in, reasons out.  A restart
must get back what was written to the append-only file, too.  Redis 7.0 replays it as its default
user, and leaves out the steps that this user may not take: it starts, without them and without a
word.  So the default user is off, and has every right.  Other servers may not look; which ones do
is nothing to rely on.

The *generation* says which store this is: a random one, written once, in every shard.

Law: an upload is appended only to a shard of the generation with which its web process began.  So
a store that was emptied, in whole or in part, acknowledges nothing until ``hearsay init`` has run
and the web processes have been started again.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.resources import files
from typing import Final, NamedTuple

from ..core.config import HA, STANDARD, STRICT, VOLATILE
from ..core.errors import (
    CollectorError,
    NotPreparedError,
    RefusedByStoreError,
    StorageFullError,
    UnsafeStoreError,
)
from .connection import Connection, Part, Proof, allowed, parse_info
from .keys import Keys

_SIZE: Final = 8  # bytes of chance
_READS: Final = 10  # until no other process writes; a store gets its generation in two steps
_ID, _WHOLE, _RESTORED = "id", "whole", "restored"  # fields of the store's hash
_FIELD: Final = "generation"  # of the hash of each shard, as in hearsay.lua
_FOLDS: Final = "folds"  # of that hash too: the number after which its first fold was counted
_RANGES: Final = "ranges"  # and how many ranges after that one its folds are counted now
_FOLD_NUMBERS: Final = 1 << 33  # in a range, which begins at a multiple of it
_FOLD_RANGES: Final = 1 << 30
_FOLDS_FROM: Final = 1_767_225_600  # 2026-01-01, in Unix time
_FOLDS_EVERY: Final = 60  # seconds to a range: no copy is put back sooner after hearsay init
_SECRET: Final = 16  # bytes of chance
_OLDEST_REDIS: Final = (7, 0)  # functions, and stream ids of the form ms-*
_OLDEST_VALKEY: Final = (7, 2)  # its first release
UNKNOWN: Final = "?"  # a setting that the server does not report
_REPLAYED: Final = (  # what our functions write, "{stream}" being one of their keys
    "XADD {stream} 1-* e x",
    "XDEL {stream} 1-1",
    "XACK {stream} g 1-1",
    "HSET {stream} f x",
    "XCLAIM {stream} g c 0 1-1",
    "XGROUP SETID {stream} g 0",
    "PEXPIREAT {stream} 1",
    "UNLINK {stream}",
    "PERSIST {stream}",
    "SADD {stream} x",
    "HINCRBY {stream} f 1",
    "BITFIELD {stream} SET i64 #0 0",
    "HDEL {stream} f",
    "UNLINK {stream}",
    "SREM {stream} x",
)
GROUP: Final = "workers"  # as in hearsay.lua
# What a bucket of ids needs, and the servers' default: else an id takes some 60 bytes, not 10.
_PACKING, PACKED = "set-max-intset-entries", 512
_ALL_SLOTS: Final = "cluster-require-full-coverage"
LIBRARY_VERSION: Final = 2  # as in hearsay.lua
_SYNCED: Final = (STRICT, HA)  # profiles that need every write on disk


_log = logging.getLogger("hearsay.storage")


class Generation(NamedTuple):
    """What the store says of itself."""

    id: str  # "" unless all shards have the same one
    restored: int  # how often tallies were added from an archive, or taken away

    def __str__(self) -> str:
        """Name the contents of the store: they were never other ones under this name."""
        return f"{self.id}.{self.restored}" if self.id else ""


def generation_of(connection: Connection, keys: Keys) -> Generation:
    """Read the generation of every shard, in one round trip."""
    *shards, restored = connection.call_many(
        [*_of_shards(keys), ("HGET", keys.generation, _RESTORED)]
    )
    return Generation(_common(shards), int(restored or 0))


def answered_generation(connection: Connection, keys: Keys) -> str:
    """Return the generation of all shards that answer; "" if one has none or another.

    Raises: CollectorError: none answers.
    """
    replies = connection.try_many(_of_shards(keys))
    shards = [reply for reply in replies if not isinstance(reply, CollectorError)]
    if not shards:
        raise replies[0]
    return _common(shards)


def change_contents(connection: Connection, keys: Keys) -> None:
    """Say that tallies are changed by hand, so that no answer from before is given again."""
    connection.call("HINCRBY", keys.generation, _RESTORED, 1)


def establish(connection: Connection, keys: Keys, renew: bool) -> None:
    """Give a new store its generation; go on where another process was interrupted.

    Args:   renew: whether a store that has lost a part gets another generation.
    Raises: UnsafeStoreError: a part is gone, and *renew* is false.
            NotPreparedError: there is none, and our user may write none.
    """
    generation, whole, shards = _settled(connection, keys)
    if generation and whole and _common(shards) == generation.decode():
        return
    lost = [str(shard) for shard, own in enumerate(shards) if not own or own != generation]
    is_new = generation is None and not any(shards)
    try:
        if not is_new and (whole or generation is None):
            if not renew:
                rule = "is gone, a part of the store was emptied; docs/operate/operate.md#replaced"
                raise UnsafeStoreError(
                    [f"store.generation of shards={','.join(lost) or 'all'}: {rule}"]
                )
            _write(connection, keys.generation, _ID, secrets.token_hex(_SIZE), _WHOLE, "")
        elif is_new:
            connection.call("HSETNX", keys.generation, _ID, secrets.token_hex(_SIZE))
        _complete(connection, keys)
    except RefusedByStoreError as error:  # application users may only read it
        raise NotPreparedError("store: has no generation; run hearsay init") from error


def _settled(
    connection: Connection, keys: Keys
) -> tuple[bytes | None, bytes | None, list[bytes | None]]:
    """Return what the store and each shard say, read while no other process wrote it.

    The store's own hash is written before the shards, and *whole* after them: if it is the same
    before and after the shards were read, what they miss is not just being written.
    """
    for _ in range(_READS):
        before = connection.call("HMGET", keys.generation, _ID, _WHOLE)
        shards = connection.call_many(_of_shards(keys))
        if connection.call("HMGET", keys.generation, _ID, _WHOLE) == before:
            break
    return before[0], before[1], shards


def _complete(connection: Connection, keys: Keys) -> None:
    """Write the store's generation, whichever process made it, into every shard."""
    generation = connection.call("HGET", keys.generation, _ID)
    for shard in range(keys.shards):
        _write(connection, keys.state(shard), _FIELD, generation)
    _write(connection, keys.generation, _WHOLE, "1")


def _write(connection: Connection, key: str, *pairs: Part) -> None:
    connection.call("FCALL", "hearsay_establish", 1, key, *pairs)


def _of_shards(keys: Keys) -> list[tuple[str, str, str]]:
    return [("HGET", keys.state(shard), _FIELD) for shard in range(keys.shards)]


def _common(shards: Sequence[bytes | None]) -> str:
    """Return the generation that all *shards* have, "" if one has none or another."""
    generations = set(shards)
    first = shards[0]
    return first.decode() if first and len(generations) == 1 else ""


def faults(
    info: Mapping[str, str],
    appendfsync: str | None,
    profile: str,
    replays: bool | None = None,
) -> list[str]:
    """Return why a server is not fit for *profile*, each as ``setting=value: rule``.

    Args: info: fields of INFO; empty for a stand-in that has none, fit for ``volatile`` only.
          appendfsync: this setting, or None if it may not be read.
          replays: whether a restart may replay the append-only file; None if unknown.
    """
    if not info:
        missing = f"the server must report it for profile {profile}"
        return [] if profile == VOLATILE else [f"info={UNKNOWN}: {missing}"]
    reasons = [_version_fault(info)]
    reasons.append(_expect(info, "maxmemory_policy", "noeviction", "or tallies vanish"))
    reasons.append(_expect(info, "role", "master", "a replica takes no writes"))
    if profile in (STANDARD, STRICT, HA):
        reasons.append(_expect(info, "aof_enabled", "1", f"for profile {profile}"))
    if profile in (STRICT, HA) and appendfsync != "always":
        value = appendfsync or UNKNOWN
        rule = f"must be always for profile {profile}; who may not read it needs hearsay init to"
        reasons.append(f"appendfsync={value}: {rule}")
    if profile == STANDARD and appendfsync == "no":
        rule = f"must be everysec or always for profile {profile}, or half a minute may be lost"
        reasons.append(f"appendfsync={appendfsync}: {rule}")
    if profile != VOLATILE and replays is False:
        rule = "must have all rights, and be off: a restart forgets what this user may not replay"
        reasons.append(f"user default=without rights: {rule}")
    return [fault for fault in reasons if fault]


def _version_fault(info: Mapping[str, str]) -> str:
    valkey = "valkey_version" in info
    name, oldest = ("valkey", _OLDEST_VALKEY) if valkey else ("redis", _OLDEST_REDIS)
    version = info.get(f"{name}_version", UNKNOWN)
    parts = re.match(r"(\d+)\.(\d+)", version)
    if parts and (int(parts[1]), int(parts[2])) >= oldest:
        return ""
    return f"{name}_version={version}: must be at least {oldest[0]}.{oldest[1]}"


def _expect(info: Mapping[str, str], field: str, value: str, why: str) -> str:
    actual = info.get(field, UNKNOWN)
    return "" if actual == value else f"{field}={actual}: must be {value}, {why}"


def may_replay(node: Connection, keys: Keys) -> bool | None:
    """Return whether *node* may replay our steps; None if it, or our user, may not say."""

    def may(command: str) -> bool:
        reply: bytes = node.call("ACL", "DRYRUN", "default", *command.split())
        return reply == b"OK"

    steps = (line.format(stream=keys.stream(0)) for line in _REPLAYED)
    return allowed(lambda: all(map(may, steps)), None)


def prepare(connection: Connection, keys: Keys, profile: str, renew: bool = False) -> None:
    """Prepare the servers behind *connection*.  Repeatable.

    Args:   renew: whether a store that has lost a part may be used again, as another one.
    Raises: UnsafeStoreError, NotPreparedError.
            NotLoggedError: what was prepared just now would not outlive a store that dies.
    """
    nodes = connection.nodes()
    settings = [settings_of(node) for node in nodes]
    checked = _checked(connection, keys, profile, [appendfsync for _, appendfsync in settings])
    reasons = [
        fault
        for node, (info, appendfsync) in zip(nodes, settings, strict=True)
        for fault in faults(
            info, appendfsync or checked, profile, may_replay(node, keys) if info else None
        )
    ]
    if reasons:
        raise UnsafeStoreError(list(dict.fromkeys(reasons)))
    for node in nodes:
        _load_library(node)
        packed = most_packed(node)
        if packed is not None and packed < PACKED:
            rule = f"should be at least {PACKED}, or upload ids take six times the memory"
            _log.warning("%s=%d: %s", _PACKING, packed, rule)
    if all(appendfsync for _, appendfsync in settings):  # for those who may not read it themselves
        with suppress(StorageFullError):  # a worker must start then too: folding makes room
            connection.call("SET", keys.checked_profile, profile)
    _record_shards(connection, keys)
    are_new = [_create_group(connection, keys.stream(shard)) for shard in range(keys.shards)]
    _begin_shards(connection, keys, renew)
    establish(connection, keys, renew)
    # A process that finds all prepared starts while a disk stalls, too: there is folding to do.
    for node in nodes if profile == STANDARD and any(are_new) else ():
        allowed(partial(node.call_many, [("INFO", "server")], Proof(logged=True)), None)


def _checked(
    connection: Connection, keys: Keys, profile: str, settings: Sequence[str | None]
) -> str | None:
    """Return appendfsync as hearsay init found it, for a user who may not read it."""
    if profile not in _SYNCED or all(settings):
        return None
    recorded = _recorded(connection, keys.checked_profile)
    return "always" if recorded and recorded.decode() in _SYNCED else None


def _record_shards(connection: Connection, keys: Keys) -> None:
    """Record the number of shards, or raise UnsafeStoreError if another one is recorded."""
    recorded = _recorded(connection, keys.shard_count)
    if recorded is None:
        try:
            connection.call("SET", keys.shard_count, keys.shards, "NX")
        except RefusedByStoreError as error:  # application users may only read it
            raise NotPreparedError("store: is not prepared; run hearsay init") from error
        recorded = _recorded(connection, keys.shard_count)
    if int(recorded or 0) != keys.shards:
        other = int(recorded or 0)
        raise UnsafeStoreError([f"shards={keys.shards}: the store was prepared with {other}"])


def _recorded(connection: Connection, key: str) -> bytes | None:
    value: bytes | None = connection.call("GET", key)
    return value


def settings_of(node: Connection) -> tuple[dict[str, str], str | None]:
    """Return INFO and appendfsync; empty and None if the server does not report them."""
    info = allowed(lambda: parse_info(node.call("INFO")), dict[str, str]())
    reply = allowed(lambda: node.call("CONFIG", "GET", "appendfsync"), None) if info else None
    return info, reply[1].decode() if reply else None


def most_packed(node: Connection) -> int | None:
    """Return the most members of a set of integers that *node* packs; None if unknown."""
    reply = allowed(lambda: node.call("CONFIG", "GET", _PACKING), None)
    return int(reply[1]) if reply else None


def needs_all_slots(node: Connection) -> bool:
    """Return whether *node* of a cluster stops while a slot has no server; False if unknown."""
    reply = allowed(lambda: node.call("CONFIG", "GET", _ALL_SLOTS), None)
    return b"yes" in (reply or ())


def _load_library(connection: Connection) -> None:
    """Load our library, unless the server has it or a later one: a late start must not undo it."""
    loaded = library_of(connection)
    if loaded >= LIBRARY_VERSION:
        return
    source = files(__package__).joinpath("hearsay.lua").read_text(encoding="utf-8")
    try:
        connection.call("FUNCTION", "LOAD", "REPLACE", source)
    except RefusedByStoreError as error:  # application users may have FCALL only
        rule = f"must be {LIBRARY_VERSION}; run hearsay init with the right to FUNCTION LOAD"
        raise NotPreparedError(f"library.version={loaded}: {rule}") from error


def _begin_shards(connection: Connection, keys: Keys, renew: bool) -> None:
    """Give each shard the secret by which it finds its ids, and a number to count folds from.

    A fold is known by shard and number.  The first is drawn, so that it is none of another store.
    *renew*: folds are numbered anew, by the time, so that none has the number of one that the
    archive has of this store, and that a copy from which it was put back does not know.
    """
    later = (int(time.time()) - _FOLDS_FROM) // _FOLDS_EVERY
    for shard in range(keys.shards):
        names = keys.state(shard), keys.archive(shard)
        if not renew and None not in connection.call("HMGET", names[0], "secret", _FOLDS):
            continue
        drawn = secrets.token_hex(_SECRET), secrets.randbelow(_FOLD_RANGES) * _FOLD_NUMBERS
        try:
            connection.call("FCALL", "hearsay_begin_shard", 2, *names, *drawn, later, int(renew))
        except (RefusedByStoreError, NotPreparedError):  # may not, or by a later library
            if renew:
                raise


def folds_of(connection: Connection, keys: Keys) -> list[range]:
    """Return the numbers that the folds of each shard of this store have or will have."""
    states = map(keys.state, range(keys.shards))
    counts = connection.call_many([("HMGET", state, _FOLDS, _RANGES) for state in states])
    return list(map(_numbers, counts))


def _numbers(counts: Sequence[bytes | None]) -> range:
    first, ranges = (int(count or 0) for count in counts)
    return range(first + 1, first + (ranges + 1) * _FOLD_NUMBERS)


def library_of(node: Connection) -> int:
    """Return the version of the library that *node* has; 0 for none."""
    try:
        return int(node.call("FCALL", "hearsay_version", 0))
    except NotPreparedError:
        return 0


def _create_group(connection: Connection, stream: str) -> bool:
    """Return whether it was created: it may be there, or left to those who may."""
    try:
        connection.call("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM")
        return True
    except RefusedByStoreError as error:
        # Application users may not; a group that is missing is named when it is first needed.
        if error.code not in ("BUSYGROUP", "NOPERM"):
            raise
    except StorageFullError:
        pass  # refused before the server looks whether the group is there; likewise
    return False
