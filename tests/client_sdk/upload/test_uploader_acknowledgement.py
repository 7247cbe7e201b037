"""What a 202 says of the reports: it feeds the counts, and nothing in it can do harm."""

from __future__ import annotations

import pytest

from client_sdk.core.limits import MAX_ANSWER
from client_sdk.upload.transport import Answer, read_acknowledgement
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import ScriptedTransport


def test_reports_that_the_collector_rejected_are_not_counted_as_uploaded() -> None:
    body = b'{"accepted":1,"duplicate":true,"rejected":[{"column":0,"reason":"x","count":2}]}'
    desk = Desk(ScriptedTransport([Answer(202, None, body)]))
    desk.put(3)

    desk.flush()

    assert desk.counts() == {"uploaded": 1, "rejected": 2, "duplicates": 1}


def test_an_acknowledgement_cannot_reject_more_than_was_sent() -> None:
    body = b'{"accepted":0,"rejected":[{"count":9000000000000000000000}]}'
    desk = Desk(ScriptedTransport([Answer(202, None, body)]))
    desk.put(3)

    desk.flush()

    assert desk.counts() == {"rejected": 3}


@pytest.mark.parametrize(
    "body", [b"", b"OK", b"{}", b"<html></html>", b'{"accepted":"1"}', b'{"accepted":1']
)
def test_a_202_that_is_no_acknowledgement_keeps_the_upload(body: bytes) -> None:
    """Law: whoever takes everything without reading it has not acknowledged anything."""
    desk = Desk(transport := ScriptedTransport([Answer(202, None, body)]))
    desk.put(3)
    desk.flush()
    desk.clock.advance(days=1)

    desk.flush()

    assert transport.sent[0] == transport.sent[1]
    assert desk.counts() == {"refused": 1, "uploaded": 3}


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"\xff", b"null", b"[]", b"7", b"{", b'{"rejected":7}', b'{"duplicate":1}'),
        *(b'{"rejected":[7,null,[],{}]}', b'{"rejected":[{"count":true},{"count":"9"}]}'),
        *(b'{"rejected":[{"count":-5},{"count":2.5},{"count":1e999}]}', b"9" * 50_000),
        *(b"[" * 60_000, b'{"duplicate":true,"pad":"' + b"x" * MAX_ANSWER + b'"}'),
    ],
)
def test_an_unexpected_acknowledgement_rejects_nothing(body: bytes) -> None:
    assert read_acknowledgement(body) == (0, False)
