"""Reports and uploads: the wire format, version 1, as the device writes it.

An upload is ``{v, id, sealed, segment, columns: [{metric, epoch, payloads}]}``.  In JSON, bytes are
base64url without padding; MessagePack is the same with raw bytes.  A sealed upload is immutable
bytes: a retry sends exactly these.

A device pads its JSON with spaces at the end to one of SIZE_CLASSES.  A length would tell how many
reports there are and of which metrics, and compressed, what is in them; a class tells hardly more
than that something was sent.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .dataclass import dataclass
from .limits import SIZE_CLASSES, WIRE_VERSION
from .messagepack import pack

_STANDARD = str.maketrans("-_+/=", "+/***")  # to the alphabet that binascii reads; * is in neither
_PADDING = ("", "===", "==", "=")  # by length modulo 4; no length leaves 1


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
    upload = {
        "v": WIRE_VERSION,
        "id": base64url(upload_id),
        "sealed": sealed_day,
        "segment": dict(sorted(segment.items())),
        "columns": [
            {
                "metric": base64url(column.metric),
                "epoch": column.epoch,
                "payloads": base64url(column.payloads),
            }
            for column in columns
        ],
    }
    return json.dumps(upload, separators=(",", ":"), ensure_ascii=True).encode("ascii")


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
    upload = {
        "v": WIRE_VERSION,
        "id": upload_id,
        "sealed": sealed_day,
        "segment": dict(sorted(segment.items())),
        "columns": [
            {"metric": column.metric, "epoch": column.epoch, "payloads": column.payloads}
            for column in columns
        ],
    }
    return pack(upload)


def base64url(data: bytes) -> str:
    """Return *data* as base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes:
    """Return the bytes of unpadded base64url *text*.

    Raises: ValueError: a character outside the alphabet, padding, or an impossible length.
    """
    padded = text.translate(_STANDARD) + _PADDING[len(text) % 4]
    return binascii.a2b_base64(padded, strict_mode=True)
