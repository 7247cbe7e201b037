"""What an answer costs, cold from a real store and kept in memory.

Run: ``python -m benchmarks query``.  One Redis-compatible server of this machine for each table,
filled with tallies as folds leave them: every epoch, segment and shard has reports.  Times are of
one question from its JSON to rows, without a network; processor time is that of this process, and
the store's work is in the wait.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
from flask.testing import FlaskClient

from benchmarks.lib.page import head, row, verdict
from benchmarks.lib.registries import items, registry_text
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
from collector.storage.redis import RedisStorage
from collector.web import create_app

DAY: Final = 20_500  # today
NOW: Final = DAY * 86_400 + 50_000.0  # Unix time
SHARDS: Final = 4
N: Final = 500  # reports of a cell in a shard
ROUNDS: Final = 9
PREFIX: Final = "benchmark"
TOKEN: Final = "a-token-of-this-benchmark-0123456789"  # noqa: S105  # opens nothing else
BEARER: Final = {"Authorization": f"Bearer {TOKEN}"}
WINDOW: Final = 60  # days of the closed window: it ends before the last class of lateness does
CACHED: Final = 5.0  # ms
_SEGMENTS: Final = f"""
[segments]
version = {json.dumps([f"v{number}" for number in range(20)])}
platform = ["linux", "macos", "windows"]
"""


class Shape(NamedTuple):
    """A metric, how many epochs of it are stored, and its one dimension."""

    name: str
    kind: str
    epochs: int
    dimension: str = "platform"

    @property
    def own(self) -> str:
        """The metric's own keys in a registry."""
        return f"{self.kind}\nsegments = {json.dumps([self.dimension] if self.dimension else [])}"


SHAPES: Final = (
    Shape("wide", items("oue", 1_024), 90, ""),
    Shape("sliced", items("oue", 100), 365, "version"),
)
_SLICED: Final = {"metrics": ["sliced"], "date_range": "12mo"}
QUESTIONS: Final[tuple[tuple[str, dict[str, Any], float | None], ...]] = (  # and bars in ms
    ("90 epochs × 1,024 items", {"metrics": ["wide"], "date_range": "91d"}, 20),
    ("365 epochs × 20 segments × 100 items, added up", _SLICED, 150),
    ("the same, one segment", {**_SLICED, "filters": [["is", "version", ["v7"]]]}, 150),
    ("the same, a row a segment and item", {**_SLICED, "dimensions": ["version"]}, 150),
    (
        "the same, a row a month, segment and item",
        {**_SLICED, "dimensions": ["time:month", "version"]},
        None,
    ),
)


def main() -> None:
    """Print milliseconds of each question beside its bar, least and median of nine."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print(head("question", "rows", "ms, least", "ms, median", "processor ms", "bar", ""))
    with filled(SHAPES) as (catalog, storage, client):
        for what, fields, bar in QUESTIONS:
            body = json.dumps({**fields, "pagination": {"limit": 10_000}}).encode()

            def cold(body: bytes = body) -> int:
                return len(run(plan(read(body), catalog, NOW), storage).rows)

            _question(what, bar, cold)
        _kept(client)


@contextmanager
def filled(shapes: tuple[Shape, ...]) -> Iterator[tuple[Catalog, RedisStorage, FlaskClient]]:
    """Run a server with tallies of *shapes*; yield what answers from them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        launch(None, None, kinds=(PATH, WHEEL)) as server,
    ):
        path = Path(folder) / "metrics.toml"
        text = registry_text({shape.name: shape.own for shape in shapes}, _SEGMENTS)
        path.write_text(text, encoding="utf-8")
        catalog = Catalog([Registry.from_file(path)])
        storage = open_storage(server.url, PREFIX, shards=SHARDS, profile=VOLATILE)
        storage.prepare()
        connection = Connection.open(server.url)
        for shape in shapes:
            for epoch in range(DAY - shape.epochs, DAY):
                connection.call_many(list(_stored(catalog.metric(shape.name), epoch)))
        connection.close()
        settings = {"HEARSAY_REGISTRY": str(path), "HEARSAY_READ_TOKEN": TOKEN}
        app = create_app(Config.from_env(settings), storage, lambda: NOW)
        yield catalog, storage, app.test_client()


def _stored(metric: Metric, epoch: int) -> Iterator[Command]:
    """Yield a tally and its place in the index for each segment and shard."""
    names, chance = Keys(PREFIX, SHARDS), np.random.default_rng(epoch)
    cells = metric.mechanism.tally_size
    segments: list[Mapping[str, str]] = [
        {name: value} for name, values in metric.segments.items() for value in values
    ]
    for shard, segment in product(range(SHARDS), segments or [{}]):
        cell = Cell(metric.digest, epoch, segment_text(metric, segment))
        if metric.mechanism.name == "oue":
            tally = chance.binomial(N, 0.3, cells)
        else:
            tally = chance.multinomial(N, np.full(cells, 1 / cells))
        vector = np.concatenate(([N], tally)).astype(">i8").tobytes()
        yield "SET", names.tally(shard, cell), vector
        yield "SADD", names.cells(shard, metric.digest, epoch), member_of(cell)


def _kept(client: FlaskClient) -> None:
    """Ask the web application of a window that is closed, once and then again."""
    last = np.datetime64("1970-01-01") + DAY - WINDOW
    for what, dimensions in (("100 rows", []), ("2,000 rows", ["version"])):
        question = {
            "metrics": ["sliced"],
            "date_range": [str(last - 250), str(last)],
            "dimensions": dimensions,
            "pagination": {"limit": 10_000},
        }

        def again(question: dict[str, Any] = question) -> int:
            answer = client.post("/v1/query", json=question, headers=BEARER)
            assert answer.status_code == 200, answer.text
            assert "ETag" in answer.headers
            return answer.text.count('"dimensions":{')

        again()
        _question(f"a closed window asked again by HTTP, {what}", CACHED, again)


def _question(what: str, bar: float | None, action: Callable[[], int]) -> None:
    rows = action()
    walls, processor = timed(action)
    middle = median(walls)
    wanted, met = ("", None) if bar is None else (f"≤ {bar:g} ms", middle <= bar)
    times = (f"{number:.1f}" for number in (min(walls), middle, processor))
    print(row(what, f"{rows:,}", *times, wanted, verdict(met)), flush=True)


def timed(action: Callable[[], object]) -> tuple[list[float], float]:
    """Return milliseconds of each round of *action*, and the median of its processor time."""
    walls, processor = [], []
    for _ in range(ROUNDS):
        wall, used = time.perf_counter(), time.process_time()
        action()
        walls.append(1e3 * (time.perf_counter() - wall))
        processor.append(1e3 * (time.process_time() - used))
    return walls, median(processor)
