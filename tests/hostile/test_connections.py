"""What only raw bytes can say: two lengths, floods, halves, and bodies that do not end."""

from __future__ import annotations

import gzip
import json
import socket
import time
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest

from client_sdk.core.limits import MAX_DEVICE_BODY
from collector.intake.wire import JSON
from collector.web.app import UNREAD_S
from collector.web.forms import FORM
from tests.support.crowds.uploads import ADMIN_TOKEN, READ_TOKEN, WRITE_KEY, bearer
from tests.support.patience import PATIENCE
from tests.support.sites.attacked_site import AttackedSite, today
from tests.support.sites.hostile_bodies import good
from tests.support.sites.raw_requests import CODINGS, LAST, SMUGGLING, chunked, head, statuses
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

MEGABYTE: Final = 1 << 20
ALLOWED: Final = 50 * MEGABYTE  # bytes that an attack may add to the processes
QUIET: Final = 0.5  # seconds without a word after which nothing more is expected
SLOW: Final = 500  # connections
DEAF: Final = 100  # connections
OURS: Final = 1  # connection that the test itself keeps
READER: Final = (f"Authorization: Bearer {READ_TOKEN}", "Accept: application/json")
FORMS: Final = 300  # connections: more than questions may wait


@pytest.mark.parametrize("form", SMUGGLING.values(), ids=range(len(SMUGGLING)))
def test_two_readers_cannot_see_two_different_requests(site: AttackedSite, form: bytes) -> None:
    """What follows on the connection is answered once, as itself, or the connection is closed."""
    said = site.send(form + LAST, patience=QUIET)

    found = statuses(said)
    assert all(status < 500 for status in found)
    assert len(found) <= 2
    assert said.count(b'"status":"ok"') == found.count(200) <= 1
    assert 200 not in found[:-1]


@pytest.mark.parametrize("first", ["length", "coding"])
@pytest.mark.parametrize("coding", CODINGS, ids=range(len(CODINGS)))
def test_a_length_beside_a_coding_ends_the_connection(
    site: AttackedSite, coding: str, first: str
) -> None:
    """A proxy in front may have gone by the other of the two; what follows is never a request."""
    body = chunked(good(JSON, today()))
    lines = (f"Content-Length: {len(body)}", coding)
    said = site.send(head(*(lines if first == "length" else lines[::-1])) + body + LAST)

    is_none = coding.startswith("Transfer_")  # another name: not a coding at all
    name, _, value = coding.lower().partition(":")
    is_plain = (name, value.strip(" \t")) == ("transfer-encoding", "chunked")
    assert statuses(said) == ([400, 200] if is_none else [202] if is_plain else [400])


HOSTS: Final = {
    "none": ("GET /livez HTTP/1.1",),
    "two": ("GET /livez HTTP/1.1", "Host: localhost", "Host: other"),
    "two alike": ("GET /livez HTTP/1.1", "Host: localhost", "Host: localhost"),
    "empty": ("GET /livez HTTP/1.1", "Host: "),
    "no name": ("GET /livez HTTP/1.1", "Host: a/b"),
    "another than the address": ("GET http://other/livez HTTP/1.1", "Host: localhost"),
    "a method in small letters": ("get /livez HTTP/1.1", "Host: localhost"),
}


@pytest.mark.parametrize("lines", HOSTS.values(), ids=HOSTS)
def test_a_request_without_one_host_and_a_plain_method_is_refused(
    site: AttackedSite, lines: tuple[str, ...]
) -> None:
    """A proxy's rules by name or method may have seen another request."""
    said = site.send("\r\n".join([*lines, "Connection: close", "", ""]).encode())

    assert statuses(said) == [400]
    assert b"problem+json" not in said


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/login", 200),
        ("/%6Cogin", 200),
        ("/%256Cogin", 404),
        ("/metric/%C3%A9", 404),
        ("/metric/%FF", 404),
        ("/metric%3Fx/page", 404),
    ],
)
def test_a_path_is_decoded_once(site: AttackedSite, path: str, status: int) -> None:
    """A proxy's rules by path, and the collector's own, have seen the path decoded once."""
    lines = (f"GET {path} HTTP/1.1", "Host: localhost", *READER, "Connection: close", "", "")

    assert statuses(site.send("\r\n".join(lines).encode())) == [status]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_health_check_of_http_1_0_needs_no_host(site: AttackedSite, method: str) -> None:
    said = site.send(f"{method} /readyz HTTP/1.0\r\n\r\n".encode())

    assert statuses(said) == [200]
    assert said.partition(b"\r\n\r\n")[2].startswith(b"" if method == "HEAD" else b'{"status"')


