"""Reports and uploads: the wire format, version 1, as the device writes it.

An upload is ``{v, id, sealed, segment, columns: [{metric, epoch, payloads}]}``.  In JSON, bytes are
base64url without padding; MessagePack is the same with raw bytes.  A sealed upload is immutable
bytes: a retry sends exactly these.

A device pads its JSON with spaces at the end to one of SIZE_CLASSES.  A length would tell how many
reports there are and of which metrics, and compressed, what is in them; a class tells hardly more
than that something was sent.

A gateway writes MessagePack, as far as an upload needs it: maps, lists, text, bytes and whole
numbers, each in its shortest form, so that equal values are equal bytes.

``DEVICE`` and ``GATEWAY`` bound what may wait in an outbox and what one upload takes of it.

Source: the MessagePack specification, github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from .dataclass import dataclass
from .limits import (
    MAX_DEVICE_BODY,
    MAX_GATEWAY_BODY,
    MAX_GATEWAY_PENDING,
    MAX_GATEWAY_REPORTS,
    MAX_GATEWAY_SIZE,
    MAX_PENDING_REPORTS,
    MAX_PENDING_SIZE,
    MAX_UPLOAD_REPORTS,
    SIZE_CLASSES,
    WIRE_VERSION,
)

_UNSIGNED: Final = ((1 << 8, ">BB", 0xCC), (1 << 16, ">BH", 0xCD), (1 << 32, ">BI", 0xCE))
_SIGNED: Final = ((1 << 7, ">Bb", 0xD0), (1 << 15, ">Bh", 0xD1), (1 << 31, ">Bi", 0xD2))
_TEXT: Final = ((1 << 8, ">BB", 0xD9), (1 << 16, ">BH", 0xDA), (1 << 32, ">BI", 0xDB))
_BYTES: Final = ((1 << 8, ">BB", 0xC4), (1 << 16, ">BH", 0xC5), (1 << 32, ">BI", 0xC6))
_LIST: Final = ((1 << 16, ">BH", 0xDC), (1 << 32, ">BI", 0xDD))
_MAP: Final = ((1 << 16, ">BH", 0xDE), (1 << 32, ">BI", 0xDF))

_STANDARD = str.maketrans("-_+/=", "+/***")  # the alphabet that binascii reads; * is in neither
_PADDING = ("", "===", "==", "=")  # length modulo 4 is the index; it is never 1


@dataclass(frozen=True)
class Report:
    """One payload of one metric for one epoch: all that ever leaves a device."""

    metric: bytes  # the digest
    epoch: int
    payload: bytes


class Column(NamedTuple):
    """The payloads, end to end, of one metric and epoch."""

    metric: bytes
    epoch: int
    payloads: bytes


def columns_of(reports: Iterable[Report]) -> list[Column]:
    """Group reports by metric and epoch, sorted, so that the order of recording does not show.

    Payloads within a column are sorted too: nothing but their number is left to tell.
    """
    groups: dict[tuple[bytes, int], list[bytes]] = {}
    for report in reports:
        groups.setdefault((report.metric, report.epoch), []).append(report.payload)
    return [
        Column(metric, epoch, b"".join(sorted(payloads)))
        for (metric, epoch), payloads in sorted(groups.items())
    ]


def seal(
    upload_id: bytes, sealed_day: int, segment: Mapping[str, str], columns: Iterable[Column]
) -> bytes:
    """Return an upload as JSON: ASCII, compact, the same bytes for the same arguments."""
    upload = _upload(upload_id, sealed_day, segment, columns)
    text = json.dumps(upload, separators=(",", ":"), ensure_ascii=True, default=base64url)
    return text.encode("ascii")


def seal_padded(
    upload_id: bytes, sealed_day: int, segment: Mapping[str, str], columns: Iterable[Column]
) -> bytes:
    """Return an upload as JSON, padded to the next of SIZE_CLASSES; beyond the last as it is."""
    body = seal(upload_id, sealed_day, segment, columns)
    return body.ljust(next((size for size in SIZE_CLASSES if len(body) <= size), len(body)))


def seal_binary(
    upload_id: bytes, sealed_day: int, segment: Mapping[str, str], columns: Iterable[Column]
) -> bytes:
    """Return an upload as MessagePack: for gateways, whose many payloads are a third smaller so."""
    return pack(_upload(upload_id, sealed_day, segment, columns))


def _upload(
    upload_id: bytes, sealed_day: int, segment: Mapping[str, str], columns: Iterable[Column]
) -> dict[str, object]:
    return {
        "v": WIRE_VERSION,
        "id": upload_id,
        "sealed": sealed_day,
        "segment": dict(sorted(segment.items())),
        "columns": [column._asdict() for column in columns],
    }


Seal: TypeAlias = Callable[[bytes, int, Mapping[str, str], Iterable[Column]], bytes]


@dataclass(frozen=True)
class Bounds:
    """What may wait, and how an upload is made of it."""

    reports: int  # reports that wait unsealed
    size: int  # bytes of their payloads
    slack: int  # reports that may be added before both are counted again
    upload_reports: int  # reports that one upload takes
    body: int  # bytes of an upload
    remembers: bool  # whether acknowledged reports are kept for the user to see
    apart: bool  # whether each upload goes at a time of its own, so that nothing links two
    seal: Seal


DEVICE: Final = Bounds(
    reports=MAX_PENDING_REPORTS,
    size=MAX_PENDING_SIZE,
    slack=0,
    upload_reports=MAX_UPLOAD_REPORTS,
    body=MAX_DEVICE_BODY,
    remembers=True,
    apart=True,
    seal=seal_padded,
)
GATEWAY: Final = Bounds(
    reports=MAX_GATEWAY_PENDING,
    size=MAX_GATEWAY_SIZE,
    slack=MAX_GATEWAY_PENDING // 100,  # counting a million rows takes a tenth of a second
    upload_reports=MAX_GATEWAY_REPORTS,
    body=MAX_GATEWAY_BODY,
    remembers=False,  # its columns are of many devices; there is no user to show them to
    apart=False,  # its key and segment link them anyway, and they are of no one person
    seal=seal_binary,
)


def base64url(data: bytes) -> str:
    """Return *data* as base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def is_hex(text: object, size: int) -> bool:
    """Whether *text* is *size* bytes in small hexadecimal digits."""
    return isinstance(text, str) and len(text) == 2 * size and set(text) <= set("0123456789abcdef")


