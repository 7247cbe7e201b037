"""A denial is carried out: at once where that can be, else before anything else happens."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from client_sdk.client import Client
from client_sdk.privacy.consent import Consent, OptOuts, set_user_opt_out
from client_sdk.recording.erasure import MAX_WAIT
from client_sdk.storage.schema import FILE_NAME
from tests.support.device.device import CANARY, alter, changed, make_client, rows
from tests.support.device.device_transport import HookedTransport, ScriptedTransport
from tests.support.patience import PATIENCE

FAILING_WIPE = (
    "CREATE TRIGGER stuck BEFORE DELETE ON reports BEGIN SELECT RAISE(ABORT, 'busy'); END"
)
MENDED = "DROP TRIGGER stuck"
REPORTS = "SELECT count(*) FROM reports"


def denied_in_vain(
    folder: Path, mode: str = "manual", transport: ScriptedTransport | None = None
) -> Client:
    """Return a client that has one report, and was denied while that could not be deleted."""
    client = make_client(folder, mode=mode, transport=transport)
    client.record("dark_mode", True)
    client.flush(0.0)  # writes the queue down and sends nothing
    alter(folder, FAILING_WIPE)
    client._engine.switch.consent = Consent.DENIED
    client._engine.erasure.apply()
    client._engine.erasure.run()
    return client


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_closing_makes_up_for_a_wipe_that_failed(tmp_path: Path, mode: str) -> None:
    """Law: a denial outlives the moment in which the database was busy."""
    client = denied_in_vain(tmp_path, mode)
    alter(tmp_path, MENDED)

    client.close()

    counts = client.stats()
    assert (counts["store"] >= 1, counts["revoked"], rows(tmp_path, REPORTS)) == (True, 1, [(0,)])


def test_a_failing_last_try_does_not_keep_a_manual_client_from_wiping(tmp_path: Path) -> None:
    """Law: closing wipes even where it would not send."""
    client = denied_in_vain(tmp_path)
    client._engine.uploader._schedule._failures = 1
    alter(tmp_path, MENDED)

    client.close()

    assert rows(tmp_path, REPORTS) == [(0,)]


def test_the_thread_makes_up_for_a_wipe_that_failed(tmp_path: Path) -> None:
    """Law: nobody need close, and each further try waits longer."""
    client = denied_in_vain(tmp_path)
    waits = [client._engine._idle() for _ in range(10)]
    alter(tmp_path, MENDED)

    client._engine._idle()

    assert rows(tmp_path, REPORTS) == [(0,)]
    assert waits == sorted(waits)
    assert (waits[0] < 60, waits[-1]) == (True, MAX_WAIT)
    client.close()


def test_a_new_consent_does_not_save_what_was_denied(tmp_path: Path) -> None:
    """Law: until the wipe is done nothing is sent and nothing written; then all is as ever."""
    client = denied_in_vain(tmp_path, transport=(transport := ScriptedTransport()))
    client.set_consent("granted")
    client.record("theme", "plain")
    client.flush()
    held = (client.stats()["recorded"], len(transport.sent))
    alter(tmp_path, MENDED)

    client.record("theme", "plain")
    client.flush()

    counts = client.stats()
    assert held == (1, 0)
    assert (counts["recorded"], counts["revoked"], counts["uploaded"]) == (2, 1, 1)
    client.close()


def test_a_pass_that_is_under_way_sends_nothing_that_was_denied(tmp_path: Path) -> None:
    """Law: a denial stops a pass between two uploads, even if consent is given anew at once."""

    def deny_and_grant() -> None:
        client._engine.switch.erasures_requested += 1

    transport = HookedTransport(deny_and_grant)
    client = make_client(tmp_path, transport=transport, segment={"platform": "mac"})
    client.record("dark_mode", True)
    client._engine.uploader.flush(PATIENCE)
    client._engine.uploader.flush(PATIENCE)

    assert (len(transport.sent), client._engine.switch.may_send) == (1, False)
    client.close()


def test_nobody_waits_for_a_locked_database_to_deny(tmp_path: Path) -> None:
    """Law: in background mode the answer of the user is taken at once and carried out after."""
    make_client(tmp_path, transport=ScriptedTransport([503])).record("dark_mode", True)
    client = make_client(tmp_path, mode="background")
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    client.set_consent("denied")

    before = changed(client)
    other.execute("ROLLBACK")
    other.close()
    client.close()
    assert (before, changed(client)) == ({}, {"revoked": 1})
    assert rows(tmp_path, REPORTS) == [(0,)]


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_an_opt_out_shows_at_once_and_takes_the_truth_along(tmp_path: Path, mode: str) -> None:
    """Law: what the application shows of consent and history is never older than the user's no."""
    opt_outs = OptOuts(tmp_path, {}, tmp_path / "none.toml")
    client = make_client(tmp_path, mode=mode, opt_outs=opt_outs, remember=True)
    client.record("theme", CANARY)
    client.flush(0.0)
    known = [told.truth for told in client.history()]

    set_user_opt_out(tmp_path, off=True)

    assert (known, client.history()) == ([CANARY], [])
    assert (client.consent, client.consent_level) == ("denied", "user")
    client.close()
    assert rows(tmp_path, REPORTS) == [(0,)]
