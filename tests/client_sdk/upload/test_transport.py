"""The transport: endpoints, proxies and TLS, and no server that holds a device too long."""

from __future__ import annotations

import http.server
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.client import Client
from client_sdk.core.errors import InvalidParameterError, TransportError
from client_sdk.core.limits import MAX_ANSWER
from client_sdk.testing import answer_of
from client_sdk.upload import endpoint as endpoints
from client_sdk.upload.connections import Connections, Exchange
from client_sdk.upload.transport import Answer, RequestsTransport
from tests.support.device.device import CANARY, KEY, REGISTRY, changed, make_client
from tests.support.device.loopback import LoopbackServer, running
from tests.support.device.slow_collector import slow_collector
from tests.support.device.tls import TRUSTED, Proxy, TlsCollector
from tests.support.patience import PATIENCE

BODY = b'{"v":1}'


@dataclass
class Collector:
    """A web server on loopback that answers as it is told and remembers what it was sent."""

    url: str = ""
    status: int = 202
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    keep_alive: bool = False
    seen: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)  # from which the connections came

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.ports.add(request.client_address[1])
        size = int(request.headers["Content-Length"])
        self.seen.append((request.path, dict(request.headers), request.rfile.read(size)))
        request.send_response_only(self.status)
        for name, value in {"Content-Length": str(len(self.body)), **self.headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(self.body)


@pytest.fixture
def collector() -> Iterator[Collector]:
    state = Collector()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that http.server looks for
            self.protocol_version = "HTTP/1.1" if state.keep_alive else "HTTP/1.0"
            state.answer(self)
            self.close_connection = not state.keep_alive

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        server.shutdown()
        thread.join()


def test_an_upload_is_posted_as_it_is(collector: Collector) -> None:
    answer = RequestsTransport(collector.url + "/", KEY).send(BODY, 30.0)

    path, _, body = collector.seen[0]
    assert (path, body, answer) == ("/v1/reports", BODY, Answer(202, None, b"{}"))


def test_the_headers_are_the_same_on_every_device(collector: Collector) -> None:
    RequestsTransport(collector.url, KEY).send(BODY, 30.0)

    assert collector.seen[0][1] == {
        "Host": collector.url.removeprefix("http://"),
        "Content-Type": "application/json",
        "Content-Length": str(len(BODY)),
        "Authorization": f"Bearer {KEY}",
        "User-Agent": "hearsay/1",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Connection": "keep-alive",
    }


@pytest.mark.parametrize("given", [False, True])
def test_no_cookie_is_kept(collector: Collector, given: bool) -> None:
    collector.headers = {"Set-Cookie": "device=7; Path=/"}
    with requests.Session() as session:
        transport = RequestsTransport(collector.url, KEY, session if given else None)

        transport.send(BODY, 30.0)
        transport.send(BODY, 30.0)

    assert ["Cookie" in headers for _, headers, _ in collector.seen] == [False, False]


def test_no_redirect_is_followed(collector: Collector) -> None:
    collector.status, collector.headers = 307, {"Location": f"{collector.url}/elsewhere"}

    answer = RequestsTransport(collector.url, KEY).send(BODY, 30.0)

    assert (answer.status, len(collector.seen)) == (307, 1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "120"}, 120.0),
        ({"Retry-After": "9" * 400}, 999_999_999.0),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        (
            {
                "Date": "Wed, 21 Oct 2015 07:26:00 GMT",
                "Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT",
            },
            120.0,
        ),
        (
            {
                "Date": "Wed, 21 Oct 2015 07:26:00 GMT",
                "Retry-After": "Wed, 21 Oct 2015 07:28:00",
            },
            None,
        ),
        (
            {
                "Date": "Mon, 01 Jan 2020 00:00:00 GMT",
                "Retry-After": "Mon, 01 Jan 2020 00:00:00 +99999999999999999",
            },
            None,
        ),
        ({"Date": "Mon, 01 Jan 2020 00:00:00 GMT", "Retry-After": "0 0 0 0:0 0"}, None),
    ],
)
def test_a_retry_after_is_read_in_both_of_its_forms(
    collector: Collector, headers: Mapping[str, str], seconds: float | None
) -> None:
    collector.status, collector.headers = 503, headers

    assert RequestsTransport(collector.url, KEY).send(BODY, 30.0).retry_after == seconds


