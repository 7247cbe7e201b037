"""A whole running collector for tests: a real store, ``hearsay serve`` and ``hearsay worker``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import requests

from collector.demo.demo import Children, free_port
from collector.demo.embedded import launch

_PATIENCE = 30.0  # seconds for a start, or for reports to be folded


class Site:
    """The collector as its users see it."""

    def __init__(
        self, url: str, redis_url: str, read_token: str, start_worker: Callable[[], Popen[bytes]]
    ) -> None:
        self.url, self.redis_url = url, redis_url
        self._token = {"Authorization": f"Bearer {read_token}"}
        self._start_worker = start_worker
        self._worker = start_worker()

    def kill_worker(self) -> None:
        """End the worker as a power cut would."""
        self._worker.kill()
        self._worker.wait()

    def restart_worker(self) -> None:
        self._worker = self._start_worker()

    def is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/readyz", timeout=2).status_code == 200
        except requests.ConnectionError:
            return False

    def backlog(self) -> int:
        """Return how many entries wait to be folded."""
        return int(requests.get(f"{self.url}/readyz", timeout=5).json()["backlog"])

    def wait_until_folded(self) -> None:
        """Return when no entry waits, or fail when patience ends."""
        deadline = time.monotonic() + _PATIENCE
        while (left := self.backlog()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left, f"{left} entries were not folded"

    def reports(self, metric: str) -> int:
        """Return how many folded reports the answer to *metric* rests on."""
        url = f"{self.url}/v1/metrics/{metric}/estimate"
        answer = requests.get(url, headers=self._token, timeout=5)
        answer.raise_for_status()
        return int(answer.json()["meta"]["n"])

    def wait_for_reports(self, metric: str, n: int) -> int:
        """Return the number of reports once it is at least *n*, or after a time as it is."""
        deadline = time.monotonic() + _PATIENCE
        while (seen := self.reports(metric)) < n and time.monotonic() < deadline:
            time.sleep(0.05)
        return seen


@contextmanager
def running_site(
    folder: Path,
    registry: Path,
    write_key: str,
    read_token: str,
    gateway_key: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Site]:
    """Run a collector for *registry* on loopback until the block ends.

    Args: settings: variables beside those that every site needs.
    """
    with Children() as children, launch(None, folder) as store:
        port = free_port(0)
        environment = {
            **os.environ,
            "HEARSAY_REGISTRY": str(registry),
            "REDIS_URL": store.url,
            "HEARSAY_WRITE_KEY": write_key,
            "HEARSAY_READ_TOKEN": read_token,
            "HEARSAY_PORT": str(port),
            **({} if gateway_key is None else {"HEARSAY_GATEWAY_KEY": gateway_key}),
            **(settings or {}),
        }
        children.start("serve", environment)
        url = f"http://127.0.0.1:{port}"
        site = Site(url, store.url, read_token, lambda: children.start("worker", environment))
        deadline = time.monotonic() + _PATIENCE
        while not site.is_ready():
            children.require_alive()
            assert time.monotonic() < deadline, children.failure("the collector did not start")
            time.sleep(0.05)
        yield site
        children.stop()
