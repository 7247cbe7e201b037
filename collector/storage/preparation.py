"""Make a server ready: check it, load the library, record the shards, create the groups."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ..errors import NotPreparedError, RefusedByStoreError, UnsafeStoreError
from .connection import Connection
from .keys import Keys
from .replies import parse_info
from .safety import faults

GROUP: Final = "workers"  # as in hearsay.lua
LIBRARY_VERSION: Final = 1  # as in hearsay.lua


def prepare(connection: Connection, keys: Keys, profile: str) -> None:
    """Prepare the server behind *connection*.  Repeatable.

    Raises: UnsafeStoreError, NotPreparedError.
    """
    found = faults(*_settings(connection), profile)
    if found:
        raise UnsafeStoreError(found)
    _load_library(connection)
    connection.call("SET", keys.shard_count, keys.shards, "NX")
    recorded = int(connection.call("GET", keys.shard_count))
    if recorded != keys.shards:
        raise UnsafeStoreError([f"shards={keys.shards}: the store was prepared with {recorded}"])
    for shard in range(keys.shards):
        _create_group(connection, keys.stream(shard))


def _settings(connection: Connection) -> tuple[dict[str, str], str | None]:
    """Return INFO and appendfsync; empty and None from a server that does not tell."""
    try:
        info = parse_info(connection.call("INFO"))
    except RefusedByStoreError:
        return {}, None
    try:
        reply = connection.call("CONFIG", "GET", "appendfsync")
    except RefusedByStoreError:
        return info, None
    return info, reply[1].decode() if reply else None


def _load_library(connection: Connection) -> None:
    """Load our library, unless the server has it or a later one: a late start must not undo it."""
    loaded = _loaded_version(connection)
    if loaded >= LIBRARY_VERSION:
        return
    source = files(__package__).joinpath("hearsay.lua").read_text(encoding="utf-8")
    try:
        connection.call("FUNCTION", "LOAD", "REPLACE", source)
    except RefusedByStoreError as error:  # application users may have FCALL only
        rule = f"must be {LIBRARY_VERSION}; run hearsay init with the right to FUNCTION LOAD"
        raise NotPreparedError(f"library.version={loaded}: {rule}") from error


def _loaded_version(connection: Connection) -> int:
    try:
        return int(connection.call("FCALL", "hearsay_version", 0))
    except NotPreparedError:
        return 0


def _create_group(connection: Connection, stream: str) -> None:
    try:
        connection.call("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM")
    except RefusedByStoreError as error:
        if error.code != "BUSYGROUP":
            raise
