"""What the pages of listed origins can read, and of all others: nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest
from flask import Flask

from client_sdk.wire.reports import Column
from collector.core.errors import StorageUnavailableError
from collector.intake.wire import JSON
from collector.web.cors import METHODS, Cors
from collector.web.ingest.front import Front
from collector.web.ingest.route import RETIRED_PATH
from collector.web.ingest.upload import PATH
from collector.web.services import services_of
from tests.collector.web.conftest import MakeApp
from tests.collector.web.test_browsers import HEADERS, ORIGINS, addresses
from tests.support.crowds.uploads import (
    READ_TOKEN,
    TODAY,
    WRITE_KEY,
    as_json,
    bearer,
    registry,
    upload,
)
from tests.support.sites.rsgi import Request, answers
from tests.support.store.memory_storage import MemoryStorage

PAGE: Final = Column(registry().metric("page").digest, TODAY, b"\1")
LISTED: Final = "https://app.example.org"
OTHER: Final = "capacitor://localhost"
PREFLIGHT: Final = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]  # names in lower case

    @property
    def cors(self) -> dict[str, str]:
        """What lets another origin read it."""
        return {n: v for n, v in self.headers.items() if n.startswith("access-control-")}


Ask = Callable[..., Reply]


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    return make_app(origins=(LISTED, OTHER))


def by_server(app: Flask, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
    """Ask as ``hearsay serve`` answers."""
    [answer] = answers(Front(app, wrong_s=0.0), Request(path, method, headers, (body,)))
    assert answer is not None
    return Reply(answer.status, answer.headers)


def by_flask(app: Flask, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
    """Ask as any other server of Flask would."""
    answer = app.test_client().open(path, method=method, headers=headers, data=body, buffered=True)
    told = [(name.lower(), value) for name, value in answer.headers]
    assert len(dict(told)) == len(told)  # a browser refuses a header that is there twice
    return Reply(answer.status_code, dict(told))


@pytest.fixture(params=[by_server, by_flask])
def ask(request: pytest.FixtureRequest, app: Flask) -> Ask:
    """Send a request to the application that lists LISTED."""

    def send(
        method: str, path: str, origin: str | None = LISTED, *, body: bytes = b"", **more: Any
    ) -> Reply:
        headers = {} if origin is None else {"Origin": origin}
        found: Reply = request.param(app, method, path, headers | more.get("headers", {}), body)
        return found

    return send


def report(ask: Ask, origin: str | None = LISTED, key: str = WRITE_KEY, kind: str = JSON) -> Reply:
    headers = {**bearer(key), "Content-Type": kind}
    return ask("POST", PATH, origin, headers=headers, body=as_json(upload([PAGE])))


def test_the_paths_are_those_of_uploads_and_of_the_retired_list() -> None:
    assert METHODS == {PATH: "POST", RETIRED_PATH: "GET"}


@pytest.mark.parametrize("origin", [LISTED, OTHER])
def test_a_listed_origin_reads_the_answer_with_its_date_and_delay(ask: Ask, origin: str) -> None:
    answer = report(ask, origin)

    assert answer.status == 202
    assert answer.cors == {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": "Date, Retry-After",
    }
    assert answer.headers["vary"] == "Origin"


def test_a_listed_origin_reads_why_an_upload_was_refused(ask: Ask, storage: MemoryStorage) -> None:
    """Law: a problem document is read as any answer, also when the store is away."""
    refused = [
        report(ask, key="x" * 20),
        report(ask, kind="text/html"),
        ask("POST", PATH, headers={**bearer(WRITE_KEY), "Content-Type": JSON}, body=b"{"),
        ask("GET", RETIRED_PATH),
        ask("GET", PATH),
    ]
    storage.failure = StorageUnavailableError("gone")
    away = report(ask)

    assert [answer.status for answer in refused] == [401, 415, 400, 404, 405]
    assert (away.status, "retry-after" in away.headers) == (503, True)
    for answer in (*refused, away):
        assert answer.cors["access-control-allow-origin"] == LISTED
        assert answer.cors["access-control-expose-headers"] == "Date, Retry-After"


@pytest.mark.parametrize(("path", "method"), METHODS.items())
def test_a_preflight_is_answered_without_a_key_and_kept_for_a_day(
    ask: Ask, path: str, method: str
) -> None:
    answer = ask("OPTIONS", path, headers=PREFLIGHT)

    assert answer.status == 204
    assert answer.cors == {
        "access-control-allow-origin": LISTED,
        "access-control-expose-headers": "Date, Retry-After",
        "access-control-allow-methods": method,
        "access-control-allow-headers": "Authorization, Content-Type, Hearsay-Token",
        "access-control-max-age": "86400",
    }
    assert answer.headers["vary"] == "Origin"
    assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS


def test_no_answer_lets_a_browser_send_what_it_keeps_of_its_user(ask: Ask) -> None:
    for answer in (report(ask), ask("OPTIONS", PATH, headers=PREFLIGHT)):
        assert "access-control-allow-credentials" not in answer.headers
        assert "*" not in answer.cors.values()


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_every_other_origin_reads_nothing(app: Flask, method: str) -> None:
    """Thirty tricks, and spellings of a listed origin that are not it."""
    spellings = (f"{LISTED}/", f"{LISTED}:443", LISTED.upper(), f"{LISTED}.evil.org", f" {LISTED}")
    for path in METHODS:
        for origin in (*ORIGINS, *spellings, f"{LISTED}, {LISTED}", "https://x.app.example.org"):
            headers = {**bearer(READ_TOKEN), "Origin": origin, **PREFLIGHT}
            answer = by_server(app, method, path, headers, b"")

            assert answer.cors == {}
            assert answer.headers["vary"] == "Origin"
            assert not [v for v in answer.headers.values() if len(origin) > 5 and origin in v]


def test_no_other_path_is_read_by_any_origin(ask: Ask, app: Flask) -> None:
    """Law: answers, pages, health and the state of the collector are for no other site."""
    paths = [path for path in addresses(app) if path not in METHODS]

    assert len(paths) > 20
    for path in paths:
        for method in ("GET", "POST", "OPTIONS"):
            answer = ask(method, path, headers={**bearer(READ_TOKEN), **PREFLIGHT})

            assert answer.cors == {}, path


def test_without_a_setting_no_answer_speaks_of_origins(make_app: MakeApp) -> None:
    for way in (by_server, by_flask):
        headers = {"Origin": LISTED, **PREFLIGHT}
        answer = way(make_app(), "OPTIONS", PATH, headers, b"")

        assert answer.cors == {}
        assert "vary" not in answer.headers


def test_an_application_that_reflects_any_origin_would_be_seen(app: Flask) -> None:
    """The control of the tests of other origins."""

    class Reflecting(Cors):
        def _is_listed(self, named: Any) -> bool:
            return len(named) == 1

    shared = services_of(app)
    replace(shared, cors=Reflecting((LISTED,))).attach(app)

    answer = by_server(app, "POST", PATH, {"Origin": "https://evil.example"}, b"")

    assert answer.cors["access-control-allow-origin"] == "https://evil.example"
