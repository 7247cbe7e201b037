"""Reports and uploads: the wire format, version 1, as the device writes it.

An upload is ``{v, id, sealed, segment, columns: [{metric, epoch, payloads}]}``.  In JSON, bytes are
base64url without padding.  A sealed upload is immutable bytes: a retry sends exactly these.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .limits import WIRE_VERSION


@dataclass(frozen=True)
class Report:
    """One payload of one metric for one epoch: all that ever leaves a device."""

    metric: bytes  # the digest
    epoch: int
    payload: bytes


@dataclass(frozen=True)
class Column:
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


def base64url(data: bytes) -> str:
    """Return *data* as base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes:
    """Return the bytes of unpadded base64url *text*.

    Raises: ValueError: a character outside the alphabet, padding, or an impossible length.
    """
    if not text.isascii() or "=" in text or "+" in text or "/" in text:
        raise ValueError("must be base64url without padding")
    padded = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
    return base64.b64decode(padded, validate=True)
