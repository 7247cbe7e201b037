"""What an answer costs: cold from a real store, and kept in memory.

Run: ``python -m benchmarks query``.  One Redis-compatible server of this machine, filled with
tallies as folds leave them: every epoch, segment and shard has reports.  Times are of one question
from its JSON to rows; processor time is that of this process, and the store's work is in the wait.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.config import VOLATILE, Config
from collector.demo.embedded import PATH, WHEEL, launch
from collector.query import plan, read, run
from collector.storage.connect import open_storage
from collector.storage.connection import Command, Connection
from collector.storage.keys import Keys, member_of
from collector.storage.protocols import TallyStore
from collector.storage.redis import RedisStorage
from collector.web import create_app

DAY: Final = 20_500  # today
NOW: Final = DAY * 86_400 + 50_000.0  # Unix time
SHARDS: Final = 4
N: Final = 500  # reports of a cell in a shard
ROUNDS: Final = 9
PREFIX: Final = "benchmark"
TOKEN: Final = "a-token-of-this-benchmark-0123456789"  # noqa: S105  # opens nothing else
WINDOW: Final = 60  # days of the closed window: it ends before the last class of lateness does
_METRIC: Final = """
[metrics.{name}]
title = "{name}"
question = "What does an answer cost?"
type = "category"
values = {values}
mechanism = "{mechanism}"
epsilon = "1.0"
every = "1d"
longitudinal = "fresh"
segments = {segments}
expected_devices = 50000
min_reports = 100
owner = "benchmark"
expires = 2030-01-01
"""
VERSIONS: Final = [f"v{number}" for number in range(20)]


class _Shape(NamedTuple):
    name: str
    mechanism: str
    items: int
    epochs: int
    segments: list[str]  # values of the one dimension, none for a metric without


SHAPES: Final = (
    _Shape("wide", "oue", 1_024, 90, []),
    _Shape("sliced", "oue", 100, 365, VERSIONS),
)


class _Question(NamedTuple):
    what: str
    fields: dict[str, Any]
    bar: float | None  # ms


_RANGE: Final = "12mo"
QUESTIONS: Final = (
    _Question("90 epochs × 1,024 items", {"metrics": ["wide"], "date_range": "91d"}, 20),
    _Question(
        "365 epochs × 20 segments × 100 items, added up",
        {"metrics": ["sliced"], "date_range": _RANGE},
        150,
    ),
    _Question(
        "the same, one segment",
        {
            "metrics": ["sliced"],
            "date_range": _RANGE,
            "filters": [["is", "version", ["v7"]]],
        },
        150,
    ),
    _Question(
        "the same, a row a segment and item",
        {"metrics": ["sliced"], "date_range": _RANGE, "dimensions": ["version"]},
        150,
    ),
    _Question(
        "the same, a row a month, segment and item",
        {"metrics": ["sliced"], "date_range": _RANGE, "dimensions": ["time:month", "version"]},
        None,
    ),
)
CACHED: Final = 5.0  # ms


def main() -> None:
    """Print milliseconds of each question beside its bar, least and median of nine rounds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        launch(None, None, kinds=(PATH, WHEEL)) as server,
    ):
        path = Path(folder) / "metrics.toml"
        path.write_text(_registry(), encoding="utf-8")
        catalog = Catalog([Registry.from_file(path)])
        storage = open_storage(server.url, PREFIX, shards=SHARDS, profile=VOLATILE)
        storage.prepare()
        connection = Connection.open(server.url)
        for shape in SHAPES:
            _fill(connection, catalog.metric(shape.name), shape)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        print("| question | rows | ms, least | ms, median | processor ms | bar | |")
        print("|---|---|---|---|---|---|---|")
        for question in QUESTIONS:
            _cold(question, catalog, storage)
        _kept(path, storage)
        connection.close()


def _registry() -> str:
    metrics = (
        _METRIC.format(
            name=shape.name,
            mechanism=shape.mechanism,
            values=json.dumps([f"i{number}" for number in range(shape.items)]),
            segments=json.dumps(["version"] if shape.segments else []),
        )
        for shape in SHAPES
    )
    dimension = f"version = {json.dumps(VERSIONS)}"
    return f'schema = 1\napp = "benchmark"\n[segments]\n{dimension}\n{"".join(metrics)}'


def _fill(connection: Connection, metric: Metric, shape: _Shape) -> None:
    """Store a tally and its place in the index for each epoch, segment and shard."""
    for epoch in range(DAY - shape.epochs, DAY):
        connection.call_many(list(_stored(metric, shape, epoch)))


def _stored(metric: Metric, shape: _Shape, epoch: int) -> Iterator[Command]:
    names, chance = Keys(PREFIX, SHARDS), np.random.default_rng(epoch)
    for shard, value in product(range(SHARDS), shape.segments or [""]):
        segment = segment_text(metric, {"version": value} if value else {})
        cell = Cell(metric.digest, epoch, segment)
        tally = chance.binomial(N, 0.3, metric.mechanism.tally_size)
        vector = np.concatenate(([N], tally)).astype(">i8").tobytes()
        yield "SET", names.tally(shard, cell), vector
        yield "SADD", names.cells(shard, metric.digest, epoch), member_of(cell)


def _cold(question: _Question, catalog: Catalog, storage: TallyStore) -> None:
    body = json.dumps({**question.fields, "pagination": {"limit": 10_000}}).encode()
    _tell(
        question.what,
        question.bar,
        lambda: len(run(plan(read(body), catalog, NOW), storage).rows),
    )


def _kept(path: Path, storage: RedisStorage) -> None:
    """Ask the web application of a window that is closed, once and then again."""
    settings = {"HEARSAY_REGISTRY": str(path), "HEARSAY_READ_TOKEN": TOKEN}
    client = create_app(Config.from_env(settings), storage, lambda: NOW).test_client()
    last = np.datetime64("1970-01-01") + DAY - WINDOW
    for what, dimensions in (("100 rows", []), ("2,000 rows", ["version"])):
        question = {
            "metrics": ["sliced"],
            "date_range": [str(last - 250), str(last)],
            "dimensions": dimensions,
            "pagination": {"limit": 10_000},
        }

        def ask(question: dict[str, Any] = question) -> int:
            found = client.post(
                "/v1/query", json=question, headers={"Authorization": f"Bearer {TOKEN}"}
            )
            assert found.status_code == 200, found.text
            assert "ETag" in found.headers
            return found.text.count('"dimensions":{')

        ask()
        _tell(f"a closed window asked again by HTTP, {what}", CACHED, ask)


def _tell(what: str, bar: float | None, ask: Callable[[], int]) -> None:
    rows = ask()
    walls, processor = [], []
    for _ in range(ROUNDS):
        wall, used = time.perf_counter(), time.process_time()
        ask()
        walls.append(1e3 * (time.perf_counter() - wall))
        processor.append(1e3 * (time.process_time() - used))
    least, median = min(walls), statistics.median(walls)
    wanted = "" if bar is None else f"≤ {bar:g} ms"
    verdict = "" if bar is None else "pass" if median <= bar else "FAIL"
    print(
        f"| {what} | {rows:,} | {least:.1f} | {median:.1f} | {statistics.median(processor):.1f}"
        f" | {wanted} | {verdict} |"
    )
