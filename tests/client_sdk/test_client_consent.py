"""Consent: the first gate, and the one that wipes, whatever interrupts it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.stats import Reason
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent, ConsentSwitch
from client_sdk.recording.recorder import Recorder
from client_sdk.storage import outbox
from client_sdk.storage.ledger import Ledger
from client_sdk.storage.outbox import Outbox
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.store import Store
from tests.support.device.clock import NOON
from tests.support.device.device import (
    REGISTRY,
    alter,
    bytes_on_disk,
    changed,
    crashing,
    make_client,
    rows,
)
from tests.support.device.device_transport import HookedTransport, ScriptedTransport
from tests.support.enumeration.enumeration import Untouchable

if TYPE_CHECKING:
    from client_sdk.storage.schema import Transaction

FAILING_WIPE = (
    "CREATE TRIGGER stuck BEFORE DELETE ON reports BEGIN SELECT RAISE(ABORT, 'disk full'); END"
)
WAITING = "SELECT (SELECT count(*) FROM reports), (SELECT count(*) FROM uploads)"


@pytest.mark.parametrize("consent", ["denied", "unknown", Consent.DENIED, Consent.UNKNOWN])
def test_without_consent_nothing_is_recorded_and_no_file_is_made(
    tmp_path: Path, consent: Consent | str
) -> None:
    folder = tmp_path / "data"
    with make_client(folder, consent=consent, randomness=Untouchable()) as client:
        client.record("dark_mode", True)
        client.flush()

    assert changed(client) == {"consent": 1}
    assert not folder.exists()


@pytest.mark.parametrize("consent", [True, None, "yes", "GRANTED", 1])
def test_only_the_three_answers_are_a_consent(consent: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^consent="):
        Consent.of(consent)


def test_an_invalid_answer_leaves_the_old_one_standing() -> None:
    with make_client() as client:
        with pytest.raises(InvalidParameterError):
            client.set_consent("maybe")  # type: ignore[arg-type]  # on purpose

        client.record("dark_mode", True)

    assert client.stats()["recorded"] == 1


def test_a_revocation_wipes_reports_and_sealed_uploads_and_sends_nothing(tmp_path: Path) -> None:
    transport = ScriptedTransport([503])
    client = make_client(tmp_path, transport=transport)
    client.record("dark_mode", True)
    client.flush()
    client.record("theme", "plain")

    client.set_consent("denied")
    client.flush()
    client.close()

    assert rows(tmp_path, WAITING) == [(0, 0)]
    assert changed(client) == {"recorded": 2, "postponed": 1, "revoked": 2}
    assert len(transport.sent) == 1


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_revocation_leaves_no_byte_of_what_was_sealed(tmp_path: Path, mode: str) -> None:
    transport = ScriptedTransport([503])
    client = make_client(tmp_path, mode=mode, transport=transport)
    client.record("dark_mode", True)
    client.flush()
    (sealed,) = transport.sent
    ((identifier,),) = rows(tmp_path, "SELECT id FROM uploads")
    before = bytes_on_disk(tmp_path)

    client.set_consent(Consent.DENIED)
    if mode == "background":  # its thread carries the denial out
        client.close()

    after = bytes_on_disk(tmp_path)
    client.close()
    assert (sealed in before, sealed in after, sealed[-40:] in after) == (True, False, False)
    assert (identifier in before, identifier in after) == (True, False)  # the collector knows it


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_client_made_after_a_denial_wipes_what_an_earlier_one_left(
    tmp_path: Path, mode: str
) -> None:
    earlier = make_client(tmp_path, transport=ScriptedTransport([503]))
    earlier.record("dark_mode", True)
    earlier.close()

    later = make_client(tmp_path, mode=mode, consent="denied")
    if mode == "background":  # an application does not wait for the disk at its start
        later.close()

    assert changed(later) == {"revoked": 1}
    assert rows(tmp_path, WAITING) == [(0, 0)]
    later.close()


def test_a_wipe_that_failed_is_made_up_for(tmp_path: Path) -> None:
    client = make_client(tmp_path)
    client.record("dark_mode", True)
    alter(tmp_path, FAILING_WIPE)
    client.set_consent("denied")
    alter(tmp_path, "DROP TRIGGER stuck")

    client.flush()

    client.close()
    assert rows(tmp_path, WAITING) == [(0, 0)]
    assert changed(client) == {"recorded": 1, "store": 1, "revoked": 1}


def test_an_unknown_answer_keeps_what_waits_but_sends_nothing() -> None:
    transport = ScriptedTransport()
    client = make_client(transport=transport)
    client.record("dark_mode", True)

    client.set_consent("unknown")
    client.flush()
    held = len(transport.sent)
    client.set_consent("granted")
    client.close()

    assert (held, len(transport.sent)) == (0, 1)


class RevokingStore(Store):
    """A store whose turn comes just after the user has said no."""

    def __init__(self, switch: ConsentSwitch) -> None:
        super().__init__(None)
        self._switch = switch

    @contextmanager
    def transaction(self, *, growing: bool = False) -> Iterator[Transaction]:
        self._switch.consent = Consent.DENIED
        with super().transaction() as tx:
            yield tx


def test_a_value_whose_turn_comes_after_a_revocation_is_not_recorded() -> None:
    switch = ConsentSwitch(Consent.GRANTED)
    recorder = Recorder(
        *(REGISTRY, RevokingStore(switch), Ledger(Caps()), Outbox({}), Untouchable(), switch)
    )
    pending = recorder.prepare("dark_mode", True, NOON)

    assert recorder.commit([pending]) == {Reason.CONSENT: 1}


LOG = f"{FILE_NAME}-wal"


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


def test_a_denial_after_close_still_wipes_and_leaves_the_database_closed(tmp_path: Path) -> None:
    client = make_client(tmp_path, transport=ScriptedTransport([503]))
    client.record("dark_mode", True)
    client.close()

    client.set_consent("denied")

    assert not (tmp_path / LOG).exists()
    assert rows(tmp_path, WAITING) == [(0, 0)]
    assert changed(client) == {"recorded": 1, "postponed": 1, "revoked": 1}
