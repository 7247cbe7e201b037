"""Reports and uploads: the wire format, version 1, as the device writes it.

An upload is ``{v, id, sealed, segment, columns: [{metric, epoch, payloads}]}``.  In JSON, bytes are
base64url without padding; MessagePack is the same with raw bytes.  A sealed upload is immutable
bytes: a retry sends exactly these.

A device pads its JSON with spaces at the end to one of SIZE_CLASSES.  A length would reveal how
many reports there are and their metrics, and compressed, their content; a class reveals hardly
more than that something was sent.

A gateway writes MessagePack, as far as an upload needs it: maps, lists, text, bytes and whole
numbers, each in its shortest form, so that equal values are equal bytes.

``DEVICE``, ``RELAYED`` and ``GATEWAY`` bound what may wait in an outbox and what one upload takes
of it.

Source: the MessagePack specification, github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..core import compact_json
from ..core.base64url import base64url
from ..core.dataclass import dataclass, replace
from ..core.limits import (
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
from ..core.typing import Final, NamedTuple, TypeAlias

# of each kind of value: the bytes of a number behind its tag, and the tag
_UNSIGNED: Final = ((1, 0xCC), (2, 0xCD), (4, 0xCE), (8, 0xCF))
_SIGNED: Final = ((1, 0xD0), (2, 0xD1), (4, 0xD2), (8, 0xD3))
_TEXT: Final = ((1, 0xD9), (2, 0xDA), (4, 0xDB))
_BYTES: Final = ((1, 0xC4), (2, 0xC5), (4, 0xC6))
_LIST: Final = ((2, 0xDC), (4, 0xDD))
_MAP: Final = ((2, 0xDE), (4, 0xDF))


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

    Payloads within a column are sorted too: only their number is left to see.
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
    return compact_json.dumps(upload, default=base64url).encode("ascii")


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
# Over a relay two reports of one upload would still be known to be of one device.
RELAYED: Final = replace(DEVICE, upload_reports=1)
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
        return bytes([value & 0xFF])
    if value > 0:
        return _head(value, _UNSIGNED)
    for size, tag in _SIGNED:
        if value >= -(1 << (8 * size - 1)):
            return bytes([tag]) + value.to_bytes(size, "big", signed=True)
    raise ValueError("must fit 64 bits")


def _head(number: int, forms: tuple[tuple[int, int], ...], short: int = 0, below: int = 0) -> bytes:
    """Return the first form that *number* fits: one byte with the tag *short* if it is *below*."""
    if number < below:
        return bytes([short | number])
    for size, tag in forms:
        if number < 1 << (8 * size):
            return bytes([tag]) + number.to_bytes(size, "big")
    raise ValueError("must fit the sizes of the format")
