"""The collector behind a real nginx and a real Caddy, each with the file that we ship."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
import requests

from client_sdk.core.limits import MAX_DEVICE_BODY
from client_sdk.upload.transport import RequestsTransport
from client_sdk.wire.oblivious import PATH as OBLIVIOUS
from client_sdk.wire.oblivious import REQUEST_TYPE
from client_sdk.wire.reports import Column
from collector.intake.capsules import MAX_CAPSULE
from collector.intake.wire import JSON, MSGPACK
from tests.hostile.conftest import LISTED
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    READ_TOKEN,
    WRITE_KEY,
    as_msgpack,
    bearer,
    registry,
)
from tests.support.device.tls import TRUSTED
from tests.support.patience import PATIENCE
from tests.support.sites.attacked_site import AttackedSite, attacked_site, today
from tests.support.sites.caddy import NAME, PROGRAM, SHIPPED, needs_caddy, shipped_caddy
from tests.support.sites.hostile_bodies import good
from tests.support.sites.nginx import bare_nginx, needs_nginx, shipped_nginx
from tests.support.sites.raw_requests import (
    CODINGS,
    LAST,
    SMUGGLING,
    chunked,
    exchange,
    head,
    statuses,
)
from tests.support.sites.reverse_proxy import ReverseProxy
from tests.support.store.cluster import free_port
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]
QUIET: Final = 0.5  # seconds without a word after which nothing more is expected
ELSEWHERE: Final = "127.0.0.2"  # another address, for whoever is not the attacker
CONNECTIONS: Final = 100  # that one address may have at nginx, by the file
GATEWAY_LIMIT: Final = 8 * 1024 * 1024  # bytes
SAME: Final = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
KINDS: Final = {"nginx": shipped_nginx, "caddy": shipped_caddy}


@pytest.fixture(
    scope="module",
    params=[pytest.param("nginx", marks=needs_nginx), pytest.param("caddy", marks=needs_caddy)],
)
def proxy(
    site: AttackedSite, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReverseProxy]:
    """Each proxy with the file that we ship."""
    with KINDS[request.param](tmp_path_factory.mktemp(request.param), site.port) as running:
        yield running


@pytest.fixture(scope="module")
def nginx(site: AttackedSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReverseProxy]:
    with shipped_nginx(tmp_path_factory.mktemp("nginx"), site.port) as running:
        yield running


@pytest.fixture(scope="module")
def caddy(site: AttackedSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReverseProxy]:
    with shipped_caddy(tmp_path_factory.mktemp("caddy"), site.port) as running:
        yield running


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as kept:
        kept.verify = str(TRUSTED)
        kept.trust_env = False
        yield kept


def gateway_body(size: int) -> bytes:
    """Return an upload of *size* bytes and a little more."""
    column = Column(registry().metric("page").digest, today(), bytes(size))
    return as_msgpack([column], upload_id=os.urandom(16), sealed=today())


def test_a_device_reports_through_the_proxy(proxy: ReverseProxy, session: requests.Session) -> None:
    transport = RequestsTransport(proxy.url, WRITE_KEY, session)

    answer = transport.send(good(JSON, today()), PATIENCE)

    assert answer.status == 202


@pytest.mark.parametrize(("more", "status"), [(0, 404), (4_096, 413)])
def test_a_capsule_as_long_as_any_passes_the_proxy(
    proxy: ReverseProxy, session: requests.Session, more: int, status: int
) -> None:
    """Law: the collector answers it; here it has no keys, so 404.  Longer ones end at the proxy."""
    answer = session.post(
        f"{proxy.url}{OBLIVIOUS}",
        data=bytes(MAX_CAPSULE + more),
        headers={"Content-Type": REQUEST_TYPE},
        timeout=PATIENCE,
    )

    assert answer.status_code == status
    assert (b"urn:hearsay:" in answer.content) == (status == 404)


@pytest.mark.parametrize("origin", [LISTED, "https://elsewhere.example"])
def test_the_page_of_a_listed_origin_reports_through_the_proxy(
    proxy: ReverseProxy, session: requests.Session, origin: str
) -> None:
    """Law: the proxy adds nothing to what the collector says of origins, and takes nothing off."""
    page = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
    asks = {**page, "Access-Control-Request-Method": "POST"}
    headers = {**page, **bearer(WRITE_KEY), "Content-Type": JSON}
    url = f"{proxy.url}/v1/reports"

    before = session.options(url, headers=asks, timeout=PATIENCE)
    answer = session.post(url, data=good(JSON, today()), headers=headers, timeout=PATIENCE)

    allowed = LISTED if origin == LISTED else None
    assert answer.status_code == 202
    assert before.headers.get("Access-Control-Allow-Origin") == allowed
    assert before.headers.get("Access-Control-Max-Age") == (allowed and "86400")
    assert answer.headers.get("Access-Control-Allow-Origin") == allowed


@pytest.mark.parametrize(
    ("path", "key", "size", "status"),
    [
        ("", WRITE_KEY, 300, 202),
        ("/gateway", GATEWAY_KEY, MAX_DEVICE_BODY + 1, 202),
        ("/gateway", GATEWAY_KEY, GATEWAY_LIMIT - 1_024, 202),
    ],
)
def test_an_upload_of_allowed_size_arrives(
    proxy: ReverseProxy, session: requests.Session, path: str, key: str, size: int, status: int
) -> None:
    answer = session.post(
        f"{proxy.url}{path}/v1/reports",
        data=gateway_body(size),
        headers={**bearer(key), "Content-Type": MSGPACK},
        timeout=PATIENCE,
    )

    assert answer.status_code == status


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("/v1/reports", MAX_DEVICE_BODY + 1),
        ("/login", 4_097),
        ("/gateway/v1/reports", GATEWAY_LIMIT + 1),
    ],
)
def test_a_body_that_says_it_is_too_long_is_answered_413_by_the_proxy(
    proxy: ReverseProxy, path: str, size: int
) -> None:
    """Law: by the status after which a device makes smaller uploads.

    Caddy hangs up on what is much longer than it reads; a gateway of ours sends no such body.
    """
    said = proxy.send(head(f"Content-Length: {size}", path=path), bytes(size), patience=2.0)

    hangs_up = size > GATEWAY_LIMIT and proxy.folder.name.startswith("caddy")
    assert statuses(said) in ([413], [] if hangs_up else [413])
    assert b"application/problem+json" not in said


@pytest.mark.parametrize("key", [WRITE_KEY, GATEWAY_KEY])
def test_a_body_of_chunks_that_is_too_long_is_never_taken(
    proxy: ReverseProxy, session: requests.Session, key: str
) -> None:
    body = gateway_body(2 * MAX_DEVICE_BODY)

    answer = session.post(
        f"{proxy.url}/v1/reports",
        data=iter([body[:1000], body[1000:]]),
        headers={**bearer(key), "Content-Type": MSGPACK},
        timeout=PATIENCE,
    )

    assert answer.status_code in {413, 502}


def test_a_log_in_through_the_proxy_gets_a_cookie_that_needs_tls(proxy: ReverseProxy) -> None:
    form = f"token={READ_TOKEN}&next=/".encode()
    lines = (
        f"Host: {NAME}",
        f"Origin: https://{NAME}",
        *(f"{name}: {value}" for name, value in SAME.items()),
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(form)}",
        "Connection: close",
    )
    asked = "\r\n".join(("POST /login HTTP/1.1", *lines)) + "\r\n\r\n"

    said = exchange(proxy.connect(name=NAME), asked.encode() + form).decode()

    assert statuses(said.encode()) == [303]
    (cookie,) = re.findall(r"^Set-Cookie: (.*)$", said, re.MULTILINE | re.IGNORECASE)
    assert cookie.startswith("__Host-hearsay=")
    assert "; Secure" in cookie


def test_another_name_gets_no_answer(proxy: ReverseProxy) -> None:
    with pytest.raises(ssl.SSLError):
        proxy.connect(name="elsewhere.example.org")


def test_no_address_of_a_device_reaches_the_collector_or_stays_with_the_proxy(
    proxy: ReverseProxy, site: AttackedSite
) -> None:
    forged = head("Content-Length: 99999999", "X-Forwarded-For: 203.0.113.9")

    proxy.send(forged, LAST, patience=QUIET, sender=ELSEWHERE)

    assert ELSEWHERE not in proxy.log()
    assert "203.0.113.9" not in proxy.log()
    assert b"203.0.113.9" not in site.kept()


def smuggled(proxy: ReverseProxy, site: AttackedSite, number: int) -> list[int]:
    """Send a form of two requests in one; return the statuses, and see that nobody else is hurt."""
    form, sender = list(SMUGGLING.values())[number], f"127.0.1.{number}"  # each its own limits

    said = proxy.send(form + LAST, sender=sender, patience=QUIET)

    found = statuses(said)
    assert len(found) <= 2
    assert not {500, 503, 504} & set(found)
    assert said.count(b'"status":"ok"') == found.count(200) <= 1
    for _ in range(3):
        assert proxy.send(LAST, sender=sender).endswith(b'{"status":"ok"}\n')
    assert site.is_well()
    return found


@needs_nginx
@pytest.mark.parametrize("number", range(len(SMUGGLING)))
def test_nginx_and_collector_never_see_two_different_requests(
    nginx: ReverseProxy, site: AttackedSite, number: int
) -> None:
    """No answer comes to a request that was not sent; whoever comes next gets their own."""
    found = smuggled(nginx, site, number)

    assert 502 not in found
    assert 200 not in found[:-1]


@needs_caddy
@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SMUGGLING)))
def test_caddy_and_collector_never_see_two_different_requests(
    caddy: ReverseProxy, site: AttackedSite, number: int
) -> None:
    """Caddy says 502 of chunks that are none: no device sends them, or would drop a report."""
    assert len(smuggled(caddy, site, number)) <= 2


@needs_nginx
@pytest.mark.parametrize("first", ["length", "coding"])
def test_a_length_beside_a_coding_never_reaches_the_collector(
    nginx: ReverseProxy, first: str
) -> None:
    body = chunked(good(JSON, today()))
    lines = (f"Content-Length: {len(body)}", CODINGS[0])

    said = nginx.send(head(*(lines if first == "length" else lines[::-1])) + body + LAST)

    assert statuses(said) == [400]
    assert b"nginx" in said


@needs_nginx
def test_one_address_has_so_many_connections_and_others_notice_nothing(
    nginx: ReverseProxy, site: AttackedSite
) -> None:
    """Bodies that stop halfway stay with the proxy; the collector does not see them."""
    half = head("Content-Length: 99") + b"{"

    with ExitStack() as slow:
        for _ in range(CONNECTIONS):
            slow.enter_context(nginx.connect()).sendall(half)
        here = nginx.send(LAST)
        there = nginx.send(LAST, sender=ELSEWHERE)

        assert statuses(here) == [429]
        assert statuses(there) == [200]
        assert site.report(good(JSON, today())).status == 202


@needs_nginx
def test_tries_at_the_log_in_are_few_a_minute(nginx: ReverseProxy) -> None:
    """By address: somebody else is let in meanwhile."""
    form = b"token=" + b"x" * 24
    one = (
        head(f"Content-Length: {len(form)}", path="/login").replace(
            JSON.encode(), b"application/x-www-form-urlencoded"
        )
        + form
    )
    sender = "127.0.0.3"

    with ExitStack() as tries:
        many = [tries.enter_context(nginx.connect(sender)) for _ in range(30)]
        for connection in many:
            connection.sendall(one)
        found = [statuses(connection.recv(65_536)) for connection in many]

    assert found.count([401]) < 15
    assert found.count([429]) + found.count([401]) == 30
    assert statuses(nginx.send(LAST, sender=sender)) == [200]


@needs_caddy
@pytest.mark.parametrize(
    "words", [("validate", "--adapter", "caddyfile", "--config"), ("fmt", "--diff")]
)
def test_caddy_has_nothing_against_the_file(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [str(PROGRAM), *words, str(SHIPPED)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert '"level":"warn"' not in done.stderr


@needs_caddy
def test_a_name_beside_the_one_of_tls_gets_no_answer_of_the_collector(caddy: ReverseProxy) -> None:
    said = caddy.send(LAST.replace(b"Host: localhost", b"Host: elsewhere.example.org"))

    assert statuses(said) == [421]


def connections(port: int) -> int:
    """Return how many connections to *port* of this machine are open, as Linux tells it."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text("utf-8").splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


