"""The collector behind a real Caddy with the file that we ship."""

from __future__ import annotations

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
from collector.intake.capsules import MAX_CAPSULE
from collector.intake.wire import JSON, MSGPACK
from tests.hostile.conftest import LISTED
from tests.hostile.test_nginx import QUIET, gateway_body
from tests.support.crowds.uploads import GATEWAY_KEY, READ_TOKEN, WRITE_KEY, bearer
from tests.support.device.tls import TRUSTED
from tests.support.patience import PATIENCE
from tests.support.sites.attacked_site import AttackedSite, today
from tests.support.sites.caddy import NAME, PROGRAM, SHIPPED, Caddy, needs_caddy, shipped_caddy
from tests.support.sites.hostile_bodies import good
from tests.support.sites.raw_requests import LAST, SMUGGLING, exchange, head, statuses
from tests.support.store.cluster import free_port
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real, needs_caddy]

ELSEWHERE: Final = "127.0.0.2"


@pytest.fixture(scope="module")
def caddy(site: AttackedSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caddy]:
    with shipped_caddy(tmp_path_factory.mktemp("caddy"), site.port) as running:
        yield running


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as kept:
        kept.verify = str(TRUSTED)
        kept.trust_env = False
        yield kept


@pytest.mark.parametrize("command", ["validate", "fmt"])
def test_caddy_has_nothing_against_the_file(command: str) -> None:
    told = ["--adapter", "caddyfile", "--config"] if command == "validate" else ["--diff"]

    done = subprocess.run(
        [str(PROGRAM), command, *told, str(SHIPPED)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert '"level":"warn"' not in done.stderr


def test_a_device_reports_through_the_proxy(caddy: Caddy, session: requests.Session) -> None:
    transport = RequestsTransport(caddy.url, WRITE_KEY, session)

    answer = transport.send(good(JSON, today()), PATIENCE)

    assert answer.status == 202


@pytest.mark.parametrize(
    ("path", "key", "size"),
    [
        ("", WRITE_KEY, 300),
        ("/gateway", GATEWAY_KEY, MAX_DEVICE_BODY + 1),
        ("/gateway", GATEWAY_KEY, 8 * 1024 * 1024 - 1024),
    ],
)
def test_an_upload_of_allowed_size_arrives(
    caddy: Caddy, session: requests.Session, path: str, key: str, size: int
) -> None:
    answer = session.post(
        f"{caddy.url}{path}/v1/reports",
        data=gateway_body(size),
        headers={**bearer(key), "Content-Type": MSGPACK},
        timeout=PATIENCE,
    )

    assert answer.status_code == 202


@pytest.mark.parametrize(("path", "most"), [("/v1/reports", MAX_DEVICE_BODY), ("/login", 4096)])
def test_a_body_that_says_it_is_too_long_is_answered_413_by_the_proxy(
    caddy: Caddy, path: str, most: int
) -> None:
    """Law: by the status after which a device makes smaller uploads."""
    whole = head(f"Content-Length: {most + 1}", path=path) + bytes(most + 1)

    said = caddy.send(whole, patience=2.0)

    assert statuses(said) == [413]
    assert b"application/problem+json" not in said


def test_a_body_beyond_that_of_any_gateway_is_never_taken(caddy: Caddy) -> None:
    """Caddy hangs up on what is much longer than it reads; a gateway of ours sends no such body."""
    length = 8 * 1024 * 1024 + 1

    asked = head(f"Content-Length: {length}", path="/gateway/v1/reports")

    said = caddy.send(asked, bytes(length), patience=2.0)

    assert statuses(said) in ([413], [])


@pytest.mark.parametrize(("path", "key"), [("", WRITE_KEY), ("", GATEWAY_KEY)])
def test_a_body_of_chunks_that_is_too_long_is_never_taken(
    caddy: Caddy, session: requests.Session, path: str, key: str
) -> None:
    body = gateway_body(2 * MAX_DEVICE_BODY)

    answer = session.post(
        f"{caddy.url}{path}/v1/reports",
        data=iter([body[:1000], body[1000:]]),
        headers={**bearer(key), "Content-Type": MSGPACK},
        timeout=PATIENCE,
    )

    assert answer.status_code in {413, 502}


@pytest.mark.parametrize(("more", "status"), [(0, 404), (4_096, 413)])
def test_a_capsule_as_long_as_any_passes_the_proxy(
    caddy: Caddy, session: requests.Session, more: int, status: int
) -> None:
    """Law: the collector answers it; here it has no keys, so 404.  Longer ones end at the proxy."""
    answer = session.post(
        f"{caddy.url}{OBLIVIOUS}",
        data=bytes(MAX_CAPSULE + more),
        headers={"Content-Type": REQUEST_TYPE},
        timeout=PATIENCE,
    )

    assert answer.status_code == status
    assert (b"urn:hearsay:" in answer.content) == (status == 404)


def test_the_page_of_a_listed_origin_reports_through_the_proxy(
    caddy: Caddy, session: requests.Session
) -> None:
    headers = {**bearer(WRITE_KEY), "Content-Type": JSON, "Origin": LISTED}

    answer = session.post(
        f"{caddy.url}/v1/reports", data=good(JSON, today()), headers=headers, timeout=PATIENCE
    )

    assert answer.status_code == 202
    assert answer.headers["Access-Control-Allow-Origin"] == LISTED


def test_a_log_in_through_the_proxy_gets_a_cookie_that_needs_tls(caddy: Caddy) -> None:
    form = f"token={READ_TOKEN}&next=/".encode()
    lines = (
        f"Host: {NAME}",
        f"Origin: https://{NAME}",
        "Sec-Fetch-Site: same-origin",
        "Accept: text/html",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(form)}",
        "Connection: close",
    )
    asked = "\r\n".join(("POST /login HTTP/1.1", *lines)) + "\r\n\r\n"

    said = exchange(caddy.connect(name=NAME), asked.encode() + form).decode()

    assert statuses(said.encode()) == [303]
    (cookie,) = re.findall(r"^Set-Cookie: (.*)$", said, re.MULTILINE | re.IGNORECASE)
    assert cookie.startswith("__Host-hearsay=")
    assert "; Secure" in cookie


def test_another_name_gets_no_answer(caddy: Caddy) -> None:
    with pytest.raises(ssl.SSLError):
        caddy.connect(name="elsewhere.example.org")


def test_a_name_beside_the_one_of_tls_gets_no_answer_of_the_collector(caddy: Caddy) -> None:
    said = caddy.send(LAST.replace(b"Host: localhost", b"Host: elsewhere.example.org"))

    assert statuses(said) == [421]


def connections(port: int) -> int:
    """Return how many connections to *port* of this machine are open, as Linux tells it."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text("utf-8").splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_bodies_that_stop_halfway_stay_with_the_proxy(caddy: Caddy, site: AttackedSite) -> None:
    half = head("Content-Length: 99") + b"{"
    with ExitStack() as slow:
        for _ in range(50):
            slow.enter_context(caddy.connect()).sendall(half)

        assert site.report(good(JSON, today())).status == 202
        assert connections(site.port) < 10


def test_no_address_of_a_device_reaches_the_collector_or_stays_with_the_proxy(
    caddy: Caddy, site: AttackedSite, tmp_path: Path
) -> None:
    """Law: nor where the collector is away, and the proxy has something to complain of."""
    forged = head("Content-Length: 99999999", "X-Forwarded-For: 203.0.113.9")
    caddy.send(forged, LAST, patience=QUIET, sender=ELSEWHERE)
    with shipped_caddy(tmp_path / "alone", free_port()) as alone:
        said = alone.send(LAST, sender=ELSEWHERE)
        alone.send(forged, patience=QUIET, sender=ELSEWHERE)
        logs = caddy.log() + alone.log()

    assert statuses(said) == [502]
    assert ELSEWHERE not in logs
    assert "203.0.113.9" not in logs
    assert b"203.0.113.9" not in site.kept()


def test_the_test_above_would_see_an_address(site: AttackedSite, tmp_path: Path) -> None:
    """Its planted bug: the file without the line that leaves such logs out."""
    text = SHIPPED.read_text(encoding="utf-8")
    assert "exclude http.log http.handlers" in text
    with shipped_caddy(
        tmp_path, free_port(), text.replace("exclude http.log http.handlers", "")
    ) as alone:
        alone.send(LAST, sender=ELSEWHERE)

        assert ELSEWHERE in alone.log()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SMUGGLING)))
def test_proxy_and_collector_never_see_two_different_requests(
    caddy: Caddy, site: AttackedSite, number: int
) -> None:
    """No answer comes to a request that was not sent; whoever comes next gets their own.

    Caddy says 502 of chunks that are none: no device sends them, or would drop a report for it.
    """
    form, sender = list(SMUGGLING.values())[number], f"127.0.1.{number}"
    said = caddy.send(form + LAST, sender=sender, patience=QUIET)

    found = statuses(said)
    assert len(found) <= 2
    assert not {500, 503, 504} & set(found)
    assert said.count(b'"status":"ok"') == found.count(200) <= 1
    for _ in range(3):
        assert caddy.send(LAST, sender=sender).endswith(b'{"status":"ok"}\n')
    assert site.is_well()
