"""A whole running collector for tests: a real store, ``hearsay serve`` and ``hearsay worker``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import requests

from collector.demo.demo import Children
from collector.demo.embedded import launch
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.cluster import free_port


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
            return requests.get(f"{self.url}/readyz", timeout=PATIENCE).status_code == 200
        except requests.ConnectionError:
            return False

    def backlog(self) -> int:
        """Return how many entries wait to be folded."""
        return int(requests.get(f"{self.url}/readyz", timeout=PATIENCE).json()["backlog"])

    def wait_until_folded(self) -> None:
        """Return when no entry waits, or fail when patience ends."""
        wait_for(lambda: not self.backlog(), lambda: f"{self.backlog()} entries were not folded")

    def reports(self, metric: str) -> int:
        """Return how many folded reports the answer to *metric* rests on."""
        url = f"{self.url}/v1/metrics/{metric}/estimate"
        answer = requests.get(url, headers=self._token, timeout=PATIENCE)
        answer.raise_for_status()
        return int(answer.json()["meta"]["n"])

    def wait_for_reports(self, metric: str, n: int) -> int:
        """Return the number of reports once it is at least *n*, or fail when patience ends."""
        wait_for(lambda: self.reports(metric) >= n, lambda: f"{self.reports(metric)} < {n}")
        return self.reports(metric)


def wait_for_start(children: Children, is_ready: Callable[[], bool]) -> None:
    """Return once *is_ready*, or fail as soon as one of *children* has ended."""

    def starts() -> bool:
        children.require_alive()
        return is_ready()

    wait_for(starts, lambda: children.failure("the collector did not start"))


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
        port = free_port()
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
        wait_for_start(children, site.is_ready)
        yield site
        children.stop()
