"""The uploader: what an answer means, the same bytes on every try, and what a flush returns."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest

from client_sdk import Delivery
from client_sdk.core.limits import MAX_ANSWER
from client_sdk.testing import answer_of
from client_sdk.upload.schedule import FIRST_BACKOFF
from client_sdk.upload.transport import Answer, Outcome, outcome_of, read_acknowledgement
from tests.support.device.clock import FakeClock
from tests.support.device.device import alter, make_client
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import ScriptedTransport


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (202, Outcome.ACCEPTED),
        *((status, Outcome.TRANSIENT) for status in (408, 425, 429, 500, 502, 503, 504, 599)),
        *((status, Outcome.PERMANENT) for status in (400, 409, 410, 413, 415, 422)),
        *((s, Outcome.INCAPABLE) for s in (200, 204, 301, 302, 307, 401, 403, 404, 405, 407, 600)),
    ],
)
def test_every_status_has_one_meaning(status: int, outcome: Outcome) -> None:
    assert outcome_of(answer_of(status)) is outcome


@pytest.mark.parametrize("status", [400, 409, 410, 413, 415, 422, 202])
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        *(("", body) for body in (b"OK", b"{}", b'{"accepted":"1"}', b'{"accepted":1')),
        ("text/html", b"<html><h1>413 Request Entity Too Large</h1></html>"),
        ("", b""),
        ("application/problem+json", b""),
        ("application/problem+json", b'{"type": "about:blank", "status": %d}'),
        ("application/problem+json", b'{"type": "urn:hearsay:problem:x", "status": 500}'),
        ("application/problem+json", b'{"type": ["urn:hearsay:problem:x"], "status": %d}'),
        ("application/json", b'{"type": "urn:hearsay:problem:x", "status": %d}'),
    ],
)
def test_an_answer_that_is_not_the_collectors_own_settles_nothing(
    status: int, content_type: str, body: bytes
) -> None:
    """Law: a proxy speaks for the way, and only the collector for an upload.

    Whoever takes everything without reading it, a 202, has not acknowledged anything.
    """
    said = body % status if b"%d" in body else body

    assert outcome_of(Answer(status, None, said, content_type)) is Outcome.INCAPABLE


def test_uploads_of_a_day_are_sent_in_every_order() -> None:
    """Law: the order in which an application records is not that in which uploads leave.

    Of 120 fair shuffles of three, one of the six orders is missing once in 10^8 runs.
    """
    desk, orders = Desk(transport := ScriptedTransport()), set()
    for _ in range(120):
        for platform in ("mac", "linux", "other"):
            desk.put(1, platform)
        desk.flush()
        sent = [json.loads(body)["segment"]["platform"] for body in transport.sent]
        orders.add(tuple(sent[-3:]))

    assert orders == set(permutations(("mac", "linux", "other")))


def test_what_waits_since_an_earlier_day_is_sent_first() -> None:
    """Law: chance keeps no report waiting for longer than those of its day."""
    desk = Desk(transport := ScriptedTransport())
    desk.put(1, "mac")
    desk.clock.advance(days=1)
    for platform in ("linux", "other"):
        desk.put(1, platform)

    desk.flush()

    assert json.loads(transport.sent[0])["segment"]["platform"] == "mac"


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        (
            b'{"accepted":1,"duplicate":true,"rejected":[{"column":0,"reason":"x","count":2}]}',
            {"uploaded": 1, "rejected": 2, "duplicates": 1},
        ),
        (b'{"accepted":0,"rejected":[{"count":9000000000000000000000}]}', {"rejected": 3}),
    ],
    ids=["some", "more than sent"],
)
def test_rejected_reports_are_counted_as_such_and_never_more_than_were_sent(
    body: bytes, counts: dict[str, int]
) -> None:
    desk = Desk(ScriptedTransport([Answer(202, None, body)]))
    desk.put(3)

    desk.flush()

    assert desk.counts() == counts


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


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_flush_says_that_all_has_arrived(tmp_path: Path, mode: str) -> None:
    with make_client(tmp_path, mode=mode) as client:
        nothing = client.flush()
        client.record("dark_mode", True)

        delivery = client.flush()

    assert nothing == delivery == Delivery(waiting=0, wait=0.0)
    assert delivery.complete


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_flush_says_what_still_waits_and_for_how_long(tmp_path: Path, mode: str) -> None:
    clock = FakeClock()
    client = make_client(tmp_path, mode=mode, clock=clock, transport=ScriptedTransport([503]))
    client.record("dark_mode", True)

    first = client.flush()
    clock.advance(seconds=first.wait)
    second = client.flush()

    client.close()
    assert (first.waiting, first.complete) == (1, False)
    assert 0 <= first.wait <= FIRST_BACKOFF
    assert second.complete


def test_a_flush_without_a_readable_database_does_not_say_that_all_arrived(tmp_path: Path) -> None:
    client = make_client(tmp_path)
    client.record("dark_mode", True)
    alter(tmp_path, "DROP TABLE uploads")

    delivery = client.flush()

    client.close()
    assert delivery == Delivery(None)
    assert not delivery.complete


def test_a_flush_of_a_closed_client_knows_nothing(tmp_path: Path) -> None:
    client = make_client(tmp_path)
    client.close()

    assert client.flush() == Delivery(None)
    assert client.stats()["store"] == 0
