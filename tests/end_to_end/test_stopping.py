"""Web processes and workers of an operator: their lives, and their end in good order."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
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
from collector.operations.processes import is_fresh
from collector.storage.connection import Connection
from tests.support.crowds.uploads import (
    WRITE_KEY,
    as_json,
    bearer,
    registry_text,
    upload,
)
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.attacked_site import AttackedSite, attacked_site, today
from tests.support.sites.hostile_bodies import good
from tests.support.store.cluster import free_port
from tests.support.store.namespaces import AS_FIRST, needs_namespace
from tests.support.store.processes import descendants, ended, only_child, until_ended
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


def status_of_an_upload(site: AttackedSite) -> int:
    site.close()  # the connection may have been that of a process that was killed
    return site.report(good("application/json", today())).status


def test_a_web_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    """Its sibling is the same process as before, and uploads are taken."""
    with attacked_site(tmp_path, processes=2) as site:
        before = descendants(site.serve)
        killed = min(before)

        os.kill(killed, signal.SIGKILL)

        wait_for(lambda: len(descendants(site.serve) - {killed}) == 2, site.log.read_text)
        assert len(before) == 2
        assert len(before & descendants(site.serve)) == 1
        status = wait_for(lambda: status_of_an_upload(site), despite=(ConnectionRefusedError,))
        assert status == 202


def test_a_web_process_that_hangs_is_ended_and_started_again(tmp_path: Path) -> None:
    """It would keep its share of the connections for ever; its sibling stays."""
    with attacked_site(tmp_path, processes=2) as site:
        before = descendants(site.serve)
        hanging = min(before)
        places = Path(tempfile.gettempdir())
        wait_for(lambda: [*places.glob(f"hearsay-*/{hanging}")], site.log.read_text)  # has started

        os.kill(hanging, signal.SIGSTOP)

        wait_for(lambda: len(descendants(site.serve) - {hanging}) == 2, site.log.read_text)
        assert len(before & descendants(site.serve)) == 1
        assert f"web process {hanging} has not answered" in site.log.read_text(encoding="utf-8")
        status = wait_for(lambda: status_of_an_upload(site), despite=(ConnectionRefusedError,))
        assert status == 202


def test_pages_that_are_open_are_so_by_a_link_of_this_start(tmp_path: Path) -> None:
    """Every web process knows its token; the API is opened by it as by that of an operator."""
    with attacked_site(tmp_path, settings={"HEARSAY_OPEN_DASHBOARD": "1"}, processes=2) as site:
        said = site.log.read_text(encoding="utf-8")
        [link] = re.findall(r"^pages: (\S+)$", said, re.MULTILINE)
        address, _, token = link.partition("/login#token=")

        assert address == site.url
        assert len(token) == 43
        for _ in range(10):
            site.close()
            assert site.ask("GET", "/operations").status == 401
            assert site.ask("GET", "/operations", bearer(token)).status == 200


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of a worker on a real, empty store."""
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    with real_server() as store:
        yield {
            **{name: value for name, value in os.environ.items() if "HEARSAY" not in name},
            "HEARSAY_REGISTRY": str(path),
            "HEARSAY_HEARTBEAT": str(tmp_path / "beat"),
            "REDIS_URL": store.url,
        }


def hearsay(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "collector", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_a_worker_beats_while_it_runs_and_ends_well_when_asked(
    environment: dict[str, str],
) -> None:
    before = hearsay(environment, "worker", "--check").returncode
    command = [sys.executable, "-m", "collector", "worker"]
    with until_ended(subprocess.Popen(command, env=environment)) as process:
        wait_for(lambda: is_fresh(Path(environment["HEARSAY_HEARTBEAT"])), running=(process,))
        during = hearsay(environment, "worker", "--check").returncode

    assert (before, during, process.returncode) == (1, 0, 0)
