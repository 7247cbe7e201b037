"""Builders for tests of the device: a registry, clients, and a look into their database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from client_sdk.client import Client
from client_sdk.core.randomness import Randomness
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent, ConsentLike, NoOptOuts, OptOuts
from client_sdk.recording.background import ModeLike
from client_sdk.recording.inbox import OnReport, ReportView
from client_sdk.registry import Registry
from client_sdk.storage.schema import FILE_NAME
from client_sdk.upload.transport import Transport
from tests.support.device.clock import FakeClock
from tests.support.device.device_transport import ScriptedTransport
from tests.support.patience import PATIENCE

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
    mode: str = "manual",
    opt_outs: OptOuts | None = None,
    on_report: OnReport | None = None,
    **options: Any,
) -> Client:
    """Return a client with fakes for all that is not given, and without a thread."""
    clock = FakeClock() if clock is None else clock
    client = Client(
        ENDPOINT,
        KEY,
        registry,
        consent=cast("ConsentLike", consent),  # tests give wrong ones, too
        data_dir=data_dir,
        segment=segment,
        caps=Caps() if caps is None else caps,
        transport=ScriptedTransport() if transport is None else transport,
        on_report=on_report,
        clock=clock,
        uptime=clock.uptime if isinstance(clock, FakeClock) else None,
        randomness=randomness,
        mode=cast("ModeLike", mode),
        opt_outs=NoOptOuts() if opt_outs is None else opt_outs,
        **options,
    )
    if mode == "background":
        client._engine.close_timeout = PATIENCE
    return client


def collecting(seen: list[ReportView]) -> OnReport:
    """Return a hook that adds each report to *seen* and lets it out."""

    def collect(report: ReportView) -> bool:
        seen.append(report)
        return True

    return collect


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


@contextmanager
def crashing(folder: Path) -> Iterator[None]:
    """Undo, in place, what the block did to the files in *folder*: it was never reached."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    yield
    for path in folder.iterdir():
        if path not in before:
            path.unlink()
    for path, content in before.items():
        path.write_bytes(content)


def bytes_on_disk(folder: Path) -> bytes:
    """Return all files of the database, log included, end to end."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def dearest_span(client: Client, dates: int, digest: bytes | None = None) -> int:
    """Return the most nano-epsilon that the ledger of *client* holds of so many dates in a row.

    Args: digest: of the metric; None: of all together.
    """
    with client._engine.store.transaction() as tx:
        costs = tx.execute(
            "SELECT first, last, nano FROM costs WHERE digest = coalesce(?, digest)", (digest,)
        ).fetchall()
    begins = {first for first, _, _ in costs} | {last for _, last, _ in costs}
    return max(
        sum(int(nano) for first, last, nano in costs if last >= begin and first < begin + dates)
        for begin in begins
    )
