"""The collector behind a real nginx: with the file that we ship, and with the least that works."""

from __future__ import annotations

import http.client
import os
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
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
from tests.support.sites.hostile_bodies import good
from tests.support.sites.nginx import Nginx, bare_nginx, needs_nginx, shipped_nginx
from tests.support.sites.raw_requests import CODINGS, LAST, SMUGGLING, chunked, head, statuses
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real, needs_nginx]

QUIET: Final = 0.5  # seconds without a word after which nothing more is expected
ELSEWHERE: Final = "127.0.0.2"  # another address, for whoever is not the attacker
CONNECTIONS: Final = 100  # that one address may have, by the file
NAME: Final = "stats.example.org"
SAME: Final = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}


@pytest.fixture(scope="module")
def nginx(site: AttackedSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    with shipped_nginx(tmp_path_factory.mktemp("nginx"), site.port) as running:
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


def test_a_device_reports_through_the_proxy(nginx: Nginx, session: requests.Session) -> None:
    transport = RequestsTransport(nginx.url, WRITE_KEY, session)

    answer = transport.send(good(JSON, today()), PATIENCE)

    assert answer.status == 202


@pytest.mark.parametrize(("more", "status"), [(0, 404), (4_096, 413)])
def test_a_capsule_as_long_as_any_passes_the_proxy(
    nginx: Nginx, session: requests.Session, more: int, status: int
) -> None:
    """Law: the collector answers it; here it has no keys, so 404.  Longer ones end at the proxy."""
    answer = session.post(
        f"{nginx.url}{OBLIVIOUS}",
        data=bytes(MAX_CAPSULE + more),
        headers={"Content-Type": REQUEST_TYPE},
        timeout=PATIENCE,
    )

    assert answer.status_code == status
    assert (b"urn:hearsay:" in answer.content) == (status == 404)


@pytest.mark.parametrize("origin", [LISTED, "https://elsewhere.example"])
def test_the_page_of_a_listed_origin_reports_through_the_proxy(
    nginx: Nginx, session: requests.Session, origin: str
) -> None:
    """Law: the proxy adds nothing to what the collector says of origins, and takes nothing off."""
    page = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
    asks = {**page, "Access-Control-Request-Method": "POST"}
    headers = {**page, **bearer(WRITE_KEY), "Content-Type": JSON}
    url = f"{nginx.url}/v1/reports"

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
        ("", WRITE_KEY, MAX_DEVICE_BODY + 1, 413),
        ("", GATEWAY_KEY, MAX_DEVICE_BODY + 1, 413),
        ("/gateway", GATEWAY_KEY, MAX_DEVICE_BODY + 1, 202),
        ("/gateway", GATEWAY_KEY, 8 * 1024 * 1024 + 1, 413),
    ],
)
def test_each_kind_of_upload_has_its_own_limit_of_size(
    nginx: Nginx, session: requests.Session, path: str, key: str, size: int, status: int
) -> None:
    answer = session.post(
        f"{nginx.url}{path}/v1/reports",
        data=gateway_body(size),
        headers={**bearer(key), "Content-Type": MSGPACK},
        timeout=PATIENCE,
    )

    assert answer.status_code == status


def test_a_log_in_through_the_proxy_gets_a_cookie_that_needs_tls(
    nginx: Nginx, session: requests.Session
) -> None:
    form = {"token": READ_TOKEN, "next": "/"}
    headers = {**SAME, "Host": NAME, "Origin": f"https://{NAME}"}

    answer = session.post(
        f"{nginx.url}/login", form, headers=headers, timeout=PATIENCE, allow_redirects=False
    )

    assert answer.status_code == 303
    assert answer.headers["Set-Cookie"].startswith("__Host-hearsay=")
    assert "; Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize("number", range(len(SMUGGLING)))
def test_proxy_and_collector_never_see_two_different_requests(
    nginx: Nginx, site: AttackedSite, number: int
) -> None:
    """No answer comes to a request that was not sent; whoever comes next gets their own."""
    form, sender = list(SMUGGLING.values())[number], f"127.0.1.{number}"  # each its own limits
    said = nginx.send(form + LAST, sender=sender, patience=QUIET)

    found = statuses(said)
    assert len(found) <= 2
    assert not {500, 502, 503, 504} & set(found)
    assert said.count(b'"status":"ok"') == found.count(200) <= 1
    assert 200 not in found[:-1]
    for _ in range(3):
        assert nginx.send(LAST, sender=sender).endswith(b'{"status":"ok"}\n')
    assert site.is_well()


@pytest.mark.parametrize("first", ["length", "coding"])
def test_a_length_beside_a_coding_never_reaches_the_collector(nginx: Nginx, first: str) -> None:
    body = chunked(good(JSON, today()))
    lines = (f"Content-Length: {len(body)}", CODINGS[0])

    said = nginx.send(head(*(lines if first == "length" else lines[::-1])) + body + LAST)

    assert statuses(said) == [400]
    assert b"nginx" in said


def test_one_address_has_so_many_connections_and_others_notice_nothing(
    nginx: Nginx, site: AttackedSite
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


def test_tries_at_the_log_in_are_few_a_minute(nginx: Nginx) -> None:
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


def test_no_address_of_a_device_reaches_the_collector(nginx: Nginx, site: AttackedSite) -> None:
    """Nor stays with the proxy: what it writes down names none, also of what it refuses."""
    nginx.send(head("Content-Length: 99999999", "X-Forwarded-For: 203.0.113.9"), LAST)

    written = [path.read_text(encoding="utf-8") for path in nginx.folder.glob("*.log")]

    assert written
    assert not [text for text in written if "127.0.0.1" in text or "203.0.113.9" in text]
    assert b"203.0.113.9" not in site.kept()


def test_another_name_gets_no_answer(nginx: Nginx) -> None:
    context = ssl.create_default_context(cafile=str(TRUSTED))
    context.check_hostname = False
    other = http.client.HTTPSConnection("127.0.0.1", nginx.port, timeout=PATIENCE, context=context)

    with pytest.raises(ssl.SSLError):
        other.request("GET", "/livez")


@pytest.fixture(scope="module")
def open_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackedSite]:
    """A collector whose pages are open, as its operator believes, to this machine."""
    settings = {"HEARSAY_OPEN_DASHBOARD": "1"}
    with attacked_site(tmp_path_factory.mktemp("open"), settings=settings) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/privacy", "/operations", "/metric/page", "/ask", "/plan"])
def test_pages_are_closed_behind_an_nginx_that_is_told_nothing(
    open_site: AttackedSite, tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    """It says ``Host: 127.0.0.1`` and hides where a request comes from."""
    with bare_nginx(tmp_path_factory.mktemp("bare"), open_site.port) as bare:
        answer = requests.get(f"{bare.url}{path}", timeout=PATIENCE)

    assert answer.status_code == 401


def test_a_log_in_through_an_nginx_that_is_told_nothing_names_the_setting(
    open_site: AttackedSite, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with bare_nginx(tmp_path_factory.mktemp("bare"), open_site.port) as bare:
        answer = requests.post(
            f"{bare.url}/login",
            {"token": READ_TOKEN},
            headers={**SAME, "Origin": bare.url},
            timeout=PATIENCE,
        )

    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
    assert "HEARSAY_ORIGIN" in answer.text
