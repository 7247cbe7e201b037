"""Collectors that run for a benchmark: a real store, and what takes uploads for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import requests

from client_sdk.core.epoch import day_of, epoch_of
from client_sdk.core.randomness import system_randomness
from client_sdk.registry import Registry
from client_sdk.wire.reports import Column, seal_binary, seal_padded
from collector.demo.demo import free_port
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


class Site:
    """A web process or several, on their own store."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, redis_url: str) -> None:
        self.process, self.port, self.redis_url = process, port, redis_url

    def cpu(self) -> float:
        """Return the seconds of processor that the web processes have had."""
        return sum(_cpu(pid) for pid in {self.process.pid, *descendants(self.process.pid)})


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


def request(body: bytes, *lines: str, kind: str = "json", key: str = WRITE_KEY) -> bytes:
    """Return an upload as raw bytes, with *lines* as further headers."""
    head = (
        "POST /v1/reports HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {key}",
        f"Content-Type: application/{kind}",
        f"Content-Length: {len(body)}",
        *lines,
    )
    return ("\r\n".join(head) + "\r\n\r\n").encode() + body


@contextmanager
def hearsay(registry: str, **settings: str) -> Iterator[Site]:
    """Run ``hearsay serve`` with one worker for a registry file's text, on a store of its own."""
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
        with _running("collector serve --workers 1", environment) as site:
            yield site


@contextmanager
def obvious() -> Iterator[Site]:
    """Run the obvious collector, one process, on a store of its own."""
    options = "--log-level error --workers 1 --bind 127.0.0.1:PORT"
    with _running(f"gunicorn benchmarks.lib.rivals:obvious {options}", {}) as site:
        yield site


@contextmanager
def floor() -> Iterator[Site]:
    """Run a server that does nothing but HTTP."""
    options = "--interface rsgi --no-ws --http 1 --log-level error --port PORT"
    with _running(f"granian benchmarks.lib.rivals:floor {options}", {}) as site:
        yield site


@contextmanager
def store_and_worker(
    registry: Registry, *, shards: int = 1
) -> Iterator[tuple[RedisStorage, Worker]]:
    """Run a store of its own and a worker in this process."""
    with tempfile.TemporaryDirectory() as folder, launch(None, Path(folder), (PATH, WHEEL)) as run:
        storage = open_storage(run.url, "bench", shards, "standard")
        storage.prepare()
        yield storage, worker_of(storage, registry)


def worker_of(storage: RedisStorage, registry: Registry) -> Worker:
    """Return a worker in this process."""
    mechanisms = {metric.digest: metric.mechanism for metric in registry}
    return Worker(storage, mechanisms, {metric.digest: metric.every for metric in registry})


@contextmanager
def _running(command: str, environment: dict[str, str]) -> Iterator[Site]:
    """Run the Python module and the options of *command* on a port and a store of its own."""
    port = free_port(0)
    words = [sys.executable, "-m", *command.replace("PORT", str(port)).split()]
    with tempfile.TemporaryDirectory() as data, launch(None, Path(data), (PATH, WHEEL)) as store:
        ours = {"REDIS_URL": store.url, "HEARSAY_PORT": str(port), **environment}
        process = subprocess.Popen(words, env={**os.environ, **ours})
        try:
            _wait(process, port)
            yield Site(process, port, store.url)
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    """Return as soon as it answers, if only that it has no such page."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            requests.get(f"http://127.0.0.1:{port}/livez", timeout=2)
        except requests.RequestException:
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
