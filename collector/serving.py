"""Start the collector's two processes from settings."""

from __future__ import annotations

import logging

from client_sdk.registry import Registry

from .catalog import Catalog
from .config import Config
from .heartbeat import Heartbeat
from .storage.connect import connect
from .worker import Worker

_APP = "collector.web.app:create_app"  # by name: only the server imports the web package
_THREADS = 8  # requests at once in a process; they wait for the store, not for the processor


def serve(config: Config, workers: int) -> None:
    """Prepare the store and serve HTTP until stopped.

    Raises: ConfigError, RegistryError, UnsafeStoreError, StorageUnavailableError: before listening.
    """
    from granian import Granian
    from granian.constants import Interfaces
    from granian.log import LogLevels

    Catalog([Registry.from_file(path) for path in config.registry_paths])
    connect(config).prepare()
    Granian(
        _APP,
        factory=True,
        address=config.host,
        port=config.port,
        interface=Interfaces.WSGI,
        workers=workers,
        blocking_threads=_THREADS,
        log_level=LogLevels.warning,
        log_access=False,  # an access log would hold addresses
        websockets=False,
    ).serve()


def make_worker(config: Config, heartbeat: Heartbeat | None = None) -> Worker:
    """Return a worker for every metric in the registry files, on a prepared store."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    catalog = Catalog([Registry.from_file(path) for path in config.registry_paths])
    mechanisms = {digest: known.metric.mechanism for digest, known in catalog.by_digest.items()}
    storage = connect(config)
    storage.prepare()
    return Worker(storage, mechanisms, beat=heartbeat.beat if heartbeat else lambda: None)
