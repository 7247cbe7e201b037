"""What one stream entry holds: the accepted columns of one upload, framed and checked.

Layout: one version byte, CRC-32 of the body (4 bytes, big-endian), body.  The body is MessagePack:
a list of [digest, epoch, segment, payloads].  The checksum is here because the store's own log has
none a record: a flipped bit inside a payload would otherwise be counted.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from client_sdk.core.limits import DIGEST_SIZE

from .cells import Cell
from .errors import CorruptEntryError

Row: TypeAlias = msgspec.Raw | tuple[bytes, int, str, bytes]

ENTRY_VERSION: Final = 1
_CRC_SIZE: Final = 4  # bytes
_HEADER_SIZE: Final = 1 + _CRC_SIZE  # bytes


class AcceptedColumn(NamedTuple):
    """The accepted payloads, end to end, of one cell."""

    cell: Cell
    payloads: bytes


def row_of(column: AcceptedColumn) -> Row:
    """Return *column* as a row of a stream entry; packed if it is short, as it may come again."""
    (metric, epoch, segment, _), payloads = column
    row = metric, epoch, segment, payloads
    return msgspec.Raw(msgspec.msgpack.encode(row)) if len(payloads) == 1 else row


def frame(rows: Sequence[Row]) -> bytes:
    """Return the stream entry of these *rows*."""
    body = msgspec.msgpack.encode(rows)
    return b"".join((bytes([ENTRY_VERSION]), _checksum(body), body))


def encode(columns: Sequence[AcceptedColumn]) -> bytes:
    """Return the stream entry for *columns*."""
    return frame([row_of(column) for column in columns])


def decode(entry: bytes) -> list[AcceptedColumn]:
    """Return the columns of a stream entry.

    Raises: CorruptEntryError: another version, a wrong checksum, or another form.
    """
    if len(entry) < _HEADER_SIZE:
        raise CorruptEntryError("entry: is shorter than its header")
    if entry[0] != ENTRY_VERSION:
        raise CorruptEntryError(f"entry.version={entry[0]}: must be {ENTRY_VERSION}")
    body = memoryview(entry)[_HEADER_SIZE:]
    if entry[1:_HEADER_SIZE] != _checksum(body):
        raise CorruptEntryError("entry.checksum: does not match the body")
    try:
        rows = msgspec.msgpack.decode(body, type=list[tuple[bytes, int, str, bytes]])
    except msgspec.MsgspecError as error:
        raise CorruptEntryError("entry.body: is not a list of columns") from error
    if any(len(metric) != DIGEST_SIZE for metric, _, _, _ in rows):
        raise CorruptEntryError(f"entry.metric: must be {DIGEST_SIZE} bytes")
    return [
        AcceptedColumn(Cell(metric, epoch, segment), data) for metric, epoch, segment, data in rows
    ]


def _checksum(body: bytes | memoryview) -> bytes:
    return zlib.crc32(body).to_bytes(_CRC_SIZE, "big")