@needs_caddy
def test_bodies_that_stop_halfway_stay_with_the_proxy(
    caddy: ReverseProxy, site: AttackedSite
) -> None:
    half, before = head("Content-Length: 99") + b"{", connections(site.port)

    with ExitStack() as slow:
        for _ in range(50):
            slow.enter_context(caddy.connect()).sendall(half)

        assert site.report(good(JSON, today())).status == 202
        assert connections(site.port) < before + 10


@needs_caddy
@pytest.mark.parametrize("line", ["", "exclude http.log http.handlers"])
def test_caddy_keeps_no_address_where_the_collector_is_away(tmp_path: Path, line: str) -> None:
    """The planted bug: the file without the line that leaves such logs out."""
    text = SHIPPED.read_text(encoding="utf-8")
    assert line in text

    with shipped_caddy(tmp_path, free_port(), text.replace(line, "")) as alone:
        said = alone.send(LAST, sender=ELSEWHERE)
        forged = head("Content-Length: 99999999", "X-Forwarded-For: 203.0.113.9")
        alone.send(forged, patience=QUIET, sender=ELSEWHERE)
        logs = alone.log()

    assert statuses(said) == [502]
    assert (ELSEWHERE in logs) == bool(line)
    assert line or "203.0.113.9" not in logs


@pytest.fixture(scope="module")
def open_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackedSite]:
    """A collector whose pages are open, as its operator believes, to this machine."""
    settings = {"HEARSAY_OPEN_DASHBOARD": "1"}
    with attacked_site(tmp_path_factory.mktemp("open"), settings=settings) as running:
        yield running


@needs_nginx
def test_an_nginx_that_is_told_nothing_opens_nothing_and_its_log_in_names_the_setting(
    open_site: AttackedSite, tmp_path: Path
) -> None:
    """It says ``Host: 127.0.0.1`` and hides where a request comes from."""
    paths = ("/", "/privacy", "/operations", "/metric/page", "/ask", "/plan")
    with bare_nginx(tmp_path / "bare", open_site.port) as bare:
        found = [requests.get(bare.url + path, timeout=PATIENCE).status_code for path in paths]
        answer = requests.post(
            f"{bare.url}/login",
            {"token": READ_TOKEN},
            headers={**SAME, "Origin": bare.url},
            timeout=PATIENCE,
        )

    assert found == [401] * len(paths)
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
    assert "HEARSAY_ORIGIN" in answer.text