@pytest.mark.parametrize(
    ("headers", "body", "read"),
    [
        pytest.param({"Retry-After": "120"}, b"{}", b"{}", id="asks for a wait"),
        pytest.param({"Content-Length": "1000", "Connection": "close"}, b"{}", b"{}", id="ends"),
        pytest.param({"Transfer-Encoding": "chunked"}, b"no length\r\n", b"", id="no body"),
    ],
)
def test_an_acknowledgement_counts_whatever_comes_with_it(
    collector: Collector, headers: Mapping[str, str], body: bytes, read: bytes
) -> None:
    """Law: no header and no body makes an upload that arrived one that must be sent again."""
    collector.headers, collector.body = headers, body

    assert RequestsTransport(collector.url, KEY).send(BODY, 30.0) == Answer(202, None, read)


def test_only_the_beginning_of_a_long_answer_is_read(collector: Collector) -> None:
    collector.body = b"x" * (4 * MAX_ANSWER)

    assert len(RequestsTransport(collector.url, KEY).send(BODY, 30.0).body) == MAX_ANSWER


def test_no_answer_is_a_transport_error_that_shows_no_key() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        url = f"http://127.0.0.1:{server.server_port}"

    with pytest.raises(TransportError) as caught:
        RequestsTransport(url, KEY).send(BODY, 30.0)

    assert str(caught.value) == "no answer: ConnectionError"
    assert caught.value.__cause__ is None


def test_a_value_reaches_the_wire_perturbed_and_its_acknowledgement_is_counted(
    collector: Collector,
) -> None:
    collector.body = b'{"accepted":1,"duplicate":false,"rejected":[]}'
    with Client(collector.url, KEY, REGISTRY, consent="granted", data_dir=None) as client:
        client.record("theme", CANARY)

        client.flush()

    assert changed(client) == {"recorded": 1, "uploaded": 1}
    assert [CANARY.encode() in body for _, _, body in collector.seen] == [False]


@pytest.mark.parametrize("kept", [False, True])
def test_every_request_has_a_connection_of_its_own(collector: Collector, kept: bool) -> None:
    """Law: none is open after its answer, so that none tells when the application ends."""
    collector.keep_alive = kept
    transport = RequestsTransport(collector.url, KEY)
    left: list[object] = []

    for _ in range(3):
        transport.send(BODY, 30.0)
        left += transport._connections._sockets

    assert (left, len(collector.seen), len(collector.ports)) == ([], 3, 3)


def test_a_pass_of_a_client_leaves_no_connection(collector: Collector) -> None:
    """Law: the uploader hangs up, whatever came of the pass."""
    collector.keep_alive = True
    transport = RequestsTransport(collector.url, KEY)
    client = make_client(transport=transport)
    client.record("dark_mode", True)

    client.flush()

    assert (len(collector.seen), transport._connections._sockets) == (1, {})
    client.close()


class HangsUpBadly:
    """A transport of an application whose hanging up fails."""

    def send(self, body: bytes, timeout: float) -> Answer:
        return answer_of(202)

    def hang_up(self) -> None:
        raise RuntimeError("broken")


def test_a_transport_that_cannot_hang_up_is_counted() -> None:
    """Law: nothing that a transport does reaches the application."""
    client = make_client(transport=HangsUpBadly())
    client.record("dark_mode", True)

    client.close()

    assert changed(client) == {"recorded": 1, "uploaded": 1, "internal": 2}


