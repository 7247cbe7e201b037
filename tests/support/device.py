"""Builders for tests of the device: a registry, clients, and a look into their database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from client_sdk.client import Client
from client_sdk.consent import Consent
from client_sdk.ledger import Caps
from client_sdk.randomness import Randomness
from client_sdk.registry import Registry
from client_sdk.store import FILE_NAME
from client_sdk.transport import Transport
from tests.support.clock import FakeClock
from tests.support.device_transport import ScriptedTransport

ENDPOINT: Final = "https://collector.example"
KEY: Final = "key-of-the-demo-application"
CANARY: Final = "canary-7c1f9e52-only-the-user-knows"

_METRIC: Final = """
[metrics.{name}]
title = "A metric"
question = "What do we decide by it?"
{kind}
epsilon = "{epsilon}"
every = "{every}"
longitudinal = "fresh"
owner = "tests"
expected_devices = 10000
expires = {expires}
"""
_BOOLEAN: Final = 'type = "boolean"'
_CATEGORY: Final = f'type = "category"\nvalues = ["plain", "{CANARY}"]'
_NUMBER: Final = 'type = "count"\nmin = 0\nmax = 100\nstep = 1\nunit = "files"'


def metric_text(
    name: str,
    kind: str = _BOOLEAN,
    epsilon: str = "1.0",
    every: str = "1d",
    expires: str = "2099-12-31",
) -> str:
    """Return one metric as TOML."""
    return _METRIC.format(name=name, kind=kind, epsilon=epsilon, every=every, expires=expires)


def registry_of(*metrics: str) -> Registry:
    """Return a registry of *metrics*, each as TOML."""
    head = 'schema = 1\napp = "demo"\n\n[segments]\nplatform = ["linux", "mac"]\n'
    return Registry.from_text(head + "".join(metrics))


REGISTRY: Final = registry_of(
    metric_text("dark_mode"),
    metric_text("theme", _CATEGORY),
    metric_text("files", _NUMBER),
    metric_text("weekly", every="7d"),
    metric_text("bygone", expires="2020-12-31"),
)


def many_metrics(count: int, epsilon: str = "0.001") -> Registry:
    """Return a registry of *count* boolean metrics m0, m1, …"""
    return registry_of(*(metric_text(f"m{i}", epsilon=epsilon) for i in range(count)))


def make_client(
    data_dir: Path | None = None,
    *,
    registry: Registry = REGISTRY,
    consent: Consent | str = Consent.GRANTED,
    transport: Transport | None = None,
    clock: Callable[[], float] | None = None,
    caps: Caps | None = None,
    segment: Mapping[str, str] | None = None,
    randomness: Randomness | None = None,
) -> Client:
    """Return a client with fakes for all that is not given."""
    return Client(
        ENDPOINT,
        KEY,
        registry,
        consent=consent,
        data_dir=data_dir,
        segment=segment,
        caps=Caps() if caps is None else caps,
        transport=ScriptedTransport() if transport is None else transport,
        clock=FakeClock() if clock is None else clock,
        randomness=randomness,
    )


def changed(client: Client) -> dict[str, int]:
    """Return the counts that are not zero."""
    return {reason: count for reason, count in client.stats().items() if count}


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of *query* over the database in *folder*."""
    connection = sqlite3.connect(folder / FILE_NAME)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def alter(folder: Path, statement: str) -> None:
    """Change the database in *folder* by *statement*, behind the back of every client."""
    connection = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    connection.execute(statement)
    connection.close()


def bytes_on_disk(folder: Path) -> bytes:
    """Return all files of the database, log included, end to end."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
