"""Uploads whose every report can be found again: an item of its own for each of them.

An upload holds one report to ``unique``, in a cell that no other upload ever counts in, and two to
random ones of the other metrics.  So a 2 in a cell of ``unique`` is an upload counted twice.
"""

from __future__ import annotations

import random
import time
from typing import Final

from client_sdk.core.epoch import HOUR, day_of
from client_sdk.registry import Registry
from client_sdk.wire.reports import Column
from tests.support.crowds.uploads import as_json, upload

METRICS: Final = 19  # beside ``unique``
ITEMS: Final = 4_096  # of ``unique``
UNIQUE: Final = "unique"
MOST: Final = ITEMS * 13 * 24  # uploads of one run: the hours of 13 days, all accepted today

_HEAD: Final = 'schema = 1\napp = "faults"\n'
_METRIC: Final = """
[metrics.{name}]
title = "A metric"
question = "What do we decide by it?"
{kind}
mechanism = "grr"
epsilon = "1.0"
every = "1h"
longitudinal = "fresh"
owner = "tests"
expected_devices = 10000
min_reports = 100
expires = 2999-12-31
"""
_ITEMS: Final = ", ".join(f'"item {item}"' for item in range(ITEMS))


def registry_text(*more: str) -> str:
    """Return the registry of all uploads here, with boolean metrics named *more*."""
    names = [f"m{number}" for number in range(METRICS)] + list(more)
    tables = [_METRIC.format(name=name, kind='type = "boolean"') for name in names]
    unique = _METRIC.format(name=UNIQUE, kind=f'type = "category"\nvalues = [{_ITEMS}]')
    return _HEAD + "".join([*tables, unique])


REGISTRY: Final = Registry.from_text(registry_text())


def upload_of(
    serial: int, chance: random.Random, registry: Registry = REGISTRY, now: float | None = None
) -> tuple[bytes, bytes]:
    """Return id and JSON body of the upload that is number *serial* of a run.

    Args: now: Unix time of the device that seals it.
    """
    assert serial < MOST
    now = time.time() if now is None else now
    hour = int(now // HOUR)
    unique = registry.metrics[UNIQUE]
    payload = (serial % ITEMS).to_bytes(unique.mechanism.payload_size, "big")
    columns = [Column(unique.digest, hour - 1 - serial // ITEMS, payload)]
    others = [metric for metric in registry if metric.name != UNIQUE]
    for metric in chance.sample(others, 2):
        columns.append(Column(metric.digest, hour, bytes([chance.randrange(2)])))
    upload_id = chance.randbytes(16)
    return upload_id, as_json(upload(columns, upload_id=upload_id, sealed=day_of(now)))