def from_base64url(text: str) -> bytes:
    """Return the bytes of unpadded base64url *text*.

    Raises: ValueError: a character outside the alphabet, padding, or an impossible length.
    """
    padded = text.translate(_STANDARD) + _PADDING[len(text) % 4]
    return binascii.a2b_base64(padded, strict_mode=True)


def pack(value: object) -> bytes:
    """Return *value* as MessagePack; a mapping keeps its order.

    Raises: TypeError: of a kind that no upload holds.  ValueError: too large for the format.
    """
    parts: list[bytes] = []
    _append(value, parts)
    return b"".join(parts)


def _append(value: object, parts: list[bytes]) -> None:
    match value:
        case bool() | float() | None:
            raise TypeError(f"{type(value).__name__}: is in no upload")
        case int():
            parts.append(_integer(value))
        case str():
            text = value.encode("utf-8")
            parts += (_head(len(text), _TEXT, 0xA0, 32), text)
        case bytes():
            parts += (_head(len(value), _BYTES), value)
        case list() | tuple():
            parts.append(_head(len(value), _LIST, 0x90, 16))
            for item in value:
                _append(item, parts)
        case Mapping():
            parts.append(_head(len(value), _MAP, 0x80, 16))
            for key, item in value.items():
                _append(key, parts)
                _append(item, parts)
        case _:
            raise TypeError(f"{type(value).__name__}: is in no upload")


def _integer(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack(">b" if value < 0 else ">B", value)
    if value > 0:
        return _head(value, (*_UNSIGNED, (1 << 64, ">BQ", 0xCF)))
    for limit, form, tag in (*_SIGNED, (1 << 63, ">Bq", 0xD3)):
        if value >= -limit:
            return struct.pack(form, tag, value)
    raise ValueError("must fit 64 bits")


def _head(
    size: int, forms: tuple[tuple[int, str, int], ...], short: int = 0, below: int = 0
) -> bytes:
    """Return the first form that *size* fits: in one byte with the tag *short* if it is *below*."""
    if size < below:
        return bytes([short | size])
    for limit, form, tag in forms:
        if size < limit:
            return struct.pack(form, tag, size)
    raise ValueError("must fit the sizes of the format")
