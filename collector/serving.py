"""Start the collector's two processes from settings."""

from __future__ import annotations

import socket

from client_sdk.registry import Registry

from .catalog import Catalog
from .config import Config
from .errors import ConfigError
from .heartbeat import Heartbeat
from .storage.connect import connect
from .worker import Worker

_APP = "collector.web.process:create_process"  # by name: only the server imports the web package
_THREADS = 8  # requests at once in a process; they wait for the store, not for the processor
_WAITING = 128  # connections a process takes while all its threads are busy


def serve(config: Config, workers: int) -> None:
    """Prepare the store and serve HTTP until stopped.

    Raises: ConfigError, RegistryError, UnsafeStoreError, StorageUnavailableError: before listening.
            ConfigError also if there is no key to report with, or the port is taken.
    """
    from granian import Granian
    from granian.constants import Interfaces
    from granian.log import LogLevels

    Catalog([Registry.from_file(path) for path in config.registry_paths])
    if not config.write_keys:
        rule = "must be set, or HEARSAY_GATEWAY_KEY: nobody could report"
        raise ConfigError("HEARSAY_WRITE_KEY", "", rule)
    _require_free(config.host, config.port)
    connect(config).prepare()
    Granian(
        _APP,
        factory=True,
        address=config.host,
        port=config.port,
        interface=Interfaces.WSGI,
        workers=workers,
        blocking_threads=_THREADS,
        backpressure=_WAITING,
        log_level=LogLevels.warning,
        log_access=False,  # an access log would hold addresses
        websockets=False,
    ).serve()


def _require_free(host: str, port: int) -> None:
    """Raise ConfigError if somebody listens: the server would share the port, and the traffic."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError("HEARSAY_PORT", port, f"cannot be listened on: {error}") from None


def make_worker(config: Config, heartbeat: Heartbeat | None = None) -> Worker:
    """Return a worker for every metric in the registry files, on a prepared store."""
    catalog = Catalog([Registry.from_file(path) for path in config.registry_paths])
    mechanisms = {digest: metric.mechanism for digest, metric in catalog.by_digest.items()}
    storage = connect(config)
    storage.prepare()
    return Worker(storage, mechanisms, beat=heartbeat.beat if heartbeat else lambda: None)
