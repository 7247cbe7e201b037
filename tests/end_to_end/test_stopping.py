"""Web process and worker end in good order when asked, also as first process of a container."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
import requests

from client_sdk.core.epoch import day_of, epoch_of
from client_sdk.registry import Registry
from client_sdk.wire.reports import Column
from collector.storage.connection import Connection
from tests.support.crowds.uploads import (
    WRITE_KEY,
    as_json,
    bearer,
    registry_text,
    upload,
)
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.cluster import free_port
from tests.support.store.namespaces import AS_FIRST, needs_namespace
from tests.support.store.processes import descendants, ended, only_child
from tests.support.store.servers import needs_real, real_server

pytestmark = [pytest.mark.real, needs_real]

WITHIN: Final = 10.0  # seconds that a supervisor waits for a process that it asks to end
PAUSE_MS: Final = 1_500  # milliseconds for which the store answers no write
HEARSAY: Final = (sys.executable, "-m", "collector")


class Place:
    """A store, a registry, a port, and what is started there."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        path = folder / "metrics.toml"
        path.write_text(registry_text(), encoding="utf-8")
        self.port = free_port()
        self.store = Connection.open(redis_url)
        self.heartbeat = folder / "beat"
        self._log = folder / "log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if "HEARSAY" not in name},
            "HEARSAY_REGISTRY": str(path),
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "HEARSAY_PORT": str(self.port),
            "HEARSAY_HEARTBEAT": str(self.heartbeat),
            "REDIS_URL": redis_url,
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            command = [*prefix, *HEARSAY, *arguments]
            process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        self._started.append(process)
        return process

    def serve(self, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        process = self.start("serve", prefix=prefix)
        self.wait_for(self._is_ready)
        return process

    def work(self, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        process = self.start("worker", prefix=prefix)
        self.wait_for(self.heartbeat.exists)
        return process

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_for(condition, self._log.read_text)

    def waiting(self) -> int:
        """Return how many clients the store keeps waiting."""
        return int(self.info()["blocked_clients"])

    def info(self) -> dict[str, str]:
        lines = self.store.call("INFO").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def entries(self) -> int:
        return sum(self.store.call("XLEN", f"hearsay:{{{shard}}}:stream") for shard in range(4))

    def lines(self) -> list[dict[str, str]]:
        """Return what was logged; each line must be JSON."""
        return [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]

    def doctor(self) -> dict[str, list[str]]:
        """Return what hearsay doctor finds, by check, run by somebody with other settings."""
        settings = {n: v for n, v in self._environment.items() if n != "HEARSAY_WRITE_KEY"}
        command = [*HEARSAY, "doctor", "--json"]
        told = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        found: dict[str, list[str]] = {}
        for one in json.loads(told.stdout)["findings"]:
            found.setdefault(one["check"], []).append(one["what"])
        return found

    def close(self) -> None:
        for process in self._started:
            for pid in descendants(process.pid):
                os.kill(pid, signal.SIGKILL)
            ended(process, signal.SIGKILL)
        self.store.close()

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{self.port}/readyz", timeout=PATIENCE).ok
        except requests.ConnectionError:
            return False


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with real_server() as store:
        made = Place(tmp_path, store.url)
        try:
            yield made
        finally:
            made.close()
        assert {line["level"] for line in made.lines()} <= {"info", "warning"}


def post(port: int) -> requests.Response:
    theme = Registry.from_text(registry_text()).metrics["theme"]
    now = time.time()
    columns = [Column(theme.digest, epoch_of(theme.every, now), b"\0")]
    body = as_json(upload(columns, sealed=day_of(now)))
    url = f"http://127.0.0.1:{port}/v1/reports"
    headers = {**bearer(WRITE_KEY), "Content-Type": "application/json"}
    return requests.post(url, data=body, headers=headers, timeout=PATIENCE)


def test_an_upload_that_is_on_its_way_when_a_web_process_is_asked_to_stop_is_answered(
    place: Place,
) -> None:
    """The device hears that its reports are stored, and they are."""
    web = place.serve()
    answers: list[requests.Response] = []
    place.store.call("CLIENT", "PAUSE", PAUSE_MS, "WRITE")
    device = threading.Thread(target=lambda: answers.append(post(place.port)))
    device.start()
    place.wait_for(lambda: place.waiting() > 0)

    web.terminate()
    status = web.wait(PATIENCE)
    device.join(PATIENCE)

    assert [answer.status_code for answer in answers] == [202]
    assert answers[0].json()["accepted"] == 1
    assert place.entries() == 1
    assert status == 0


@needs_namespace
@pytest.mark.parametrize("what", ["serve", "work"])
def test_the_first_process_of_a_container_ends_when_it_is_asked(place: Place, what: str) -> None:
    """It has no default action for signals, and its children end with it."""
    outer = place.serve(AS_FIRST) if what == "serve" else place.work(AS_FIRST)
    below = descendants(outer.pid)
    first = only_child(outer.pid)

    os.kill(first, signal.SIGTERM)

    assert outer.wait(PATIENCE) == 0
    assert [pid for pid in below if Path(f"/proc/{pid}").exists()] == []


@pytest.mark.slow
def test_a_worker_whose_store_hangs_ends_in_time(place: Place) -> None:
    """A supervisor that waits ten seconds need not kill it."""
    worker = place.work()
    server = int(place.info()["process_id"])
    place.store.call("CLIENT", "PAUSE", PAUSE_MS, "WRITE")
    place.wait_for(lambda: place.waiting() > 0)  # the worker has begun a command
    os.kill(server, signal.SIGSTOP)
    try:
        worker.terminate()

        assert worker.wait(WITHIN) == 0
    finally:
        os.kill(server, signal.SIGCONT)


def test_who_stops_in_good_order_counts_as_alive_no_longer(place: Place) -> None:
    """And while it lives, the doctor knows of the keys in its settings."""
    web, worker = place.serve(), place.work()
    place.wait_for(lambda: "workers alive: 1" in str(place.doctor()["workers"]))
    before = place.doctor()

    for process in (worker, web):
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    after = place.doctor()

    assert before["keys"][0] == "the web processes have a write key in their settings"
    assert after["workers"] == ["none lives"]
    assert after["keys"][0] == "no write key is known here"
