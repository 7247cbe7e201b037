"""Whether an upload or a fold costs more with more metrics, more epochs kept, more reports stored.

Run: ``python -m benchmarks ingest_growth``; Linux only.  Costs are the least processor time of
several rounds, of the web process for an upload of ten columns, of the worker for its fold.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from benchmarks.lib import sites
from benchmarks.lib.page import show, verdict
from benchmarks.lib.registries import items, registry_text
from client_sdk.core.epoch import epoch_of
from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.entry import encode
from collector.intake.validation import judge
from collector.intake.wire import JSON, decode
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.worker import Worker

METRICS, EPOCHS, UPLOADS = 5, 3, 2_000  # at 1 ×
FACTORS: Final = (1, 10, 100)
ROUNDS: Final = 7
BATCH: Final = 256  # uploads of a round
BAR: Final = 1.25  # times the cost at 1 ×; what is equal differs by as much from round to round


class Cost(NamedTuple):
    """Microseconds an upload."""

    accept: float
    fold: float


def cost(metrics: int, epochs: int, uploads: int) -> Cost:
    """Return the cost of an upload with so many metrics, epochs of tallies, and stored uploads."""
    names = [f"m{i}" for i in range(metrics)]
    registry, some = (_registry(part) for part in (names, names[:METRICS]))
    catalog, today = Catalog([registry]), int(time.time() // 86_400)
    body = sites.device_body(some, 10, 1)
    with sites.store_and_worker(registry) as (storage, worker):
        fill(storage, registry, epochs)
        entry = encode(judge(decode(body, JSON), catalog, today).accepted)
        for _ in range(uploads // BATCH):
            storage.append_many(
                [SealedUpload(os.urandom(16), today, entry, 10) for _ in range(BATCH)]
            )
        accept = min(_accept(storage, catalog, body, today) for _ in range(ROUNDS))
        fold = min(_fold(storage, worker) for _ in range(ROUNDS))
    return Cost(accept, fold)


def _registry(names: list[str]) -> Registry:
    return Registry.from_text(registry_text(dict.fromkeys(names, items("grr", 8)), epsilon="2.0"))


def fill(storage: RedisStorage, registry: Registry, epochs: int) -> None:
    """Leave a tally of every metric in each of *epochs*."""
    now = epoch_of("1d", time.time())
    for metric in registry:
        cells = {Cell(metric.digest, now - 2 - i, ""): [(0, 1), (1, 1)] for i in range(epochs)}
        storage.append(os.urandom(16), now, b"filling", 1)
        [claimed] = storage.claim(0, "filling", 1, 0)
        storage.fold(0, [claimed.id], cells)


def _accept(storage: RedisStorage, catalog: Catalog, body: bytes, today: int) -> float:
    start = time.process_time()
    group = []
    for _ in range(BATCH):
        verdict = judge(decode(body, JSON), catalog, today)
        group.append(SealedUpload(os.urandom(16), today, encode(verdict.accepted), verdict.reports))
    storage.append_many(group)
    return (time.process_time() - start) / BATCH * 1e6


def _fold(storage: RedisStorage, worker: Worker) -> float:
    before, start = storage.backlog(), time.process_time()
    worker.step()
    spent = time.process_time() - start
    return spent / (before - storage.backlog()) * 1e6


def rows() -> Iterator[tuple[str, ...]]:
    """Measure each kind of growth."""
    start = {"metrics": METRICS, "epochs": EPOCHS, "uploads": UPLOADS}
    base = cost(**start)
    for what in start:
        for factor in FACTORS:
            size = start[what] * factor
            found = base if factor == 1 else cost(**{**start, what: size})
            met = all(grown <= BAR * first for grown, first in zip(found, base, strict=True))
            shown = f"{size:,}", f"{found.accept:.0f}", f"{found.fold:.0f}"
            yield what, *shown, verdict(None if factor == 1 else met)


def main() -> None:
    """Print the table."""
    bar = f"≤ {BAR} × the first"
    show(("what grows", "to", "µs an upload accepted", "µs folded", bar), rows())
