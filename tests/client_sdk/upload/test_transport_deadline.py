"""However slowly or falsely a server speaks, nobody waits for it long or tells it anything."""

from __future__ import annotations

import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count

import pytest
import requests

from client_sdk.client import Client
from client_sdk.core.errors import TransportError
from client_sdk.upload.connections import Connections, Exchange
from client_sdk.upload.transport import Answer, RequestsTransport
from tests.support.device.device import KEY, REGISTRY, changed
from tests.support.device.loopback import LoopbackServer, running
from tests.support.device.tls import TRUSTED, Proxy, TlsCollector
from tests.support.patience import PATIENCE

STATUS = b"HTTP/1.1 202 Accepted\r\n"
HEAD = STATUS + b"Content-Length: 1000\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HANDSHAKE = b"\x16\x03\x03\x40\x00"  # the head of a record of 16 KiB
DRIPS = 600  # bytes, one in a twentieth of a second: half a minute, if nobody gives up


class Dripping(LoopbackServer):
    """Says a beginning at once and then one byte now and then, until it is told to stop."""

    def __init__(self, beginning: bytes, drip: bytes = b"x", pause: float = 0.05) -> None:
        self.beginning, self.drip, self.pause = beginning, drip, pause
        self.stop, self.begun, self.done = (threading.Event() for _ in range(3))
        super().__init__(_Drip)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Drip(socketserver.BaseRequestHandler):
    server: Dripping

    def handle(self) -> None:
        self.request.recv(65_536)
        try:
            self.request.sendall(self.server.beginning)
            self.server.begun.set()
            drips = count() if self.server.pause == 0 else range(DRIPS)
            for _ in drips:
                if self.server.stop.wait(self.server.pause):
                    return
                self.request.sendall(self.server.drip)
            self.server.done.set()
        except OSError:
            return  # they hung up


@contextmanager
def serving(server: Dripping) -> Iterator[Dripping]:
    """Run *server* until the block ends."""
    with running(server):
        try:
            yield server
        finally:
            server.stop.set()


@pytest.fixture(params=[b"", STATUS + b"X-Slow: ", HEAD], ids=["status", "headers", "body"])
def dripping(request: pytest.FixtureRequest) -> Iterator[Dripping]:
    with serving(Dripping(request.param)) as server:
        yield server


def outcome(transport: RequestsTransport, timeout: float = 0.3) -> Answer | str:
    try:
        return transport.send(b"{}", timeout)
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

    reason = "refused" if dripping.beginning == HEAD else "network"  # no acknowledgement yet
    assert not dripping.done.is_set()
    assert changed(client) == {"recorded": 1, reason: 1}


