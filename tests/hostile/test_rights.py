"""Every route × every kind of credential × both ways to present it, against the table of the docs.

The routes are those of the application, so that a new one without a row fails.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from flask import Flask

from collector.core.credentials import ADMIN, GATEWAY, OPEN, READ, ROLES, WRITE, Credential
from collector.intake.wire import JSON
from collector.web.auth import scope
from collector.web.ingest.front import Front
from tests.support.crowds.uploads import TODAY, as_json, registry_text, upload
from tests.support.sites.in_memory import in_memory
from tests.support.sites.rsgi import Request, answers
from tests.support.store.memory_credentials import MemoryCredentials

PAGE: Final = Path(__file__).parents[2] / "docs" / "operate" / "security.md"
FORM: Final = "application/x-www-form-urlencoded"
BAD: Final = {
    "unknown": None,
    "expired": Credential(READ, role="operator", expires=TODAY),
    "revoked": Credential(READ, role="operator", expires=TODAY + 9, revoked=True),
    "expired admin": Credential(ADMIN, expires=TODAY),
    "revoked key": Credential(WRITE, revoked=True),
}
GOOD: Final = {
    "write": Credential(WRITE),
    "gateway": Credential(GATEWAY),
    **{role: Credential(READ, role=role, expires=TODAY + 9) for role in ROLES},
    "admin": Credential(ADMIN, expires=TODAY + 9),
}
COLUMNS: Final = ("nobody", *GOOD)
PAGES: Final = "listed page"  # the last column: what the script of a listed origin may read
LISTED: Final = "https://app.example.org"


def secret_of(name: str) -> str:
    """Return the secret of a credential; "" for none at all."""
    return "" if name == "none" else f"hsr_the-secret-of-{name.replace(' ', '-')}"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    stored = MemoryCredentials()
    for name, credential in (*BAD.items(), *GOOD.items()):
        if credential:
            stored.add(secret_of(name), credential)
    folder, settings = tmp_path_factory.mktemp("rights"), {"HEARSAY_ORIGINS": LISTED}
    return in_memory(folder, registry_text(), credentials=stored, settings=settings)


def routes(app: Flask) -> list[tuple[str, str]]:
    """Return every method and rule of *app*."""
    return sorted(
        (rule.rule, method)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    )


def path_of(rule: str) -> str:
    """Return *rule* as the docs write it."""
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule)


def request_of(rule: str, method: str, secret: str, way: str) -> Request:
    """Return a request to *rule*, good but perhaps for the *secret* that it presents."""
    path = re.sub(r"<[^>]*filename>", "hearsay.css", rule)
    path = (
        re.sub(r"<(\w+:)?name>", "page", path).replace("<panel>", "answer").replace("<kind>", "csv")
    )
    header = {"authorization": f"Bearer {secret}"}
    headers = {} if not secret else header if way == "header" else {"cookie": f"hearsay={secret}"}
    body = b""
    if method == "POST" and path == "/v1/reports":
        headers, body = {**headers, "content-type": JSON}, as_json(upload([]))
    elif method == "POST" and path == "/login":
        headers, body = {"content-type": FORM}, f"token={quote(secret)}".encode()
    elif method == "POST" and path == "/v1/query":
        headers, body = {**headers, "content-type": JSON}, b'{"metrics":["page"]}'
    return Request(path, method, headers, (body,))


def told(app: Flask, rule: str, method: str, name: str, way: str = "header") -> str:
    """Return ``yes`` if the credential *name* opens *rule*, else the status that refuses it."""
    front = Front(app, wrong_s=0.0)
    [answer] = answers(front, request_of(rule, method, secret_of(name), way))
    assert answer is not None
    assert answer.status < 500
    return str(answer.status) if answer.status in (401, 403) else "yes"


def table() -> dict[str, dict[str, str]]:
    """Return the table of the docs: by route, what each kind of credential gets."""
    rows = re.findall(r"^\| (`[A-Z]+ /.*?`) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    columns = (*COLUMNS, PAGES)
    return {
        route: dict(zip(columns, cells.split(" | "), strict=True))
        for routes, cells in rows
        for route in re.findall(r"`(.+?)`", routes)
    }


def test_the_table_has_each_route_and_no_other(app: Flask) -> None:
    there = sorted(f"{method} {path_of(rule)}" for rule, method in routes(app))

    assert sorted(table()) == there, f"write each route into the table of {PAGE}"


@pytest.mark.parametrize("name", ["none", *BAD, *GOOD])
def test_each_kind_of_credential_opens_what_the_table_says(app: Flask, name: str) -> None:
    """Unknown, expired and revoked are told the same as none: nobody learns which it is."""
    found = {
        f"{method} {path_of(rule)}": told(app, rule, method, name) for rule, method in routes(app)
    }

    kind = name if name in GOOD else "nobody"
    assert found == {route: cells[kind] for route, cells in table().items()}


@pytest.mark.parametrize("name", ["none", *GOOD])
def test_the_page_of_a_listed_origin_reads_what_the_table_says(app: Flask, name: str) -> None:
    """Whatever it presents, which it had to be given: a browser adds nothing."""
    found = {}
    for rule, method in routes(app):
        request = request_of(rule, method, secret_of(name), "header")
        from_page = request._replace(headers={**request.headers, "origin": LISTED})
        [answer] = answers(Front(app, wrong_s=0.0), from_page)
        assert answer is not None
        is_read = answer.headers.get("access-control-allow-origin") == LISTED
        found[f"{method} {path_of(rule)}"] = "yes" if is_read else "no"

    assert found == {route: cells[PAGES] for route, cells in table().items()}


@pytest.mark.parametrize("name", ["none", *BAD, *GOOD])
def test_a_cookie_opens_pages_as_a_header_does_and_the_api_never(app: Flask, name: str) -> None:
    cells = {
        route: rights["nobody" if name in ("none", *BAD) else name]
        for route, rights in table().items()
    }
    for rule, method in routes(app):
        route = f"{method} {path_of(rule)}"
        is_api = rule.startswith("/v1/") or rule == "/metrics"
        is_open = table()[route]["nobody"] == "yes"

        found = told(app, rule, method, name, "cookie")

        assert found == ("401" if is_api and not is_open else cells[route]), route


def test_a_route_with_another_scope_would_be_seen(app: Flask) -> None:
    """The control: the state of the collector, opened to everybody by mistake."""
    view = app.view_functions["ingest.metrics"]
    app.view_functions["ingest.metrics"] = scope(OPEN)(lambda: "state")
    try:
        found = told(app, "/metrics", "GET", "viewer")
    finally:
        app.view_functions["ingest.metrics"] = view

    assert found != table()["GET /metrics"]["viewer"]
