"""When reports may be sealed anew: only if nobody can have taken the upload they were in."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from client_sdk.core.epoch import day_of
from client_sdk.core.errors import TransportError
from client_sdk.core.limits import SIZE_CLASSES
from client_sdk.storage.outbox import Outbox
from client_sdk.storage.store import Store
from client_sdk.testing import answer_of
from client_sdk.upload.schedule import FIRST_SPREAD, MAX_BACKOFF
from client_sdk.upload.transport import Answer, RequestsTransport
from client_sdk.wire.reports import GATEWAY, Report
from tests.support.device.clock import FakeClock
from tests.support.device.device import KEY, make_client, rows
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import LossyCollector, ScriptedTransport, reports_in
from tests.support.enumeration.seeded import SeededRandomness

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
