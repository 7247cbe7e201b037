"""Collectors that run for a benchmark: a real store, and what takes uploads for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from client_sdk.core.epoch import day_of, epoch_of
from client_sdk.core.randomness import system_randomness
from client_sdk.core.wire import Column, seal_binary, seal_padded
from client_sdk.registry import Registry
from collector.demo.children import free_port
from collector.demo.embedded import PATH, WHEEL, launch
from collector.storage.connect import open_storage
from collector.storage.redis import RedisStorage
from collector.worker.worker import Worker
from tests.support.store.processes import descendants

WRITE_KEY, GATEWAY_KEY, READ_TOKEN = (
    f"{n}-secret-of-a-benchmark" for n in ("write", "gate", "read")
)
NO_ID: Final = bytes(16)
_PATIENCE: Final = 30.0  # seconds for a start
_METRIC: Final = """
[metrics.{name}]
title = "{name}"
question = "What does a report cost?"
type = "category"
values = [{values}]
epsilon = "2.0"
longitudinal = "fresh"
mechanism = "{mechanism}"
every = "1d"
expected_devices = 1000000
min_reports = 1000
owner = "benchmarks"
expires = 2999-12-31
"""


class Site:
    """A web process or several, on their own store."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, redis_url: str) -> None:
        self.process, self.port, self.redis_url = process, port, redis_url

    def cpu(self) -> float:
        """Return the seconds of processor that the web processes have had."""
        return sum(_cpu(pid) for pid in {self.process.pid, *descendants(self.process.pid)})


def registry_text(metrics: dict[str, tuple[str, int]]) -> str:
    """Return a registry of *metrics*, each name with its mechanism and domain size."""
    parts = ['schema = 1\napp = "benchmark"\n']
    for name, (mechanism, size) in metrics.items():
        values = ", ".join(f'"v{i}"' for i in range(size))
        parts.append(_METRIC.format(name=name, mechanism=mechanism, values=values))
    return "".join(parts)


def device_body(registry: Registry, columns: int, reports: int) -> bytes:
    """Return an upload as a device seals it: *columns* of *reports* each, of the last two days."""
    metrics, now = list(registry), time.time()
    made = [
        Column(
            metrics[i % len(metrics)].digest,
            epoch_of("1d", now) - i // len(metrics) % 2,
            bytes(metrics[i % len(metrics)].mechanism.payload_size * reports),
        )
        for i in range(columns)
    ]
    return seal_padded(NO_ID, day_of(now), {}, made)


def gateway_body(registry: Registry, name: str, size: int) -> tuple[bytes, int]:
    """Return an upload of one column of about *size* bytes, drawn, and its number of reports."""
    metric, now = registry.metric(name), time.time()
    draw, randomness = metric.mechanism.randomize, system_randomness()
    some = b"".join(draw(i % 100, randomness) for i in range(2_000))
    many = some * (size // len(some))
    column = Column(metric.digest, epoch_of("1d", now), many)
    return seal_binary(NO_ID, day_of(now), {}, [column]), len(many) // metric.mechanism.payload_size


@contextmanager
def hearsay(registry: str, workers: int = 1, **settings: str) -> Iterator[Site]:
    """Run ``hearsay serve`` for a registry file's text on a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.toml"
        path.write_text(registry, encoding="utf-8")
        environment = {
            "HEARSAY_REGISTRY": str(path),
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "HEARSAY_GATEWAY_KEY": GATEWAY_KEY,
            "HEARSAY_READ_TOKEN": READ_TOKEN,
            "HEARSAY_KEY_RATE": "1000000",
            **settings,
        }
        command = [sys.executable, "-m", "collector", "serve", "--workers", str(workers)]
        with _running(command, environment, folder) as site:
            yield site


@contextmanager
def store_and_worker(
    registry: Registry, *, shards: int = 1
) -> Iterator[tuple[RedisStorage, Worker]]:
    """Run a store of its own and a worker in this process."""
    with tempfile.TemporaryDirectory() as folder, launch(None, Path(folder), (PATH, WHEEL)) as run:
        storage = open_storage(run.url, "bench", shards, "standard")
        storage.prepare()
        mechanisms = {metric.digest: metric.mechanism for metric in registry}
        every = {metric.digest: metric.every for metric in registry}
        yield storage, Worker(storage, mechanisms, every)


@contextmanager
def obvious(workers: int = 1) -> Iterator[Site]:
    """Run the obvious collector on a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gunicorn", "--log-level", "error", "--workers"]
        command += [str(workers), "benchmarks.lib.obvious:app", "--bind"]
        with _running(command, {}, folder) as site:
            yield site


@contextmanager
def floor() -> Iterator[Site]:
    """Run a server that does nothing but HTTP."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "granian", "--interface", "rsgi", "--no-ws", "--http", "1"]
        command += ["--log-level", "error", "benchmarks.lib.bare:app", "--port"]
        with _running(command, {}, folder) as site:
            yield site


@contextmanager
def _running(command: list[str], environment: dict[str, str], folder: str) -> Iterator[Site]:
    data = Path(folder) / "store"
    data.mkdir()
    with launch(None, data, kinds=(PATH, WHEEL)) as store:
        port = free_port(0)
        if command[-1] in ("--bind", "--port"):
            command = [*command, f"127.0.0.1:{port}" if command[-1] == "--bind" else str(port)]
        ours = {"REDIS_URL": store.url, "HEARSAY_PORT": str(port), **environment}
        process = subprocess.Popen(command, env={**os.environ, **ours})
        try:
            _wait(process, port)
            yield Site(process, port, store.url)
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=2).close()
        except urllib.error.HTTPError:
            return  # it answers, if only that it has no such page
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("a collector did not start; see above") from None
            time.sleep(0.1)
        else:
            return


def _cpu(pid: int) -> float:
    """Return the seconds of one process: nanoseconds of its threads, finer than its own ticks."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:  # a thread that ended just now
            continue
    return total / 1e9
