"""The collector's two processes: started from settings, stopped in good order, seen to be alive.

A worker has no port: the age of a file says that it is alive.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..core.catalog import Catalog, records_of
from ..core.config import Config
from ..core.errors import ConfigError, RefusedByStoreError, StorageFullError
from ..core.steady_clock import SteadyClock
from ..intake.keyring import Keyring
from ..serving.stopping import on_stop
from ..storage.connect import connect, inspect
from ..storage.records import ActivityStore, CredentialStore, SuspicionStore
from ..worker.poisoning_watch import Watch
from ..worker.worker import Worker
from .pulses import LOOK_S, MISSES, watched
from .telemetry.activity import CLOCK_WAITS, WEB, WORKER, Activity, SharingThread

STALE_AFTER: Final = 30  # seconds; a worker beats before every round, and rests at most 5 s
_log = logging.getLogger("hearsay.serving")
_SILENT: Final = f"web process %d has not answered for {LOOK_S * MISSES:.0f} s: it is ended"
_APP = "collector.web.app:create_process"  # by name: only the server imports the web package
_CONNECTIONS = 2_048  # of a process; one that only trickles costs some kilobytes


class Heartbeat:
    """Touches *path* at every beat."""

    def __init__(self, path: Path) -> None:
        """Beat on *path*, whose folder must exist."""
        self._path = path

    def beat(self) -> None:
        """Say: still here.  Raises ConfigError: there is no folder for the file."""
        try:
            self._path.touch()
        except OSError as error:
            raise ConfigError(
                "HEARSAY_HEARTBEAT", self._path, f"cannot be touched: {error}"
            ) from None


def is_fresh(path: Path) -> bool:
    """Return whether *path* was touched within STALE_AFTER seconds."""
    try:
        return time.time() - path.stat().st_mtime < STALE_AFTER
    except OSError:
        return False


def serve(config: Config, workers: int) -> None:
    """Prepare the store and serve HTTP until stopped.

    Raises: ConfigError, RegistryError, UnsafeStoreError, StorageUnavailableError: before listening.
            ConfigError also if there is no key to report with, or the port is taken.
    """
    from granian import Granian
    from granian.log import LogLevels

    from ..serving.server import require_free, settings_of

    catalog = Catalog.from_files(config.registry_paths)
    require_free("HEARSAY_PORT", config.host, config.port)
    connect(config).prepare()
    _require_a_key(config, catalog)
    if config.open_dashboard:
        _open(config)
    server = Granian(
        _APP,
        factory=True,
        workers=workers,
        log_level=LogLevels.warning,
        # One that dies is started again; one that dies at once again ends all, for a supervisor.
        respawn_failed_workers=True,
        **settings_of(WEB, config.host, config.port, _CONNECTIONS),
    )
    # Not the server's own time-out, which warns of processes that have ended in good order.
    server.on_startup(lambda: on_stop(server.signal_handler_interrupt, lambda: _kill(server.wrks)))
    # by name: a log that is searched for addresses of devices holds none
    at = address_of(config).replace("127.0.0.1", "localhost")
    what = len(catalog.by_digest), config.profile, at
    _log.info("web started: %d metrics, profile %s, at %s", *what)
    with watched(lambda: server.wrks, partial(_log.error, _SILENT)):
        server.serve()
    _log.info("web stopped")


def _kill(processes: Sequence[Any]) -> None:
    for process in processes:
        process.kill()


def _require_a_key(config: Config, catalog: Catalog) -> None:
    """Raise ConfigError if neither the environment nor the store has a key to report with."""
    keyring = Keyring(
        config.credentials, CredentialStore.of(config), catalog, time.time, time.monotonic
    )
    if not keyring.can_anybody_report():
        rule = "must be set, or made by hearsay keys create: no device could report"
        raise ConfigError("HEARSAY_WRITE_KEY", "", rule)


def _open(config: Config) -> None:
    """Give the web processes a token of this start, and print the link that holds it.

    It stands behind #, so browsers do not send it, and no proxy or log has it.
    """
    if config.start_token:
        return  # another program gave it, and prints the link
    token = os.environ["HEARSAY_START_TOKEN"] = secrets.token_urlsafe(32)
    print(f"pages: {config.origin or address_of(config)}/login#token={token}", flush=True)


def address_of(config: Config) -> str:
    """Return the address that is listened on."""
    name = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{name}:{config.port}"


def record_definitions(config: Config, catalog: Catalog) -> None:
    """Record what each digest of *catalog* means, as far as the store takes it.

    A worker folds all the same where its user has no right to, or the store is full.
    """
    with suppress(RefusedByStoreError, StorageFullError):
        inspect(config).define(records_of(catalog))


def _watch(config: Config, catalog: Catalog, stop: threading.Event) -> None:
    """Begin to look at closed epochs, beside the folds."""
    metrics = catalog.by_digest.values()
    watch = Watch(connect(config), SuspicionStore.of(config), metrics, time.time)
    threading.Thread(target=watch.run, args=(stop,), name="watching", daemon=True).start()


def run_worker(config: Config, stop: threading.Event, heartbeat: Heartbeat | None = None) -> None:
    """Prepare the store and fold the reports of every metric in the registry files until *stop*.

    Raises: ConfigError, RegistryError, UnsafeStoreError, StorageUnavailableError: before folding.
    """
    catalog = Catalog.from_files(config.registry_paths)
    mechanisms = {digest: metric.mechanism for digest, metric in catalog.by_digest.items()}
    every = {digest: metric.every for digest, metric in catalog.by_digest.items()}
    storage = connect(config)
    storage.prepare()
    record_definitions(config, catalog)
    activity = Activity(WORKER, ActivityStore.of(config), time.time)
    beat = heartbeat.beat if heartbeat else lambda: None
    worker = Worker(
        storage,
        mechanisms,
        every,
        beat=beat,
        clock=SteadyClock(time.time, time.monotonic),
        tell_clock=lambda: activity.add(CLOCK_WAITS),
        tell_fold=activity.folded,
    )
    sharing = SharingThread(activity)
    sharing.start()
    _watch(config, catalog, stop)
    _log.info("worker started: %d metrics, profile %s", len(mechanisms), config.profile)
    try:
        worker.run(stop)
    finally:
        sharing.stop()
        _log.info("worker stopped")
