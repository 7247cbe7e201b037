"""Whether a server would get back at a restart what it has written to its append-only file.

Redis 7.0 replays that file as its default user, and leaves out the steps that this user may not
take: it starts, without them and without a word.  So the default user is off, and has every right.
Other servers may not look; which ones do is nothing to rely on.
"""

from __future__ import annotations

from typing import Final

from ..core.errors import RefusedByStoreError
from .connection import Connection
from .keys import Keys

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


def may_replay(node: Connection, keys: Keys) -> bool | None:
    """Return whether *node* may replay our steps; None if it, or our user, may not say."""
    try:
        return all(_may(node, line.format(stream=keys.stream(0))) for line in _REPLAYED)
    except RefusedByStoreError:
        return None


def _may(node: Connection, command: str) -> bool:
    reply: bytes = node.call("ACL", "DRYRUN", "default", *command.split())
    return reply == b"OK"
