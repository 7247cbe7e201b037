"""Which store this is: a random generation, written once, in every shard.

Law: an upload is appended only to a shard of the generation with which its web process began.  So
a store that was emptied, in whole or in part, acknowledges nothing until ``hearsay init`` has run
and the web processes have been started again.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

from ..core.errors import NotPreparedError, RefusedByStoreError, UnsafeStoreError
from .connection import Connection, Part
from .keys import Keys

_SIZE: Final = 8  # bytes of chance
_READS: Final = 10  # until nobody writes meanwhile; a store is given its generation in two steps
_ID, _WHOLE, _RESTORED = "id", "whole", "restored"  # fields of the store's hash
_FIELD: Final = "generation"  # of the hash of each shard


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


def change_contents(connection: Connection, keys: Keys) -> None:
    """Say that tallies are changed by hand, so that no answer from before is given again."""
    connection.call("HINCRBY", keys.generation, _RESTORED, 1)


def establish(connection: Connection, keys: Keys, renew: bool) -> None:
    """Give a new store its generation; go on where another process was interrupted.

    Args:   renew: whether a store of which a part is gone gets another generation.
    Raises: UnsafeStoreError: a part is gone, and *renew* is false.
            NotPreparedError: there is none, and our user may write none.
    """
    made, whole, shards = _settled(connection, keys)
    if made and whole and _common(shards) == made.decode():
        return
    lost = [str(shard) for shard, found in enumerate(shards) if not found or found != made]
    is_new = made is None and not any(shards)
    try:
        if not is_new and (whole or made is None):
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
    """Write the store's generation into every shard, whoever made it."""
    made = connection.call("HGET", keys.generation, _ID)
    for shard in range(keys.shards):
        _write(connection, keys.state(shard), _FIELD, made)
    _write(connection, keys.generation, _WHOLE, "1")


def _write(connection: Connection, key: str, *pairs: Part) -> None:
    connection.call("FCALL", "hearsay_establish", 1, key, *pairs)


def _of_shards(keys: Keys) -> list[tuple[str, str, str]]:
    return [("HGET", keys.state(shard), _FIELD) for shard in range(keys.shards)]


def _common(shards: Sequence[bytes | None]) -> str:
    """Return the generation that all *shards* have, "" if one has none or another."""
    found = set(shards)
    first = shards[0]
    return first.decode() if first and len(found) == 1 else ""
