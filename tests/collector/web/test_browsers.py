"""What browsers are told and may do, and that no text of a registry acts in them."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from typing import Final

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.core.limits import MAX_LABEL
from collector.core.cells import Cell
from collector.core.errors import StorageUnavailableError
from collector.web.app import SEND_BUFFER, UNREAD_S, limit_answers
from collector.web.services import REVALIDATE
from tests.collector.web.conftest import MakeApp
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import (
    COMMON,
    READ_TOKEN,
    TODAY,
    WRITE_KEY,
    as_json,
    bearer,
    upload,
)
from tests.support.patience import PATIENCE
from tests.support.sites.page import Page
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Strict-Transport-Security": "max-age=31536000",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
CANARY: Final = "canary7f3a"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ORIGINS: Final = [
    *("https://example.org", "http://example.org", "null", "*", "", "file://", "localhost"),
    *("http://localhost", "http://localhost:8000", "http://127.0.0.1", "https://127.0.0.1:8000"),
    *("http://[::1]", "http://localhost.example.org", "http://localhostx", "http://xlocalhost"),
    *("http://127.0.0.1.nip.io", "http://127.0.0.1@example.org", "http://example.org#localhost"),
    *("http://example.org?localhost", "http://localhost%00.example.org", "HTTP://LOCALHOST"),
    *("http://localhost.", "http://sub.localhost", "https://localhost", "chrome-extension://abc"),
    *("moz-extension://abc", "app://localhost", "data:", "http://0.0.0.0", "http://2130706433"),
    *("https://exämple.org".encode().decode("latin-1"), "http://localhost, https://example.org"),
]


def addresses(app: Flask) -> list[str]:
    """Return an address of every route, and some that lead nowhere."""
    routed = [
        rule.rule.replace("<name>", "page")
        .replace("<panel>", "answer")
        .replace("<path:filename>", "hearsay.css")
        for rule in app.url_map.iter_rules()
    ]
    return [*routed, "/nothing", "/v1/metrics/none/estimate", "/static/../app.py", "/v1/reports/"]


@pytest.mark.parametrize("secret", ["", READ_TOKEN, WRITE_KEY])
def test_every_answer_to_any_method_carries_the_headers_errors_too(
    app: Flask, client: FlaskClient, secret: str
) -> None:
    statuses = set()
    for path in addresses(app):
        for method in METHODS:
            response = client.open(path, method=method, headers=bearer(secret), buffered=True)

            assert {name: response.headers.get(name) for name in HEADERS} == HEADERS, path
            assert response.headers["Cache-Control"] in ("no-store", "no-cache", REVALIDATE), path
            assert "Set-Cookie" not in response.headers
            assert "Server" not in response.headers
            statuses.add(response.status_code)

    assert {200, 401, 404, 405} - ({401} if secret == READ_TOKEN else set()) <= statuses


def test_there_are_thirty_origins() -> None:
    assert len(set(ORIGINS)) >= 30


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_no_origin_is_let_in_or_repeated(app: Flask, client: FlaskClient, method: str) -> None:
    for path in addresses(app):
        for origin in ORIGINS:
            headers = {
                **bearer(READ_TOKEN),
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization",
            }
            response = client.open(path, method=method, headers=headers, buffered=True)

            told = [name for name, _ in response.headers if name.startswith("Access-Control")]
            assert told == []
            assert not [v for _, v in response.headers if len(origin) > 5 and origin in v]


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "multipart/form-data"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_another_site_changes_nothing_with_what_a_browser_sends_by_itself(
    app: Flask, client: FlaskClient, storage: MemoryStorage, method: str, content_type: str
) -> None:
    """A browser sends no bearer token by itself; forms from elsewhere are refused."""
    for path in addresses(app):
        for origin in ORIGINS[:5]:
            client.set_cookie("token", READ_TOKEN)
            client.set_cookie("Authorization", f"Bearer {WRITE_KEY}")
            response = client.open(
                path,
                method=method,
                data=as_json(upload([])),
                content_type=content_type,
                headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"},
            )

            assert response.status_code in (401, 403, 404, 405)
            assert "Set-Cookie" not in response.headers

    assert storage.entries == {}


@pytest.mark.parametrize("place", ["?token=", "?access_token=", "?key=", "?Authorization=Bearer "])
def test_a_secret_in_an_address_opens_nothing_and_is_not_repeated(
    client: FlaskClient, place: str
) -> None:
    response = client.get(f"/v1/metrics{place}{READ_TOKEN}")

    assert response.status_code == 401
    assert READ_TOKEN not in response.text


def test_no_answer_and_no_log_repeats_what_was_presented(
    app: Flask,
    client: FlaskClient,
    credentials: MemoryCredentials,
    storage: MemoryStorage,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    for failure in (None, StorageUnavailableError("gone"), RuntimeError("broken")):
        storage.failure = credentials.failure = failure
        for path in addresses(app):
            for secret in (f"hsr_{CANARY}", READ_TOKEN, WRITE_KEY):
                headers = {**bearer(secret), "User-Agent": CANARY, "X-Forwarded-For": CANARY}
                data = as_json({CANARY: CANARY})
                for method in ("GET", "POST"):
                    response = client.open(
                        f"{path}?{CANARY}={CANARY}",
                        method=method,
                        data=data,
                        headers=headers,
                        buffered=True,
                    )
                    assert CANARY not in response.text + str(response.headers)
                    assert secret not in response.text + str(response.headers)

    assert not [s for s in (CANARY, READ_TOKEN, WRITE_KEY) if s in caplog.text]


TIMEOUT: int = getattr(socket, "TCP_USER_TIMEOUT", 0)
needs_linux = pytest.mark.skipif(not TIMEOUT, reason="only Linux ends such connections")


@needs_linux
@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_connection_has_a_small_buffer_and_ends_when_nothing_is_taken(
    family: socket.AddressFamily, host: str
) -> None:
    with ExitStack() as open_:
        server = open_.enter_context(socket.create_server((host, 0), family=family))
        files = len(os.listdir("/dev/fd"))

        limit_answers()

        assert len(os.listdir("/dev/fd")) == files
        open_.enter_context(socket.create_connection(server.getsockname()[:2], 5))
        accepted = open_.enter_context(server.accept()[0])
        assert accepted.getsockopt(socket.IPPROTO_TCP, TIMEOUT) == 1_000 * UNREAD_S
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * SEND_BUFFER


def test_a_process_that_cannot_have_such_limits_says_so() -> None:
    """As on another system, or where the server listens by means that this module cannot see."""
    program = "from collector.web.app import limit_answers; limit_answers()"

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert "whose answers are not read" in done.stderr


LABELS: Final = tuple(text for text in MARKUP if len(text) <= MAX_LABEL)[:1_000]
A_METRIC: Final = 50  # labels
REPORTS: Final = 1_000


def hostile_registry() -> str:
    parts = ['schema = 1\napp = "test"\n']
    for number in range(0, len(LABELS), A_METRIC):
        labels = LABELS[number : number + A_METRIC]
        quoted = ", ".join(json.dumps(label) for label in labels)
        common = COMMON.format(epsilon="1.0", min_reports=100, expires="2027-12-31")
        parts.append(
            f"[metrics.m{number}]\ntitle = {json.dumps(labels[0])}\n"
            f"question = {json.dumps(labels[1])}\ntype = 'category'\nvalues = [{quoted}]\n"
            f"mechanism = 'grr'\nevery = '1d'\n{common}"
        )
    return "\n".join(parts)


def test_a_thousand_hostile_labels_are_shown_as_text(
    make_app: MakeApp, storage: MemoryStorage
) -> None:
    """In titles, questions, forms, tables and charts, with answers beside them."""
    assert len(set(LABELS)) == 1_000
    app = make_app(hostile_registry())
    metrics = list(app.extensions["hearsay"].catalog.registries[0])
    for metric in metrics:
        cell = Cell(metric.digest, TODAY, "")
        storage.tallied[cell] |= {0: REPORTS, 1: REPORTS - 2, 2: 1, 3: 1}
    paths = ["/", "/privacy/people", *(f"/metric/{metric.name}" for metric in metrics)]

    pages = [app.test_client().get(path, headers=bearer(READ_TOKEN)).text for path in paths]

    read = [Page(text) for text in pages]
    assert [page.acting for page in read if page.acting] == []
    shown = "".join(page.text for page in read)
    assert [label for label in LABELS if label not in shown] == []


def test_hostile_labels_leave_the_query_api_as_json_only(make_app: MakeApp) -> None:
    """With a type that no browser shows as a page."""
    client = make_app(hostile_registry()).test_client()

    response = client.get("/v1/metrics", headers=bearer(READ_TOKEN))

    assert response.content_type == "application/json"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.get_json()["metrics"][0]["values"] == list(LABELS[:A_METRIC])


@pytest.mark.parametrize("place", ["<p>{}</p>", "<p title='{}'>x</p>", "<svg>{}</svg>"])
def test_a_page_that_forgets_to_escape_would_be_caught(place: str) -> None:
    """The control: unescaped, many labels act."""
    acting = [label for label in LABELS if Page(place.format(label)).acting]

    assert len(acting) > len(LABELS) // 20
