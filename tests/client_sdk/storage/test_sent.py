"""What was sent: the last reports that were acknowledged, for the user to see."""

from __future__ import annotations

import json

import pytest

from client_sdk.core.epoch import day_of
from client_sdk.core.limits import MAX_ACKNOWLEDGED
from client_sdk.core.wire import Report, from_base64url
from client_sdk.recording.erasure import erase
from client_sdk.storage.outbox import AcknowledgedReport, acknowledged_reports
from client_sdk.upload.transport import Answer
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import ScriptedTransport


def recalled(desk: Desk) -> list[AcknowledgedReport]:
    with desk.store.transaction() as tx:
        return list(acknowledged_reports(tx))


def test_what_was_acknowledged_is_kept_as_it_was_on_the_wire() -> None:
    """Law: digest, epoch and payload of every report of the upload, and the day of its answer."""
    desk = Desk(transport := ScriptedTransport())
    desk.put(3)

    desk.flush()

    columns = json.loads(transport.sent[0])["columns"]
    said = [
        Report(from_base64url(c["metric"]), c["epoch"], from_base64url(c["payloads"]))
        for c in columns
    ]
    found = recalled(desk)
    assert [kept.report for kept in reversed(found)] == said
    assert {kept.day for kept in found} == {day_of(desk.clock())}


@pytest.mark.parametrize("answer", [Answer(503), Answer(400), Answer(401)])
def test_what_was_not_acknowledged_is_not_kept(answer: Answer) -> None:
    """Law: only an acknowledged report counts as sent."""
    desk = Desk(ScriptedTransport([answer]))
    desk.put(3)

    desk.flush()

    assert recalled(desk) == []


def test_only_the_last_reports_are_kept() -> None:
    """Law: MAX_ACKNOWLEDGED of them, the latest."""
    desk = Desk(ScriptedTransport())
    desk.put(MAX_ACKNOWLEDGED + 7)

    desk.flush()

    assert [kept.report.epoch for kept in recalled(desk)] == list(
        range(MAX_ACKNOWLEDGED + 6, 6, -1)
    )


def test_a_wipe_forgets_what_was_sent() -> None:
    """Law: a denial leaves nothing to look at."""
    desk = Desk(ScriptedTransport())
    desk.put(3)
    desk.flush()

    with desk.store.transaction() as tx:
        erase(tx, desk.store)

    assert recalled(desk) == []
