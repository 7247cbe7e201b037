"""A ledger of many years: it goes on, and a charge costs what it cost on the first day."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from client_sdk.privacy.caps import Caps
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.store import Store
from tests.support.device.clock import FakeClock
from tests.support.device.device import changed, make_client, metric_text, registry_of
from tests.support.device.ledgers import fill_ledger

YEARS: Final = 20
METRICS: Final = [metric_text(f"m{i}", every="1h", epsilon="0.001") for i in range(2)]


def steps_of_a_charge(folder: Path, hours: int) -> int:
    """Return how many thousands of SQLite's instructions it takes to record after *hours*."""
    registry, clock = registry_of(*METRICS), FakeClock()
    client = make_client(folder, registry=registry, clock=clock, caps=Caps(lifetime="9999"))
    client.record("m0", True)
    store: Store = client._engine.store
    with store.transaction() as tx:
        fill_ledger(tx, [metric.digest for metric in registry], hours)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with store.transaction() as tx:
        connection = tx
    connection.set_progress_handler(count, 10)
    for i in range(20):
        clock.advance(seconds=3_600)
        client.record("m0", True)
        client.record("m1", True)
        assert client.stats()["recorded"] == 3 + 2 * i
    connection.set_progress_handler(None, 0)
    client.close()
    assert "store" not in changed(client)
    return steps


def test_a_charge_takes_as_many_steps_in_a_long_ledger_as_in_a_short_one(tmp_path: Path) -> None:
    """Law: counted in instructions of the database, not in time; an index is a little deeper."""
    short, long = (steps_of_a_charge(tmp_path / str(n), n) for n in (500, 50_000))

    assert long < 1.2 * short


def test_a_ledger_of_more_than_five_megabytes_goes_on_and_is_sound_when_opened(
    tmp_path: Path,
) -> None:
    """Law: no size silences a device; twenty years of two hourly metrics are 350,000 charges."""
    registry, clock = registry_of(*METRICS), FakeClock()
    caps = Caps(lifetime="9999")
    first = make_client(tmp_path, registry=registry, clock=clock, caps=caps)
    first.record("m0", True)
    with first._engine.store.transaction() as tx:
        fill_ledger(tx, [metric.digest for metric in registry], 365 * 24 * YEARS)
    first.close()
    assert (tmp_path / FILE_NAME).stat().st_size > 5 * 1024 * 1024

    again = make_client(tmp_path, registry=registry, clock=clock, caps=caps)
    again.record("m1", True)
    again.close()

    assert changed(again) == {"recorded": 1, "uploaded": 1}
