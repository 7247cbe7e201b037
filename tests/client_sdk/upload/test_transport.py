"""The transport on a real socket: which endpoints it takes, what is said, heard and refused."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.client import Client
from client_sdk.core.errors import InvalidParameterError, TransportError
from client_sdk.core.limits import MAX_ANSWER
from client_sdk.testing import answer_of
from client_sdk.upload import endpoint as endpoints
from client_sdk.upload.transport import Answer, RequestsTransport
from tests.support.device.device import CANARY, KEY, REGISTRY, changed, make_client
from tests.support.device.slow_collector import slow_collector

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


@pytest.mark.parametrize("port", ["", ":", ":443", ":65535"])
@pytest.mark.parametrize("begin", ["https://a-b.Example", "http://localhost", "http://127.0.0.1"])
def test_a_usual_endpoint_is_taken_as_plain(begin: str, port: str) -> None:
    assert endpoints._is_plain(f"{begin}{port}/v1/reports")


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
