"""Ranges far apart are of other devices: noise that each repeats counts once, and not every day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.epoch import DAY
from collector.analytics.rows import Row
from collector.core.cells import Cell
from collector.query import Query, plan, run
from tests.support.device.registries import BOOLEAN
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.stored import queue_one
from tests.support.store.watched import NEWEST, NOON, catalog_of

DAYS: Final = 28
DEVICES: Final = 1_000
ROUNDS: Final = 40
# A right interval of 95 % misses 2 of 40 on average, and 15 with a chance below 1e-9.
MOST_MISSED: Final = 14


def day(number: int) -> str:
    return datetime.fromtimestamp(number * DAY, UTC).date().isoformat()


def difference(back: int, seed: int) -> Row:
    """Return what is said of two stretches without a change, of devices that answer once."""
    catalog = catalog_of(form={**BOOLEAN, "longitudinal": '"permanent"'})
    metric, storage = catalog.metric("m"), MemoryStorage()
    mechanism: Any = metric.mechanism
    draw, held = np.random.default_rng(seed), DEVICES // 2
    for last in (NEWEST, NEWEST - back):
        p, q = float(mechanism.channel.p), float(mechanism.channel.q)
        true = int(draw.binomial(held, p) + draw.binomial(DEVICES - held, q))
        for epoch in range(last - DAYS + 1, last + 1):
            shard, entry = queue_one(storage)
            tally = (DEVICES, DEVICES - true, true)
            storage.fold(shard, [entry], {Cell(metric.digest, epoch, ""): list(enumerate(tally))})
    query = Query(
        metrics=["m"],
        verb="compare",
        date_range=(day(NEWEST - DAYS + 1), day(NEWEST)),
        against=(day(NEWEST - back - DAYS + 1), day(NEWEST - back)),
        options={"population": "reported"},
    )
    (row,) = run(plan(query, catalog, NOON), storage).rows
    return row


def missed(back: int) -> int:
    rows = [difference(back, seed) for seed in range(ROUNDS)]
    return sum(not (row.ci_low or 0.0) <= 0 <= (row.ci_high or 0.0) for row in rows)


@pytest.mark.parametrize("back", [3 * DAYS, 365])
def test_intervals_hold_where_the_devices_of_an_earlier_range_are_others(back: int) -> None:
    assert missed(back) <= MOST_MISSED


def test_intervals_of_the_same_devices_would_not() -> None:
    """The planted fault is what holds for ranges side by side, where noise cancels out."""
    assert missed(DAYS) > MOST_MISSED