class Deaf(requests.adapters.HTTPAdapter):
    """An adapter of an application, which no hanging up reaches."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        super().__init__()

    def send(self, *arguments: object, **options: object) -> requests.Response:
        self.stop.wait(PATIENCE)
        raise requests.ConnectionError


def test_no_second_request_runs_beside_one_that_cannot_be_ended() -> None:
    with requests.Session() as session:
        session.mount("http://", adapter := Deaf())
        transport = RequestsTransport("http://127.0.0.1:9", KEY, session)

        outcomes = [outcome(transport) for _ in range(2)]

        adapter.stop.set()
    assert outcomes == ["no answer: timeout", "no answer: an earlier request still runs"]


def test_whoever_is_given_up_is_cut_off(dripping: Dripping) -> None:
    """Law: a peer that never ends holds neither the thread nor the next upload."""
    transport = RequestsTransport(dripping.url, KEY)

    outcome(transport)

    assert transport._last is not None
    assert transport._last.ended_within(PATIENCE)
    assert not dripping.done.is_set()
    assert outcome(transport) != "no answer: an earlier request still runs"


@pytest.mark.parametrize(
    ("scheme", "beginning", "drip", "pause"),
    [("http:", CONTINUE, CONTINUE * 1_000, 0.0), ("https:", HANDSHAKE, b"x", 0.05)],
    ids=["continue", "handshake"],
)
def test_what_never_comes_to_an_answer_is_cut_off(
    scheme: str, beginning: bytes, drip: bytes, pause: float
) -> None:
    """Law: it costs no time once it is given up, also before there is any encryption."""
    with serving(Dripping(beginning, drip, pause)) as server:
        transport = RequestsTransport(server.url.replace("http:", scheme), KEY)

        said = outcome(transport)

        assert transport._last is not None
        assert (said, transport._last.ended_within(PATIENCE)) == ("no answer: timeout", True)


def test_hanging_up_ends_the_request_of_another_thread() -> None:
    """Law: whoever closes need not wait for those who still wait."""
    with serving(Dripping(b"")) as server:
        transport, said = RequestsTransport(server.url, KEY), []
        waiting = threading.Thread(target=lambda: said.append(outcome(transport, PATIENCE)))
        waiting.start()
        server.begun.wait(PATIENCE)

        transport.hang_up()

        waiting.join(PATIENCE)
        assert (said, server.done.is_set()) == (["no answer: ConnectionError"], False)


def test_a_connection_that_comes_too_late_is_cut_off() -> None:
    """Law: what was given up while it looked for the address ends as soon as it is connected."""
    connections, (one, other) = Connections(), socket.socketpair()
    connections.cut()

    with one, other:
        connections.add(one)

        assert other.recv(1) == b""


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


BODY = b'{"v":1}'

CHILD = f"""
import sys
from client_sdk.upload.transport import RequestsTransport
print(RequestsTransport(sys.argv[1], {KEY!r}).send({BODY!r}, 30.0).status)
"""


def send(server: TlsCollector, *, trusting: bool) -> int | str:
    """Send BODY to *server*, with the tests' authority trusted or not."""
    with requests.Session() as session:
        session.trust_env = False  # a bundle of the environment would be trusted instead
        if trusting:
            session.verify = str(TRUSTED)
        transport = RequestsTransport(f"https://localhost:{server.port}", KEY, session)
        try:
            return transport.send(BODY, 30.0).status
        except TransportError as error:
            return str(error)


def test_a_server_that_proves_its_name_is_spoken_to() -> None:
    """Control: the certificate that differs from the refused ones only in being right."""
    server = TlsCollector("good")
    with running(server):
        status = send(server, trusting=True)

    assert status == 202
    assert server.received.endswith(BODY)


@pytest.mark.parametrize("certificate", ["expired", "wrong_host", "self_signed", "sha1"])
def test_a_server_that_does_not_hears_nothing(certificate: str) -> None:
    """Law: not a byte of the request, neither key nor body, goes to a server with that flaw."""
    server = TlsCollector(certificate)
    with running(server):
        status = send(server, trusting=True)

    assert (status, server.received) == ("no answer: SSLError", b"")


def test_an_unknown_authority_is_not_believed() -> None:
    """Law: without being told, a device trusts only the authorities of its system."""
    server = TlsCollector("good")
    with running(server):
        status = send(server, trusting=False)

    assert (status, server.received) == ("no answer: SSLError", b"")


def test_a_proxy_of_the_environment_carries_an_upload_and_learns_nothing() -> None:
    """Law: HTTPS_PROXY and REQUESTS_CA_BUNDLE are obeyed; what passes the proxy is encrypted."""
    server, proxy = TlsCollector("good"), Proxy()
    environment = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}",
        "REQUESTS_CA_BUNDLE": str(TRUSTED),
    }
    with running(server), running(proxy):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, f"https://localhost:{server.port}"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    assert (done.stdout, done.stderr) == ("202\n", "")
    assert server.received.endswith(BODY)
    assert proxy.received.startswith(b"CONNECT localhost:")
    assert not any(said in proxy.received for said in (BODY, KEY.encode(), b"/v1/reports"))
