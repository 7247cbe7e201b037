"""However slowly a server speaks, nobody waits for it much longer than was asked."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Generator, Iterator

import pytest

from client_sdk.client import Client
from client_sdk.errors import TransportError
from client_sdk.exchange import Exchange
from client_sdk.transport import Answer, RequestsTransport
from tests.support.device import KEY, REGISTRY, changed

STATUS = b"HTTP/1.1 202 Accepted\r\n"
HEAD = STATUS + b"Content-Length: 1000\r\n\r\n"
DRIPS = 600  # bytes, one in a twentieth of a second: half a minute, if nobody gives up


class Dripping(socketserver.ThreadingTCPServer):
    """Says a beginning at once and then one byte now and then, until it is told to stop."""

    daemon_threads = True

    def __init__(self, beginning: bytes) -> None:
        self.beginning, self.stop, self.done = beginning, threading.Event(), threading.Event()
        super().__init__(("127.0.0.1", 0), _Drip)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Drip(socketserver.BaseRequestHandler):
    server: Dripping

    def handle(self) -> None:
        self.request.recv(65_536)
        try:
            self.request.sendall(self.server.beginning)
            for _ in range(DRIPS):
                if self.server.stop.wait(0.05):
                    return
                self.request.sendall(b"x")
            self.server.done.set()
        except OSError:
            return  # they hung up


@pytest.fixture(params=[b"", STATUS + b"X-Slow: ", HEAD], ids=["status", "headers", "body"])
def dripping(request: pytest.FixtureRequest) -> Iterator[Dripping]:
    with Dripping(request.param) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.stop.set()
        server.shutdown()
        thread.join()


def outcome(transport: RequestsTransport) -> Answer | str:
    try:
        return transport.send(b"{}", 0.3)
    except TransportError as error:
        return str(error)


def test_a_dripping_answer_is_given_up_and_its_status_counts(dripping: Dripping) -> None:
    transport = RequestsTransport(dripping.url, KEY)

    first = outcome(transport)

    expected = Answer(202) if dripping.beginning == HEAD else "no answer: timeout"
    assert (first, dripping.done.is_set()) == (expected, False)


def test_close_is_not_held_by_a_dripping_answer(dripping: Dripping) -> None:
    client = Client(dripping.url, KEY, REGISTRY, consent="granted", data_dir=None, mode="manual")
    client.record("dark_mode", True)

    client.close()

    reason = "uploaded" if dripping.beginning == HEAD else "network"
    assert not dripping.done.is_set()
    assert changed(client) == {"recorded": 1, reason: 1}


def test_no_second_request_runs_beside_one_that_was_given_up() -> None:
    with Dripping(STATUS + b"X-Slow: ") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        transport = RequestsTransport(server.url, KEY)

        outcomes = [outcome(transport) for _ in range(2)]

        server.stop.set()
        server.shutdown()
        thread.join()
    assert outcomes == ["no answer: timeout", "no answer: an earlier request still runs"]


def test_what_a_request_raises_reaches_whoever_waits() -> None:
    def broken() -> Generator[int, None, None]:
        raise UnicodeError("label too long")
        yield 1

    with pytest.raises(UnicodeError, match="too long"):
        Exchange(broken()).latest_within(30.0)


def test_an_answer_that_fails_later_counts_as_far_as_it_came() -> None:
    def breaking() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise OSError("cut")

    assert Exchange(breaking()).latest_within(30.0) == 2


def test_without_a_thread_to_spare_the_request_is_made_all_the_same() -> None:
    size = threading.stack_size(1 << 46)  # bytes; no machine has room for it, so start() fails
    try:
        latest = Exchange(iter_once(7)).latest_within(30.0)
    finally:
        threading.stack_size(size)

    assert latest == 7


def iter_once(number: int) -> Generator[int, None, None]:
    yield number