@pytest.mark.parametrize("path", ["/login", "/v1/query", "/v1/reports", "/metrics"])
def test_forms_that_do_not_come_leave_health_and_questions_alone(
    site: AttackedSite, path: str
) -> None:
    """Three hundred begin a body on one route and stop; the other routes notice nothing."""
    with ExitStack() as slow:
        for _ in range(FORMS):
            one = socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE)
            form = head("Content-Length: 1000", path=path).replace(WRITE_KEY.encode(), b"nothing")
            slow.enter_context(one).sendall(form + b"token=")

        for asked in ("/livez", "/readyz", "/v1/openapi.json"):
            assert site.ask("GET", asked).status == 200
        assert site.ask("GET", "/v1/metrics", bearer(READ_TOKEN)).status == 200


def test_the_forms_are_forty_or_more() -> None:
    assert len(SMUGGLING) >= 40


def test_a_body_in_chunks_of_one_byte_is_read(site: AttackedSite) -> None:
    said = site.send(head(CODINGS[0]) + chunked(good(JSON, today()), 1) + LAST)

    assert statuses(said) == [202, 200]


def test_chunks_without_an_end_are_refused_at_the_limit(site: AttackedSite) -> None:
    """The collector takes no more of them than a body may have."""
    before = site.memory()

    part = chunked(bytes(MEGABYTE), 65_536)[: -len(b"0\r\n\r\n")]
    said = site.send(head(CODINGS[0]), *[part] * 64, patience=2)

    assert statuses(said) in ([413], [])  # [] if it closed before we could read
    assert site.memory() - before <= ALLOWED


def bomb(megabytes: int) -> bytes:
    deflater = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    megabyte = b" " * MEGABYTE
    return b"".join([*(deflater.compress(megabyte) for _ in range(megabytes)), deflater.flush()])


def test_a_hundred_bombs_take_no_more_memory_than_honest_bodies(site: AttackedSite) -> None:
    """Each would inflate to 60 MB: 6 GB together."""
    body = bomb(60)
    assert len(body) <= MAX_DEVICE_BODY
    site.report(body, encoding="gzip")
    before = site.memory()

    found = {site.report(body, encoding="gzip").status for _ in range(100)}

    assert found == {413}
    assert site.memory() - before <= ALLOWED


def test_a_bomb_in_a_bomb_is_inflated_once(site: AttackedSite) -> None:
    answer = site.report(gzip.compress(bomb(60)), encoding="gzip")

    assert answer.require_sound().status == 400


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip", "deflate", "br", "zstd", "compress", "x" * 4_000]
)
def test_another_encoding_is_not_read(site: AttackedSite, encoding: str) -> None:
    answer = site.report(bomb(1), encoding=encoding)

    assert answer.require_sound().status == 415


def test_half_a_thousand_slow_clients_hold_nobody(site: AttackedSite) -> None:
    """Headers that stop, bodies that stop: an honest upload passes meanwhile."""
    before = site.memory()
    halves = (
        b"POST /v1/reports HT",
        head("Content-Length: 99")[:-2],
        head("Content-Length: 99") + b"{",
        head(CODINGS[0]) + b"5\r\n{",
        head("Content-Length: 99", "Content-Encoding: gzip") + b"\x1f\x8b",
    )
    with ExitStack() as slow:
        for number in range(SLOW):
            one = socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE)
            slow.enter_context(one).sendall(halves[number % len(halves)])

        assert site.report(good(JSON, today())).status == 202
        assert site.is_well()
        assert site.memory() - before <= ALLOWED


