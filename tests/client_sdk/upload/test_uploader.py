"""The uploader: what it sends, in which order, and in how many pieces."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from client_sdk import Delivery
from client_sdk.core.epoch import DAY, day_of
from client_sdk.core.errors import TransportError
from client_sdk.core.limits import MAX_ANSWER, SIZE_CLASSES
from client_sdk.privacy.consent import Consent
from client_sdk.storage.outbox import Outbox
from client_sdk.storage.store import Store
from client_sdk.testing import answer_of
from client_sdk.upload.schedule import FIRST_BACKOFF, FIRST_SPREAD, MAX_BACKOFF
from client_sdk.upload.sealing import MAX_SEALED
from client_sdk.upload.transport import (
    Answer,
    Outcome,
    RequestsTransport,
    outcome_of,
    read_acknowledgement,
)
from client_sdk.wire.reports import GATEWAY, Report
from tests.support.device.clock import FakeClock
from tests.support.device.device import KEY, alter, make_client, rows
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import LossyCollector, ScriptedTransport, reports_in
from tests.support.enumeration.seeded import SeededRandomness


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


class FailingAt:
    """A collector that fails at the uploads of one platform, and accepts all others."""

    def __init__(self, platform: str, status: int = 500) -> None:
        self._platform, self._status = platform, status
        self.seen: list[tuple[str, bytes]] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        platform = json.loads(body)["segment"]["platform"]
        self.seen.append((platform, body))
        return answer_of(self._status if platform == self._platform else 202)


def flush_later(desk: Desk, times: int = 1) -> None:
    for _ in range(times):
        desk.clock.advance(seconds=MAX_BACKOFF)
        desk.flush()


def test_a_long_outage_does_not_seal_every_report_by_itself() -> None:
    desk = Desk(transport := ScriptedTransport([503] * 36))
    for _ in range(36):
        desk.put(1)
        flush_later(desk)

    flush_later(desk, 20)

    days = 36 * MAX_BACKOFF // DAY + 1
    assert len(set(transport.sent)) <= MAX_SEALED + days
    assert desk.counts() == {"postponed": 36, "uploaded": 36}


def test_uploads_that_always_fail_keep_none_from_being_sent_however_many() -> None:
    """Law: also when more are stuck than are sealed during an outage."""
    desk = Desk(collector := FailingAt("mac"))
    for _ in range(40):
        desk.put(1, "mac")
        flush_later(desk)
    stuck = len({body for _, body in collector.seen})
    desk.put(1, "linux")

    flush_later(desk, 60)

    assert stuck > MAX_SEALED
    assert desk.counts()["uploaded"] == 1


class RevokingRandomness(SeededRandomness):
    """A draw during which the user says no: after the upload was chosen, before it is sent."""

    desk: Desk

    def uniform(self, n: int) -> int:
        self.desk.switch.consent = Consent.DENIED
        return super().uniform(n)


def test_a_revocation_between_sealing_and_sending_is_obeyed() -> None:
    randomness = RevokingRandomness(b"no")
    desk = randomness.desk = Desk(transport := ScriptedTransport(), randomness)
    desk.put(1)

    desk.flush()

    assert (transport.sent, desk.waiting(), desk.counts()) == ([], 1, {})


PROXY = Answer(413, None, b"<html>413 Request Entity Too Large</html>", "text/html")
OURS = answer_of(413)
UNSEEN = TransportError("no connection", unseen=True)
MANY = 40  # reports of as many columns: 4 KiB of JSON


class Narrow(LossyCollector):
    """A collector behind a proxy that lets no body through that is longer than *limit*."""

    def __init__(self, limit: int, refusal: Answer) -> None:
        super().__init__(())
        self._limit, self._refusal = limit, refusal
        self.refused: list[bytes] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        if len(body) > self._limit:
            self.refused.append(body)
            return self._refusal
        return super().send(body, timeout)


def test_reports_keep_their_age_and_place_when_they_wait_again(tmp_path: Path) -> None:
    """Law: neither a 413 nor a missing connection makes a report younger, or loses its turn."""
    desk = Desk(ScriptedTransport([UNSEEN] * 20))
    desk.put(3, "mac")
    desk.clock.advance(days=5)
    desk.put(2, "linux")
    for _ in range(8):
        desk.flush()
        desk.clock.advance(days=1)

    with desk.store.transaction() as tx:
        waiting = tx.execute("SELECT segment, day FROM reports ORDER BY number").fetchall()
        assert tx.execute("SELECT count(*) FROM uploads").fetchone() == (0,)
    assert [json.loads(segment)["platform"] for segment, _ in waiting] == ["mac"] * 3 + [
        "linux"
    ] * 2
    assert {day for _, day in waiting} == {20_000, 20_005}
    desk.clock.advance(days=2)
    desk.flush()
    assert desk.counts()["too_old"] == 3


def test_a_refused_connection_leaves_nothing_sealed(tmp_path: Path) -> None:
    """Law: a collector that is down for a while costs no upload of its own for each try."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    client = make_client(tmp_path, transport=RequestsTransport(f"http://127.0.0.1:{port}", KEY))
    client.record("dark_mode", True)

    client.flush()

    client.close()
    assert client.stats()["network"] == 1
    assert rows(tmp_path, "SELECT count(*) FROM uploads") == [(0,)]
    assert rows(tmp_path, "SELECT count(*) FROM reports") == [(1,)]


