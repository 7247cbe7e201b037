"""How much may wait in an outbox, and how much of it one upload takes: devices and gateways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

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
)
from .report import Column, seal_binary, seal_padded

Seal: TypeAlias = Callable[[bytes, int, Mapping[str, str], Iterable[Column]], bytes]


@dataclass(frozen=True)
class Bounds:
    """What may wait, and how an upload is made of it."""

    reports: int  # that wait unsealed
    size: int  # bytes of their payloads
    slack: int  # reports that may be added before both are counted again
    upload_reports: int  # that one upload takes
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