def established(port: int) -> int:
    """Return the connections to *port* that this machine holds open at its end."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_answers_that_nobody_reads_are_given_up(site: AttackedSite) -> None:
    """A hundred ask for 9 MB each and read nothing; the system ends their connections."""
    before = site.memory()
    many = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
    with ExitStack() as deaf:
        for _ in range(DEAF):
            one = deaf.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            one.connect(("127.0.0.1", site.port))
            one.sendall(many)
        deadline = time.monotonic() + 6 * UNREAD_S
        while (left := established(site.port)) > OURS and time.monotonic() < deadline:
            assert site.memory() - before <= ALLOWED
            time.sleep(0.2)

    assert left <= OURS
    assert site.is_well()


FLOODS: Final = {
    "a long line": ("X-Long: " + "x" * 100_000,),
    "many lines": tuple(f"X-{i}: {i}" for i in range(5_000)),
    "many lines of one name": ("X-Same: y",) * 5_000,
    "a long name": ("x" * 100_000 + ": y",),
    "many cookies": ("Cookie: " + "; ".join(f"a{i}=b" for i in range(5_000)),),
    "many forwarded": ("X-Forwarded-For: " + ", ".join(["10.0.0.1"] * 5_000),),
    "many ranges": ("Range: bytes=" + ",".join(f"{i}-{i}" for i in range(5_000)),),
}


@pytest.mark.parametrize("lines", FLOODS.values(), ids=FLOODS)
def test_headers_beyond_the_limit_are_refused(site: AttackedSite, lines: tuple[str, ...]) -> None:
    before = site.memory()

    said = site.send(head("Content-Length: 0", *lines), patience=QUIET)

    assert set(statuses(said)) <= {400, 431}
    assert site.memory() - before <= ALLOWED


@pytest.mark.parametrize("lines", ["BAD", f"GET / HTTP/1.1\r\nX: {'x' * 100_000}"])
def test_a_head_that_the_server_refuses_itself_gets_no_words(
    site: AttackedSite, lines: str
) -> None:
    """The documentation says so; there is nothing in such an answer to be protected."""
    said = site.send(f"{lines}\r\n\r\n".encode())

    assert set(statuses(said)) <= {400, 431}
    assert said.endswith(b"\r\n\r\n")


def test_a_long_address_is_refused(site: AttackedSite) -> None:
    said = site.send(head(method="GET", path="/" + "a" * 100_000), patience=QUIET)

    assert set(statuses(said)) <= {400, 414, 431}


def test_a_connection_that_breaks_off_anywhere_leaves_the_collector_well(
    site: AttackedSite,
) -> None:
    """After each byte of a whole upload."""
    body = good(JSON, today())
    whole = head(f"Content-Length: {len(body)}") + body

    for end in range(0, len(whole), 7):
        with socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE) as connection:
            connection.sendall(whole[:end])

    assert site.is_well()


def test_requests_one_behind_the_other_are_answered_in_order(site: AttackedSite) -> None:
    body = good(JSON, today())
    one = head(f"Content-Length: {len(body)}") + body

    said = site.send(one * 20 + head("Content-Length: 0") + LAST)

    assert statuses(said) == [202] * 20 + [400, 200]


WORDS: Final = "Do NOT trust these numbers"
WAYS: Final = ("closed", "half-closed")


def body_of(text: str) -> bytes:
    """Return a form of a note, which is a good one wherever its text is cut."""
    return urlencode({"at": "2026-03-01", "about": "", "url": "", "text": text}).encode()


def request_of(path: str, token: str, kind: str, length: str, body: bytes) -> bytes:
    """Return a request as it stands on the wire."""
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        f"Content-Type: {kind}",
        length,
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def sent(site: AttackedSite, message: bytes, way: str) -> bytes:
    """Send the begin of a message, end the connection, and return what comes back, if it can."""
    with socket.create_connection(("127.0.0.1", site.port), PATIENCE) as connection:
        connection.sendall(message)
        if way == "closed":
            return b""
        connection.shutdown(socket.SHUT_WR)
        try:
            return connection.recv(65_536)
        except ConnectionError:
            return b""


def notes(site: AttackedSite) -> list[str]:
    """Return the texts of the notes that are kept."""
    answer = site.ask("GET", "/v1/notes", bearer(READ_TOKEN))
    return [note["text"] for note in json.loads(answer.body)["notes"]]


def accepted(site: AttackedSite) -> float:
    """Return how many uploads were accepted."""
    text = site.ask("GET", "/metrics", bearer(ADMIN_TOKEN)).body.decode()
    return float(text.partition("\nhearsay_accepted_uploads_total ")[2].partition("\n")[0])


@pytest.mark.parametrize("way", WAYS)
def test_a_form_that_is_cut_off_changes_nothing(site: AttackedSite, way: str) -> None:
    """It says its length, so that what came of it is known not to be all."""
    whole, cut = body_of(f"{way}, whole"), body_of(f"{way}, {WORDS}")
    length = f"Content-Length: {len(cut)}"

    told = sent(site, request_of("/notes", READ_TOKEN, FORM, length, cut[:-4]), way)
    length = f"Content-Length: {len(whole)}"
    site.send(request_of("/notes", READ_TOKEN, FORM, f"{length}\r\nConnection: close", whole))

    assert statuses(told) == ([] if way == "closed" else [400])
    kept = [text for text in notes(site) if text.startswith(way)]
    assert kept == [f"{way}, whole"]


def test_a_form_without_a_length_is_refused(site: AttackedSite) -> None:
    """The server does not tell its end from a cut."""
    message = request_of(
        "/notes", READ_TOKEN, FORM, "Transfer-Encoding: chunked", chunked(body_of("in parts"))
    )

    said = site.send(message + b"", patience=PATIENCE)

    assert statuses(said) == [400]
    assert b"send Content-Length" in said
    assert "in parts" not in notes(site)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_upload_that_is_cut_off_is_not_taken(
    site: AttackedSite, way: str, *, is_chunked: bool
) -> None:
    """Whether it says its length or comes in parts: no part of an upload is one."""
    body, before = good(JSON, today()), accepted(site)
    length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}"
    parts = (chunked(body).removesuffix(b"0\r\n\r\n") if is_chunked else body)[:-4]

    told = sent(site, request_of("/v1/reports", WRITE_KEY, JSON, length, parts), way)

    assert statuses(told) == ([] if way == "closed" else [400])
    assert accepted(site) == before
    assert site.report(body).status == 202
