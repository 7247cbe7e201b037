"""Whatever fails, the application does not notice, and no report exists without its charge."""

from __future__ import annotations

import math
import os
import threading
from pathlib import Path

import pytest

from client_sdk.client import Client
from client_sdk.core.errors import TransportError
from client_sdk.core.randomness import ByteRandomness
from client_sdk.storage.schema import FILE_NAME, SCHEMA_VERSION
from tests.support.device.clock import FakeClock
from tests.support.device.device import alter, changed, make_client, many_metrics, rows
from tests.support.device.device_transport import ScriptedTransport

CHARGES_AND_REPORTS = "SELECT (SELECT count(*) FROM charges), (SELECT count(*) FROM reports)"
FAILING_OUTBOX = (
    "CREATE TRIGGER full BEFORE INSERT ON reports BEGIN SELECT RAISE(ABORT, 'disk full'); END"
)


def record_all(client: Client, count: int) -> None:
    for i in range(count):
        client.record(f"m{i}", True)


def test_without_a_place_in_the_outbox_there_is_no_charge(tmp_path: Path) -> None:
    make_client(tmp_path).record("dark_mode", True)
    alter(tmp_path, FAILING_OUTBOX)
    client = make_client(tmp_path)

    client.record("theme", "plain")
    failed = rows(tmp_path, CHARGES_AND_REPORTS)
    alter(tmp_path, "DROP TRIGGER full")
    client.record("theme", "plain")

    assert (failed, rows(tmp_path, CHARGES_AND_REPORTS)) == ([(1, 1)], [(2, 2)])
    assert changed(client) == {"store": 1, "recorded": 1}
    client.close()


def test_with_a_damaged_database_nothing_is_recorded_or_sent_for_a_week(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"\xa5" * 8192)
    transport = ScriptedTransport()
    client = make_client(tmp_path, transport=transport)

    client.record("dark_mode", True)
    client.flush()
    client.set_consent("denied")
    client.close()

    assert transport.sent == []
    assert changed(client) == {"store": 1, "budget": 1}


def test_an_older_sdk_leaves_a_newer_database_alone_and_a_newer_sdk_sends_what_waited(
    tmp_path: Path,
) -> None:
    """Law: an application that is put back an SDK loses no report and charges nothing."""
    clock = FakeClock()
    lost = ScriptedTransport([TransportError("lost")])
    first = make_client(tmp_path, transport=lost, clock=clock)
    first.record("dark_mode", True)
    first.close()
    clock.advance(days=1)
    alter(tmp_path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = (tmp_path / FILE_NAME).read_bytes()
    transport = ScriptedTransport()
    older = make_client(tmp_path, transport=transport, clock=clock)

    older.record("dark_mode", True)
    older.flush()
    older.close()

    assert (set(changed(older)), transport.sent) == ({"store"}, [])
    assert (tmp_path / FILE_NAME).read_bytes() == before
    alter(tmp_path, f"PRAGMA user_version = {SCHEMA_VERSION}")
    make_client(tmp_path, transport=transport, clock=clock).flush()
    assert len(transport.sent) == 1


def test_a_folder_that_cannot_be_written_is_counted(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    client = make_client(tmp_path / "taken")

    client.record("dark_mode", True)
    client.close()

    assert changed(client) == {"store": 1}


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_flush_is_not_complete_where_the_last_value_could_not_be_written(
    tmp_path: Path, mode: str
) -> None:
    """Law: that nothing waits is no success where there is nothing to wait in."""
    folder = tmp_path / "taken"
    folder.write_text("a file")
    client = make_client(folder, mode=mode)
    client.record("dark_mode", True)

    failed = client.flush()
    folder.unlink()
    client.record("dark_mode", True)
    sent = client.flush()

    client.close()
    assert (failed.waiting, failed.complete, sent.complete) == (None, False, True)


def test_after_a_failure_close_does_not_try_again() -> None:
    transport, clock = ScriptedTransport([503]), FakeClock()
    client = make_client(transport=transport, clock=clock)
    client.record("dark_mode", True)
    client.flush()
    clock.advance(days=1)

    client.close()

    assert len(transport.sent) == 1


def test_a_closed_client_records_nothing_and_can_be_closed_again() -> None:
    transport = ScriptedTransport()
    client = make_client(transport=transport)
    client.close()

    client.record("dark_mode", True)
    client.flush()
    client.close()

    assert (changed(client), transport.sent) == ({"closed": 1}, [])


@pytest.mark.parametrize("now", [math.nan, math.inf, -1e300])
def test_a_broken_clock_is_counted(now: float) -> None:
    with make_client(clock=FakeClock(now)) as client:
        client.record("dark_mode", True)

    assert set(changed(client)) == {"internal"}


def test_an_interruption_passes_and_leaves_nothing(tmp_path: Path) -> None:
    pressed = iter([True])

    def interrupted(count: int) -> bytes:
        if next(pressed, False):
            raise KeyboardInterrupt
        return os.urandom(count)

    client = make_client(tmp_path, randomness=ByteRandomness(interrupted))

    with pytest.raises(KeyboardInterrupt):
        client.record("dark_mode", True)

    client.close()
    assert rows(tmp_path, CHARGES_AND_REPORTS) == [(0, 0)]


def test_threads_that_share_a_client_record_each_metric_once() -> None:
    client = make_client(registry=many_metrics(20))
    threads = [threading.Thread(target=record_all, args=(client, 20)) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    client.close()
    assert changed(client) == {"recorded": 20, "already_reported": 60, "uploaded": 20}