def test_a_collector_that_hangs_up_leaves_the_upload_sealed(tmp_path: Path) -> None:
    """Law: what left this machine may have been taken, whatever the network said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = make_client(tmp_path, transport=RequestsTransport(f"http://127.0.0.1:{port}", KEY))
        client.record("dark_mode", True)
        client.flush(timeout=0.5)
        client.close()

    assert rows(tmp_path, "SELECT count(*) FROM uploads") == [(1,)]


def test_after_no_connection_the_next_try_may_be_of_other_uploads_soon() -> None:
    """Law: nobody saw the upload, so its time tells nobody of the next."""
    desk = Desk(transport := ScriptedTransport([UNSEEN, UNSEEN]))
    desk.put(1)
    desk.clock.advance(seconds=desk.uploader.wait(desk.clock()))
    desk.uploader.run(60)
    wait = desk.uploader.wait(desk.clock())
    desk.put(1)
    desk.clock.advance(seconds=wait)
    desk.uploader.run(60)

    assert wait <= FIRST_SPREAD
    assert [reports_in(body) for body in transport.sent] == [1, 2]


class Meanwhile:
    """Asks another process to flush while the first request is on its way, and ends that so."""

    def __init__(self, end: Answer | TransportError, flush: Callable[[], None]) -> None:
        self._end, self._flush = end, flush
        self.taken = LossyCollector(())

    def send(self, body: bytes, timeout: float) -> Answer:
        if self._flush is _nothing:
            return self.taken.send(body, timeout)
        flush, self._flush = self._flush, _nothing
        flush()
        if isinstance(self._end, TransportError):
            raise self._end
        return self._end


def _nothing() -> None:
    """Flush nothing more."""


@pytest.mark.parametrize("end", [UNSEEN, PROXY], ids=["no connection", "too large"])
def test_what_another_process_has_sent_meanwhile_is_not_sealed_anew(
    end: Answer | TransportError, tmp_path: Path
) -> None:
    """Law: of several processes on one folder, none makes an upload of what another has sent."""
    clock, theirs = FakeClock(), LossyCollector(["response"])
    other = Desk(theirs, SeededRandomness(b"other"), Store(tmp_path), clock)
    ours = Meanwhile(end, other.flush)
    desk = Desk(ours, store=Store(tmp_path), clock=clock)
    desk.put(MANY)

    for _ in range(4):
        desk.flush()
        clock.advance(seconds=MAX_BACKOFF)

    assert (theirs.reports(), desk.waiting()) == (MANY, 0)
    assert ours.taken.bodies == theirs.bodies  # the same upload once more, byte for byte


@pytest.mark.parametrize("refusal", [PROXY, OURS], ids=["proxy", "ours"])
def test_pieces_that_are_too_large_again_are_split_before_the_process_ends(
    refusal: Answer,
) -> None:
    """Law: a program that ends after one upload leaves no piece that is known to be refused."""
    desk = Desk(collector := Narrow(SIZE_CLASSES[0], refusal))
    desk.put(8 * MANY)  # 200 of them in a first upload of 16 KiB or more
    for run in range(60):
        desk.clock.advance(seconds=desk.uploader.wait(desk.clock()))
        desk.uploader.run(60)
        desk = Desk(collector, SeededRandomness(b"run %d" % run), desk.store, desk.clock)

    assert (collector.reports(), desk.waiting()) == (8 * MANY, 0)


def test_a_refusal_splits_each_piece_that_it_concerns_and_no_other() -> None:
    """Law: a piece that would be refused as well is not tried, and one report stays as sealed."""
    desk = Desk(Narrow(SIZE_CLASSES[0], PROXY))
    sizes = [2_000] + [400] * 4 + [2_000] + [1_000] * 2  # of payloads; in 4 KiB: 0-1, 2-4, 5, 6-7
    for epoch, size in enumerate(sizes):
        put_later(desk, epoch, bytes(size))

    desk.flush()

    with desk.store.transaction() as tx:
        bodies = tx.execute("SELECT body FROM uploads ORDER BY number").fetchall()
    epochs = [[column["epoch"] for column in json.loads(body)["columns"]] for (body,) in bodies]
    assert epochs == [[5], [1], [2], [3], [4], [6], [7], [0]]


def test_a_gateway_halves_no_body_below_a_kilobyte() -> None:
    """Law: a proxy that refuses everything is not met with ever more uploads."""
    desk = Desk(collector := Narrow(0, PROXY), bounds=GATEWAY)
    desk.put(500)

    desk.flush()

    assert len(collector.refused) <= 8
    assert desk.waiting() == 500
    assert "rejected" not in desk.counts()


@pytest.mark.parametrize("cut_off", [False, True], ids=["in reach", "out of reach"])
@pytest.mark.parametrize("restarts", [False, True], ids=["one process", "many"])
def test_a_collector_that_refuses_lengths_links_no_later_report(
    restarts: bool, cut_off: bool
) -> None:
    """Law: pieces of a refused upload hold nothing newer than it, also after a lost connection."""
    collector = Nosy(cut_off=cut_off)
    desk = Desk(collector)
    desk.put(MANY - 3)  # the last piece has room for more
    for turn in range(60):
        desk.clock.advance(seconds=desk.uploader.wait(desk.clock()) + 1)
        desk.uploader.run(60)
        if turn in range(0, 10, 2):
            put_later(desk, 100 + turn)
        if restarts:
            desk = Desk(collector, SeededRandomness(b"%d" % turn), desk.store, desk.clock)

    assert desk.waiting() == 0
    assert collector.epochs() >= {*range(MANY - 3), 100, 108}
    assert collector.linked() == []


class Nosy:
    """Takes a kilobyte, refuses more, and remembers all that it has seen.

    Args: cut_off: whether every second request finds no connection.
    """

    def __init__(self, *, cut_off: bool) -> None:
        self._cut_off, self._tries = cut_off, 0
        self.seen: list[frozenset[int]] = []  # epochs of each upload

    def send(self, body: bytes, timeout: float) -> Answer:
        self._tries += 1
        if self._cut_off and self._tries % 2 == 0:
            raise UNSEEN
        self.seen.append(frozenset(column["epoch"] for column in json.loads(body)["columns"]))
        return PROXY if len(body) > SIZE_CLASSES[0] else answer_of(202)

    def epochs(self) -> set[int]:
        return set().union(*self.seen)

    def linked(self) -> list[frozenset[int]]:
        """Return the uploads that hold reports seen before beside such as were not."""
        known: set[int] = set()
        linking = []
        for epochs in self.seen:
            if known & epochs and epochs - known:
                linking.append(epochs)
            known |= epochs
        return linking


def put_later(desk: Desk, epoch: int, payload: bytes = b"\x01") -> None:
    day = day_of(desk.clock())
    with desk.store.transaction() as tx:
        report = Report(b"digest", epoch, payload)
        Outbox({"platform": "mac"}).put(tx, report, day, ["platform"])
