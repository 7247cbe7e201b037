"""A revocation is finished whatever interrupts it, and a closed client opens nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from client_sdk.storage import outbox
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.store import Store
from tests.support.device.device import bytes_on_disk, changed, crashing, make_client, rows
from tests.support.device.device_transport import HookedTransport, ScriptedTransport

LOG = f"{FILE_NAME}-wal"
WAITING = "SELECT (SELECT count(*) FROM reports), (SELECT count(*) FROM uploads)"


def leave_a_sealed_upload(folder: Path) -> bytes:
    """Let a device seal an upload and crash; return the upload."""
    transport = ScriptedTransport([503])
    client = make_client(folder, transport=transport)
    client.record("dark_mode", True)
    client.flush()
    with crashing(folder):
        client.close()
    return transport.sent[0]


def wipe_and_crash(folder: Path) -> None:
    """Wipe what waits in *folder*, and crash before the scrub."""
    store = Store(folder)
    with store.transaction() as tx:
        outbox.clear(tx)
    with crashing(folder):
        store.close()


def test_a_crash_between_wipe_and_scrub_is_made_up_for_at_the_next_start(tmp_path: Path) -> None:
    sealed = leave_a_sealed_upload(tmp_path)
    wipe_and_crash(tmp_path)
    before = bytes_on_disk(tmp_path)

    later = make_client(tmp_path, consent="denied")

    after = bytes_on_disk(tmp_path)
    later.close()
    assert (sealed in before, sealed in after, sealed[-40:] in after) == (True, False, False)
    assert changed(later) == {}


def test_what_was_wiped_is_counted_even_if_it_could_not_be_scrubbed(tmp_path: Path) -> None:
    client = make_client(tmp_path)
    client.record("dark_mode", True)
    reader = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute(WAITING).fetchone()

    client.set_consent("denied")

    stopped = changed(client)
    reader.close()
    client.flush()
    assert stopped == {"recorded": 1, "revoked": 1, "store": 1}
    assert (tmp_path / LOG).stat().st_size == 0
    client.close()


def test_a_flush_that_outlives_close_does_not_open_the_database_again(tmp_path: Path) -> None:
    client = make_client(tmp_path, transport=HookedTransport(lambda: client.close()))
    client.record("dark_mode", True)

    client.flush()

    assert not (tmp_path / LOG).exists()  # an open one has a log
    assert rows(tmp_path, WAITING) == [(0, 1)]
    assert changed(client) == {"recorded": 1, "store": 1}


def test_a_denial_after_close_leaves_the_database_closed(tmp_path: Path) -> None:
    client = make_client(tmp_path, transport=ScriptedTransport([503]))
    client.record("dark_mode", True)
    client.close()

    client.set_consent("denied")

    assert not (tmp_path / LOG).exists()
    assert changed(client) == {"recorded": 1, "postponed": 1, "revoked": 1}
