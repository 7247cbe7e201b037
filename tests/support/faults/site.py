"""A whole deployment on loopback whose every process can be killed: store, collectors, workers."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Final

import requests

from client_sdk.registry import Registry
from collector.core.config import STRICT
from collector.core.errors import CollectorError
from collector.intake.oblivious_keys import add_key
from collector.relay.process import Settings
from collector.storage.connect import open_connection, open_storage
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from tests.support.crowds.uploads import WRITE_KEY
from tests.support.device.movable_clock import MovableClock
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.relayed import RELAY, is_alive
from tests.support.store.cluster import Node, free_port

from .oracle import Comparison, compared
from .reports import REGISTRY, registry_text
from .supervisor import Supervised, Supervisor

PREFIX: Final = "hearsay"
READ_TOKEN: Final = "read-token-of-a-site-of-faults-0123456789"
SHARDS: Final = 4  # the default
_SYNC: Final = {STRICT: "always"}


class Deployment:
    """Collectors and workers on a store that a test runs, and kills."""

    def __init__(self, folder: Path, profile: str, url: str, shards: int = SHARDS) -> None:
        """Keep all in *folder*; the store is at *url*."""
        self.profile, self.folder = profile, folder
        self.collectors: list[Supervised] = []
        self.workers: list[Supervised] = []
        self.ports: list[int] = []
        self.supervisor = Supervisor(folder / "log")
        self.write_registry("now", registry_text())
        self.keys = Keys(PREFIX, shards)
        self.storage = open_storage(url, PREFIX, shards, profile)
        self.inspection = RedisInspection(open_connection(url), self.keys)
        self._url = url
        self.oblivious = add_key(str(folder / "oblivious"), date(2026, 1, 1))[0].configuration

    def write_registry(self, name: str, text: str) -> Path:
        path = self.folder / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def add_collector(self, registry: str = "now", prefix: Sequence[str] = ()) -> Supervised:
        """Start ``hearsay serve`` on a port of its own and return when it can take uploads."""
        port = free_port()
        found = self._run("serve", registry, {"HEARSAY_PORT": str(port)}, prefix)
        self.wait_for_collector(port)
        self.collectors.append(found)
        self.ports.append(port)
        return found

    def add_relay(self, to: int, within: float = 0.2) -> tuple[int, Supervised]:
        """Start a relay to the collector, or what else stands, at port *to*; return its own."""
        port = free_port()
        url = f"http://127.0.0.1:{to}"
        settings = Settings(url, 1_000, within, "127.0.0.1", port, 1_000_000, (), "", "")
        program = [sys.executable, *RELAY, json.dumps(asdict(settings))]
        relay = self.supervisor.run(Supervised(program, dict(os.environ)))
        self.wait_for_relay(port)
        return port, relay

    def wait_for_relay(self, port: int) -> float:
        """Return when the relay at *port* listens, with the seconds it took."""
        return self._wait_for(lambda: is_alive(port), "a relay is not ready")

    def add_worker(self, registry: str = "now", prefix: Sequence[str] = ()) -> Supervised:
        """Start ``hearsay worker``."""
        beat = {"HEARSAY_HEARTBEAT": str(self.folder / f"beat{len(self.workers)}")}
        self.workers.append(self._run("worker", registry, beat, prefix))
        return self.workers[-1]

    def wait_for_collector(self, port: int) -> float:
        """Return when the collector at *port* is ready, with the seconds it took."""
        return self._wait_for(lambda: _is_ready(port), "a collector is not ready")

    def wait_for_worker(self, worker: Supervised) -> None:
        """Return when *worker* works; its heart must not beat from before."""
        beat = Path(worker.environment["HEARSAY_HEARTBEAT"])
        self._wait_for(beat.exists, "a worker does not start")

    def wait_until_folded(self, but: Collection[int] = ()) -> float:
        """Return when nothing is pending, with the seconds it took.

        Args: but: shards that are not looked at.
        """
        return self._wait_for(lambda: self._backlog(but) == 0, "entries stay pending")

    def compared(
        self, enqueued: Mapping[bytes, bytes], registry: Registry = REGISTRY
    ) -> Comparison:
        """Compare the stored tallies with *enqueued*, once all is folded."""
        self.wait_until_folded()
        return compared(self.storage, self.inspection, enqueued, registry)

    def settings(self, registry: str = "now") -> dict[str, str]:
        """Return the settings of each process."""
        return {
            "HEARSAY_REGISTRY": str(self.folder / f"{registry}.toml"),
            "HEARSAY_PROFILE": self.profile,
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "HEARSAY_READ_TOKEN": READ_TOKEN,
            "HEARSAY_SHARDS": str(self.keys.shards),
            "HEARSAY_OBLIVIOUS_KEYS": str(self.folder / "oblivious"),
            "REDIS_URL": self._url,
        }

    def _run(
        self, command: str, registry: str, more: Mapping[str, str], prefix: Sequence[str]
    ) -> Supervised:
        ours = {name: value for name, value in os.environ.items() if "HEARSAY" not in name}
        environment = {**ours, **self.settings(registry), **more}
        program = [*prefix, sys.executable, "-m", "collector", command]
        return self.supervisor.run(Supervised(program, environment))

    def _backlog(self, but: Collection[int]) -> int:
        try:
            return self.storage.backlog(but)
        except CollectorError:
            return -1

    def _wait_for(self, ask: Callable[[], bool], otherwise: str) -> float:
        """Return when *ask* is true, with the seconds it took."""
        log, began = self.folder / "log", time.monotonic()
        wait_for(ask, lambda: f"{otherwise}\n{log.read_text('utf-8', 'replace')[-3_000:]}")
        return time.monotonic() - began


class FaultSite(Deployment):
    """Store, collectors and workers.  The store is started again only when a test does so."""

    def __init__(
        self,
        folder: Path,
        profile: str,
        settings: Mapping[str, str],
        data: Path | None = None,
        clock: MovableClock | None = None,
    ) -> None:
        """Keep all in *folder*, but the store's files in *data* if that is given.

        Args: clock: of the store, if it is to be moved.
        """
        kept = data or folder / "store"
        kept.mkdir(exist_ok=True)
        settings = {"appendfsync": _SYNC.get(profile, "everysec"), **settings}
        self.store = clock.node(kept, settings) if clock else Node(kept, settings)
        super().__init__(folder, profile, f"redis://{self.store.address}/0")

    def stop(self) -> None:
        """Kill everything."""
        self.supervisor.stop()
        self.store.stop()
        self.store.connection.close()


def _is_ready(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE).ok
    except requests.RequestException:
        return False


@contextmanager
def fault_site(
    folder: Path,
    *,
    collectors: int = 2,
    workers: int = 1,
    profile: str = STRICT,
    settings: Mapping[str, str] | None = None,
    data: Path | None = None,
    clock: MovableClock | None = None,
) -> Iterator[FaultSite]:
    """Run a deployment until the block ends."""
    site = FaultSite(folder, profile, settings or {}, data, clock)
    try:
        site.store.start()
        site.storage.prepare()
        for _ in range(collectors):
            site.add_collector()
        for _ in range(workers):
            site.add_worker()
        yield site
    finally:
        site.stop()
