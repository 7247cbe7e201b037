"""What a page costs: milliseconds of the server for a year of days, and bytes with its files.

Run: ``python -m benchmarks pages``.  One Redis-compatible server of this machine, filled with
tallies as folds leave them: every day, segment and shard has reports.  Times are of one request to
the application, without a network; processor time is that of this process.
"""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from flask.testing import FlaskClient

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.cells import Cell, segment_text
from collector.core.config import VOLATILE, Config
from collector.demo.embedded import PATH, WHEEL, launch
from collector.storage.connect import open_storage
from collector.storage.connection import Command, Connection
from collector.storage.keys import Keys, member_of
from collector.web import create_app

DAY: Final = 20_500  # today
NOW: Final = DAY * 86_400 + 50_000.0  # Unix time
EPOCHS: Final = 365
SHARDS: Final = 4
N: Final = 500  # reports of a cell in a shard
ROUNDS: Final = 9
PREFIX: Final = "benchmark"
TOKEN: Final = "a-token-of-this-benchmark-0123456789"  # noqa: S105  # opens nothing else
MOST_MS: Final = 300.0
MOST_BYTES: Final = 150_000
REGISTRY: Final = """
schema = 1
app = "benchmark"
[segments]
platform = ["linux", "macos", "windows"]
[metrics.theme]
title = "Theme"
question = "Which theme?"
type = "category"
mechanism = "grr"
values = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
{common}
[metrics.dark]
title = "Dark mode"
question = "Dark mode?"
type = "boolean"
mechanism = "grr"
{common}
[metrics.startup]
title = "Start-up time"
question = "How long?"
type = "duration"
mechanism = "square_wave"
min = 0
max = 5000
step = 10
unit = "ms"
{common}
"""
_COMMON: Final = """
epsilon = "2.0"
every = "1d"
longitudinal = "fresh"
segments = ["platform"]
expected_devices = 5000
min_reports = 100
owner = "benchmark"
expires = 2030-01-01
"""
PAGES: Final = (
    *("/?range=12mo", "/metric/theme?range=12mo", "/metric/dark?range=12mo"),
    *("/metric/startup?range=12mo", "/metric/theme?range=91d", "/metric/startup?range=91d"),
    *("/compare?metric=theme&range=6mo", "/ask?metric=theme&verb=trend&by=time:day&range=12mo"),
    *("/plan?metric=startup", "/privacy", "/privacy/people"),
)


def main() -> None:
    """Print milliseconds and bytes of each page beside its bars, least and median of nine."""
    with (
        tempfile.TemporaryDirectory() as folder,
        launch(None, None, kinds=(PATH, WHEEL)) as server,
    ):
        path = Path(folder) / "metrics.toml"
        path.write_text(REGISTRY.format(common=_COMMON), encoding="utf-8")
        storage = open_storage(server.url, PREFIX, shards=SHARDS, profile=VOLATILE)
        storage.prepare()
        connection = Connection.open(server.url)
        for metric in Registry.from_file(path):
            for epoch in range(DAY - EPOCHS, DAY):
                connection.call_many(list(_stored(metric, epoch)))
        settings = {"HEARSAY_REGISTRY": str(path), "HEARSAY_READ_TOKEN": TOKEN}
        client = create_app(Config.from_env(settings), storage, lambda: NOW).test_client()
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {EPOCHS} epochs\n")
        print("| page | kB | with files | ms, least | ms, median | processor ms | |")
        print("|---|---|---|---|---|---|---|")
        for page in PAGES:
            _tell(client, page)
        connection.close()


def _stored(metric: Metric, epoch: int) -> Iterator[Command]:
    names, chance = Keys(PREFIX, SHARDS), np.random.default_rng(epoch)
    cells = metric.mechanism.tally_size
    for shard, value in product(range(SHARDS), metric.segments["platform"]):
        cell = Cell(metric.digest, epoch, segment_text(metric, {"platform": value}))
        tally = chance.multinomial(N, np.full(cells, 1 / cells))
        vector = np.concatenate(([N], tally)).astype(">i8").tobytes()
        yield "SET", names.tally(shard, cell), vector
        yield "SADD", names.cells(shard, metric.digest, epoch), member_of(cell)


def _tell(client: FlaskClient, page: str) -> None:
    text = _ask(client, page)
    files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', text))
    size = len(text.encode())
    weight = size + sum(len(client.get(file, buffered=True).data) for file in files)
    walls, processor = [], []
    for _ in range(ROUNDS):
        wall, used = time.perf_counter(), time.process_time()
        _ask(client, page)
        walls.append(1e3 * (time.perf_counter() - wall))
        processor.append(1e3 * (time.process_time() - used))
    passed = statistics.median(walls) <= MOST_MS and weight <= MOST_BYTES
    print(
        f"| {page} | {size / 1e3:.0f} | {weight / 1e3:.0f} | {min(walls):.0f} |"
        f" {statistics.median(walls):.0f} | {statistics.median(processor):.0f} |"
        f" {'pass' if passed else 'FAIL'} |"
    )


def _ask(client: FlaskClient, page: str) -> str:
    response = client.get(page, headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200, response.text
    return str(response.text)
