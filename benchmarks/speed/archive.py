"""What an archive costs: folding with and without one, writing files, folding them again.

Run: ``python -m benchmarks archive``.  One server, one worker, one process that writes, and Dask's
threads of this process.  Folds with and without an archive take turns in one run, on one store.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.lib.page import table
from client_sdk.core.epoch import ONCE
from client_sdk.mechanisms import load
from collector.core.cells import Cell
from collector.core.config import STANDARD
from collector.core.entry import AcceptedColumn, encode
from collector.demo.embedded import PATH, WHEEL, launch
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.archive.dask import refold
from collector.worker.archive.drain import drain
from collector.worker.archive.files import Folder
from collector.worker.worker import Worker

METRIC: Final = b"\x01" * 6
CELL: Final = Cell(METRIC, 0, "")
MECHANISM: Final = load("grr")("1", 1024)
SEALED: Final = 30_000  # in 2052: no id is forgotten meanwhile
ROUNDS: Final = 4  # with an archive, and as many without


class _Load(NamedTuple):
    name: str
    uploads: int
    reports: int  # an upload


LOADS: Final = (_Load("gateways", 24, 400_000), _Load("devices", 2_500, 10))


def main() -> None:
    """Print seconds and kB a million reports (GRR, k = 1,024), of gateways and of devices."""
    measured = [_measured(load) for load in LOADS]
    rows = ((name, *(f"{one[name]:,.2f}" for one in measured)) for name in measured[0])
    print(table(("what", "of gateways", "of devices"), rows))


def _measured(load: _Load) -> dict[str, float]:
    """Return what a table's column holds, by row."""
    with (
        launch(None, None, kinds=(PATH, WHEEL)) as server,
        tempfile.TemporaryDirectory() as place,
    ):
        connection, keys = Connection.open(server.url), Keys("benchmark", 2)
        stores = [RedisStorage(connection, keys, STANDARD, archived=on) for on in (False, True)]
        stores[0].prepare()
        seconds = [0.0, 0.0]
        for round_ in range(2 * ROUNDS):
            _append(stores[0], load)
            seconds[round_ % 2] += _timed(partial(_fold, stores[round_ % 2]))
        queue, folder = RedisArchiveQueue(connection, keys), Folder(Path(place))
        held = {METRIC: MECHANISM}
        writing = _timed(lambda: drain(queue, folder, held, lambda: None))
        files = [file.path for file in folder.files()]
        reading = _timed(lambda: refold(files, held, None, 1))
        size = sum(path.stat().st_size for path in files)
        connection.close()
    reports = ROUNDS * load.uploads * load.reports
    return {
        "fold without an archive, s a million reports": 1e6 * seconds[0] / reports,
        "fold with an archive": 1e6 * seconds[1] / reports,
        "write to files": 1e6 * writing / reports,
        "refold on one thread": 1e6 * reading / reports,
        "kB a million reports in the files": 1e3 * size / reports,
    }


def _append(store: RedisStorage, load: _Load) -> None:
    for _ in range(load.uploads):
        raw = secrets.token_bytes(2 * load.reports)
        payloads = bytes(byte & 3 if place % 2 == 0 else byte for place, byte in enumerate(raw))
        entry = encode([AcceptedColumn(CELL, payloads)])
        store.append_many([SealedUpload(secrets.token_bytes(16), SEALED, entry, load.reports)])


def _fold(store: RedisStorage) -> None:
    worker = Worker(store, {METRIC: MECHANISM}, {METRIC: ONCE})
    while store.backlog():
        worker.step()


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
