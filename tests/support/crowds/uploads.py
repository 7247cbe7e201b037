"""A small registry, its uploads and its days, shared by tests of the collector."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import msgspec

from client_sdk.core.base64url import base64url
from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.wire.reports import Column
from collector.core.cells import UNKNOWN, Cell, Source, key_source, segment_text
from collector.core.credentials import digest_of, id_of

TODAY = (date(2026, 3, 4) - date(1970, 1, 1)).days  # a Wednesday
NOON = TODAY * DAY + DAY / 2  # Unix time
UPLOAD_ID = bytes(range(16))
WRITE_KEY, GATEWAY_KEY, READ_TOKEN, ADMIN_TOKEN = (
    f"{name}-for-tests-0123456789" for name in ("device", "gateway", "read", "admin")
)

REGISTRY = """
schema = 1
app = "test"

[segments]
platform = ["linux", "mac"]
channel = ["beta", "stable"]

[metrics.page]
title = "Page"
question = "Which page comes first?"
type = "category"
values = ["home", "news", "shop"]
segments = ["platform"]
every = "1d"
{common}

[metrics.opted_in]
title = "Opted in"
question = "How many opted in?"
type = "boolean"
every = "once"
{common}

[metrics.crashed]
title = "Crashed"
question = "Did it crash this hour?"
type = "boolean"
every = "1h"
{common}

[metrics.theme]
title = "Theme"
question = "Which theme this week?"
type = "category"
values = ["light", "dark"]
every = "7d"
{common}

[metrics.age]
title = "Age"
question = "How old are people?"
type = "number"
mechanism = "discrete_laplace"
robust = false
min = 10
max = 90
step = 0.5
unit = "years"
every = "1d"
{common}
"""

COMMON = """
epsilon = "{epsilon}"
longitudinal = "fresh"
expected_devices = 10000
min_reports = {min_reports}
owner = "tests"
expires = {expires}
"""


def registry_text(epsilon: str = "1.0", min_reports: int = 100, expires: str = "2027-12-31") -> str:
    common = COMMON.format(epsilon=epsilon, min_reports=min_reports, expires=expires)
    return REGISTRY.format(common=common)


def registry(epsilon: str = "1.0", min_reports: int = 100, expires: str = "2027-12-31") -> Registry:
    return Registry.from_text(registry_text(epsilon, min_reports, expires))


def epoch_today(metric: Metric) -> int:
    """Return the epoch of *metric* at NOON."""
    return epoch_of(metric.every, NOON)


def upload(
    columns: Iterable[Column],
    *,
    upload_id: bytes = UPLOAD_ID,
    sealed: int = TODAY,
    segment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return an upload as JSON has it, before it is text; tests bend it."""
    return {
        "v": 1,
        "id": base64url(upload_id),
        "sealed": sealed,
        "segment": dict(segment or {}),
        "columns": [
            {
                "metric": base64url(column.metric),
                "epoch": column.epoch,
                "payloads": base64url(column.payloads),
            }
            for column in columns
        ],
    }


def as_json(table: object) -> bytes:
    return json.dumps(table).encode()


def as_msgpack(columns: Iterable[Column], *, upload_id: bytes = UPLOAD_ID, **more: object) -> bytes:
    """Return the MessagePack body of an upload; *more* adds or replaces fields."""
    rows = [{"metric": c.metric, "epoch": c.epoch, "payloads": c.payloads} for c in columns]
    table = {"v": 1, "id": upload_id, "sealed": TODAY, "columns": rows, **more}
    return msgspec.msgpack.encode(table)


def bearer(secret: str) -> dict[str, str]:
    """Return the header that carries a key or token."""
    return {"Authorization": f"Bearer {secret}"}


def cell_under(
    key: str, metric: Metric, epoch: int, segment: Mapping[str, str] | None = None
) -> Cell:
    """Return where a report that comes under *key* is counted."""
    source = key_source(id_of(digest_of(key)))
    return Cell(metric.digest, epoch, segment_text(metric, segment or {}, source))


def facts_of(source: Source) -> Source:
    """Return what a *source* says beside the key."""
    return UNKNOWN | {fact for fact in source if not fact.startswith("key:")}
