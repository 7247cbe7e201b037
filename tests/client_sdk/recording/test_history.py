"""History and dry run: an application can show what was true and what is sent, to its user only."""

from __future__ import annotations

import logging
import os
import traceback
from pathlib import Path

import pytest

from client_sdk.recording.history import MAX_HISTORY, ReportedValue
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    CANARY,
    alter,
    bytes_on_disk,
    changed,
    make_client,
    metric_text,
    registry_of,
    rows,
)
from tests.support.device.device_transport import ScriptedTransport, reports_in

FAILING_OUTBOX = (
    "CREATE TRIGGER full BEFORE INSERT ON reports BEGIN SELECT RAISE(ABORT, 'disk full'); END"
)
_TIMES = """type = "key_value"
values = ["video", "chess"]
min = -10
max = 30
unit = "minutes"
most = 2"""


def test_a_history_has_what_was_true_beside_what_was_sent(tmp_path: Path) -> None:
    """Law: each report is there once, in order, with the payload that waits to be sent."""
    client = make_client(tmp_path, remember=True)
    for name, value in (("dark_mode", True), ("theme", "plain"), ("files", 7.4)):
        client.record(name, value)

    told = client.history()

    assert [(each.metric, each.truth) for each in told] == [
        ("dark_mode", "true"),
        ("theme", "plain"),
        ("files", "7.4 files"),
    ]
    assert [(each.payload,) for each in told] == rows(tmp_path, "SELECT payload FROM reports")
    client.close()


def test_a_history_tells_sets_and_mappings() -> None:
    """Law: values of every type are told as they were given."""
    registry = registry_of(
        metric_text("tools", 'type = "set"\nvalues = ["pen", "ink", "nib"]'),
        metric_text("times", _TIMES),
    )
    client = make_client(registry=registry, remember=True)
    client.record("tools", ["nib", "pen"])
    client.record("times", {"video": 12, "chess": -99})

    told = client.history()

    assert [each.truth for each in told] == ["pen, nib", "chess: -10 minutes, video: 12 minutes"]
    client.close()


def test_nothing_is_remembered_unless_asked() -> None:
    """Law: by default no true value outlives the call that reports it."""
    with make_client() as client:
        client.record("theme", CANARY)

        assert client.history() == []


def test_what_became_no_report_is_not_in_the_history(tmp_path: Path) -> None:
    """Law: refused values, failed transactions and dropped reports are not told."""
    with make_client(tmp_path, remember=True) as client:
        client.record("theme", CANARY)
        client.record("theme", "plain")
        client.record("theme", "unregistered")
        alter(tmp_path, FAILING_OUTBOX)
        client.record("dark_mode", True)
        alter(tmp_path, "DROP TRIGGER full")
        client.record("files", 3)

        assert [each.truth for each in client.history()] == [CANARY, "3 files"]


def test_a_report_that_the_application_drops_is_not_in_the_history() -> None:
    """Law: on_report has the first word."""
    with make_client(remember=True, on_report=lambda report: report.metric != "theme") as client:
        client.record("theme", "plain")
        client.record("dark_mode", True)

        assert [each.metric for each in client.history()] == ["dark_mode"]


def test_a_history_is_bounded() -> None:
    """Law: memory does not grow with use; the oldest is forgotten first."""
    with make_client(remember=True, clock=(clock := FakeClock())) as client:
        for _ in range(MAX_HISTORY + 3):
            client.record("dark_mode", True)
            clock.advance(days=7)

        epochs = [told.epoch for told in client.history()]

    assert len(epochs) == MAX_HISTORY
    assert epochs[-1] == epochs[0] + 7 * (MAX_HISTORY - 1)


def test_a_revocation_clears_the_history() -> None:
    """Law: a no leaves nothing of what was true."""
    with make_client(remember=True) as client:
        client.record("theme", "plain")
        client.set_consent("denied")

        assert client.history() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_no_history_of_its_parent() -> None:
    """Law: what was true in one process is not shown by another."""
    with make_client(remember=True) as client:
        client.record("theme", "plain")

        child = os.fork()
        if child == 0:
            os._exit(len(client.history()))

        assert os.waitpid(child, 0)[1] == 0
        assert len(client.history()) == 1


def test_what_was_true_is_in_no_repr_log_traceback_or_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Law: only the field ``truth`` of an entry that the application asked for shows a value."""
    caplog.set_level(logging.DEBUG)
    client = make_client(tmp_path, remember=True, mode="background")
    client.record("theme", CANARY)
    client.flush()
    (told,) = client.history()
    parts = (client, client._engine, client._engine.recorder.history, told, [told])
    pending = client._engine.recorder.prepare("theme", CANARY, FakeClock()())
    try:
        raise RuntimeError(told, pending)
    except RuntimeError:
        trace = traceback.format_exc()

    shown = repr((parts, pending)) + str(told) + f"{pending}" + trace + caplog.text

    client.close()
    assert told.truth == CANARY
    assert CANARY not in shown
    assert CANARY.encode() not in bytes_on_disk(tmp_path)


def test_an_entry_without_words_would_show_it() -> None:
    """Law: the test above would see a repr that shows the value."""
    assert CANARY in repr(ReportedValue("theme", 1, CANARY, b"").__dict__)


def test_a_dry_run_sends_nothing_and_says_what_it_would_send(tmp_path: Path) -> None:
    """Law: everything but the sending happens, in memory, and is counted as withheld."""
    transport = ScriptedTransport()
    client = make_client(tmp_path / "data", transport=transport, dry_run=True)
    client.record("dark_mode", True)

    client.flush()

    assert (transport.sent, (tmp_path / "data").exists()) == ([], False)
    assert [reports_in(body) for body in client.withheld()] == [1]
    assert changed(client) == {"recorded": 1, "withheld": 1}
    client.close()


def test_a_dry_run_needs_consent_too() -> None:
    """Law: a developer sees the gate as users do."""
    with make_client(consent="unknown", dry_run=True) as client:
        client.record("dark_mode", True)
        client.flush()

    assert (client.withheld(), changed(client)) == ((), {"consent": 1})


def test_without_a_dry_run_nothing_is_withheld() -> None:
    """Law: the list belongs to dry runs."""
    with make_client() as client:
        client.record("dark_mode", True)
        client.flush()

        assert client.withheld() == ()