UPLOAD = b"{}"


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://collector.example",
        "https://collector.example:8443/telemetry/",
        "http://localhost:8000",
        "http://127.0.0.1:8000",
        "http://127.9.9.9",
        "http://[::1]:8000",
    ],
)
def test_https_and_this_machine_are_accepted(endpoint: str) -> None:
    assert isinstance(RequestsTransport(endpoint, KEY), RequestsTransport)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://collector.example",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://10.0.0.1",
        "ftp://collector.example",
        "collector.example",
        "https://",
        "https://collector.example?key=1",
        "https://collector.example#part",
        "https://user:password@collector.example",
        "https://collector.example:port",
        "https://[::1",
        "https://collector.example/\r\nX: y",
        "",
        None,
    ],
)
def test_other_endpoints_are_refused_without_showing_a_secret(endpoint: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^endpoint=") as caught:
        RequestsTransport(endpoint, KEY)

    assert not any(secret in str(caught.value) for secret in ("password", "key=1"))


PARTS = ("http", "https", "://", "localhost", "127.0.0.1", "10.0.0.1", "a.b", ":", "0", "80")
BEGINS = ("https://", "https://a.b", "http://localhost", "http://127.0.0.1:", "http://a.b", "")
MORE = ("65535", "65536", "000080", "/", "//", "@", "?", "é", "")


def test_an_endpoint_that_is_taken_as_plain_is_good_by_the_standard_library() -> None:
    """Of endpoints that begin well, as the others are never plain."""
    plain = list[str]()

    @given(st.sampled_from(BEGINS), st.lists(st.sampled_from(PARTS + MORE), max_size=4))
    def look(begin: str, rest: list[str]) -> None:
        url = "".join((begin, *rest))
        if endpoints._is_plain(url):
            endpoints._require_url("endpoint", url)
            plain.append(url)

    look()
    assert len(plain) >= 20


@pytest.mark.parametrize("end", ["", "/", "/v1/reports", "/v1/reports/"])
@pytest.mark.parametrize("path", ["", "/telemetry"])
def test_an_endpoint_with_the_path_of_uploads_is_understood(path: str, end: str) -> None:
    """Law: who copies the whole address of an upload posts there, and not below it."""
    with slow_collector(lambda body: 0.0) as collector:
        RequestsTransport(collector.url + path + end, KEY).send(UPLOAD, 30.0)

    assert collector.paths == [f"{path}/v1/reports"]


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel", "x" * 513, None])
def test_a_key_that_cannot_be_a_header_is_refused_unseen(key: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^write_key=\(hidden\): must be"):
        RequestsTransport("https://collector.example", key)


def test_a_key_is_in_no_repr() -> None:
    transport = RequestsTransport("https://collector.example", KEY)

    assert KEY not in repr(transport) + repr(vars(transport))


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


@pytest.mark.parametrize(
    ("certificate", "trusting"),
    [
        ("good", True),  # the control: it differs from the others only in being right
        ("good", False),  # by an authority that is not of the system
        *((flaw, True) for flaw in ("expired", "wrong_host", "self_signed", "sha1")),
    ],
)
def test_a_server_is_spoken_to_only_if_it_proves_its_name(certificate: str, trusting: bool) -> None:
    """Law: not a byte of the request, neither key nor body, goes to a server with a flaw."""
    server = TlsCollector(certificate)
    with running(server):
        status = send(server, trusting=trusting)

    if (certificate, trusting) == ("good", True):
        assert (status, server.received[-len(BODY) :]) == (202, BODY)
    else:
        assert (status, server.received) == ("no answer: SSLError", b"")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_of_the_environment_carries_an_upload_and_learns_nothing(scheme: str) -> None:
    """Law: HTTPS_PROXY and REQUESTS_CA_BUNDLE are obeyed; what passes the proxy is encrypted."""
    server, proxy = TlsCollector("good"), Proxy(by_tls=scheme == "https")
    environment = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        "HTTPS_PROXY": f"{scheme}://localhost:{proxy.port}",
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
