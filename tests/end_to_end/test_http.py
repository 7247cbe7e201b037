"""What only the real HTTP server can show: bodies without a length, and what it answers itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
import requests

from client_sdk.core.epoch import day_of
from client_sdk.core.limits import MAX_DEVICE_BODY
from client_sdk.upload.transport import JSON, Outcome, RequestsTransport, outcome_of
from client_sdk.wire.reports import Column, seal
from tests.support.crowds.uploads import (
    READ_TOKEN,
    WRITE_KEY,
    bearer,
    registry,
    registry_text,
)
from tests.support.patience import PATIENCE
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

OPTED_IN = registry().metric("opted_in")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    path = folder / "metrics.toml"
    path.write_text(registry_text(expires="2999-12-31"), encoding="utf-8")
    with running_site(folder / "store", path, WRITE_KEY, READ_TOKEN) as running:
        yield running


def post(site: Site, body: bytes | Iterator[bytes]) -> requests.Response:
    headers = {**bearer(WRITE_KEY), "Content-Type": "application/json"}
    return requests.post(f"{site.url}/v1/reports", data=body, headers=headers, timeout=PATIENCE)


def test_a_body_without_a_declared_length_is_read(site: Site) -> None:
    today = day_of(time.time())
    body = seal(b"\x11" * 16, today, {}, [Column(OPTED_IN.digest, 0, b"\1")])

    response = post(site, iter([body[:20], body[20:50], body[50:]]))

    assert response.status_code == 202
    assert response.json() == {"accepted": 1, "duplicate": False, "rejected": []}
    assert response.headers["Content-Security-Policy"].startswith("default-src 'self'")


def test_a_long_body_without_a_declared_length_is_refused(site: Site) -> None:
    response = post(site, iter([b" " * 4_096] * (2 * MAX_DEVICE_BODY // 4_096)))

    assert response.status_code == 413


def test_a_long_declared_body_is_refused(site: Site) -> None:
    assert post(site, bytes(2 * MAX_DEVICE_BODY)).status_code == 413


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{", JSON, 400),
        (seal(b"\x12" * 16, 3, {}, []), JSON, 410),
        (bytes(2 * MAX_DEVICE_BODY), JSON, 413),
        (b"{}", "text/plain", 415),
        (seal(b"\x13" * 16, 40_000, {}, []), JSON, 422),
    ],
)
def test_a_device_knows_a_final_answer_of_the_collector(
    site: Site, body: bytes, content_type: str, status: int
) -> None:
    """Law: what the collector says of an upload, the device takes for the collector's word."""
    transport = RequestsTransport(site.url, WRITE_KEY, content_type=content_type)

    answer = transport.send(body, 10.0)

    assert (answer.status, outcome_of(answer)) == (status, Outcome.PERMANENT)


def test_a_refused_key_is_no_final_answer(site: Site) -> None:
    answer = RequestsTransport(site.url, "another-key").send(b"{}", 10.0)

    assert (answer.status, outcome_of(answer)) == (401, Outcome.INCAPABLE)


def test_bodies_that_stop_half_way_hold_nobody(site: Site) -> None:
    """Not even more of them than the process has threads."""
    address = urlsplit(site.url)
    half = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    half += f"Authorization: Bearer {WRITE_KEY}\r\nContent-Length: 99\r\n\r\n{{".encode()
    with ExitStack() as slow:
        for _ in range(64):
            connection = socket.create_connection(
                (address.hostname, address.port), timeout=PATIENCE
            )
            slow.enter_context(connection).sendall(half)

        assert post(site, b"{}").status_code == 400


def test_headers_that_are_longer_than_any_honest_ones_are_refused(site: Site) -> None:
    answer = requests.get(f"{site.url}/livez", headers={"X-Long": "x" * 32_768}, timeout=PATIENCE)

    assert answer.status_code == 431


def test_the_server_still_answers_after_refusals(site: Site) -> None:
    post(site, b"\xff" * 10)
    post(site, bytes(2 * MAX_DEVICE_BODY))

    assert site.is_ready()
