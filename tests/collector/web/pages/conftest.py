"""The pages over a store in memory that holds reports of a metric of every type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.core.epoch import DAY
from collector.core.config import Config
from collector.core.credentials import ANALYST, OPERATOR, READ, ROLES, VIEWER, Credential
from collector.query import Query, read
from collector.storage.documents import DocumentStore
from collector.storage.hashes import MemoryHashes
from collector.web import create_app
from collector.workspace.shelf import Workspace
from tests.support.crowds.uploads import ADMIN_TOKEN, NOON, READ_TOKEN, WRITE_KEY
from tests.support.device.every_type import fill, registry_text
from tests.support.sites.templates import compiled_once
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ONE_METRIC = "set"
END = int(NOON // DAY) + 9  # the day on which tokens end
OURS: Final = {**BROWSER, "Sec-Fetch-Site": "same-origin"}
WIKI: Final = "https://wiki.example.org"
QUESTION: Final = json.dumps({"metrics": ["category"], "verb": "top_k", "date_range": "28d"})
OTHER: Final = json.dumps({"metrics": [ONE_METRIC]})
ANALYST_OF_ONE: Final = "an-analyst-of-one-metric"
Visit: TypeAlias = Callable[..., TestResponse]


def token_of(name: str) -> str:
    """Return the token of a role, or of one metric."""
    return f"hsr_token-of-{name}"


def as_operator(app: Flask, credentials: MemoryCredentials) -> FlaskClient:
    """Return a client of *app* that is logged in as an operator."""
    operator = Credential(READ, role=OPERATOR, expires=END)
    client = app.test_client()
    client.set_cookie("hearsay", credentials.add(token_of("an-operator"), operator))
    return client


@pytest.fixture(scope="module")
def filled() -> MemoryStorage:
    storage = MemoryStorage()
    fill(storage)
    return storage


@pytest.fixture(scope="module")
def stored() -> MemoryCredentials:
    """Tokens of every role, and one of a single metric."""
    made = MemoryCredentials()
    for role in ROLES:
        made.add(token_of(role), Credential(READ, role=role, expires=END))
    one = frozenset({ONE_METRIC})
    made.add(token_of(ONE_METRIC), Credential(READ, role=OPERATOR, metrics=one, expires=END))
    return made


@pytest.fixture(scope="module")
def site(
    filled: MemoryStorage, stored: MemoryCredentials, tmp_path_factory: pytest.TempPathFactory
) -> Flask:
    path = tmp_path_factory.mktemp("types") / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    config = Config.from_env(
        {
            "HEARSAY_REGISTRY": str(path),
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "HEARSAY_READ_TOKEN": READ_TOKEN,
            "HEARSAY_ADMIN_TOKEN": ADMIN_TOKEN,
        }
    )
    return compiled_once(create_app(config, filled, lambda: NOON, stored))


@pytest.fixture
def browser(site: Flask) -> FlaskClient:
    """A browser that has not logged in."""
    return site.test_client()


@pytest.fixture
def visit(browser: FlaskClient) -> Visit:
    """Return what a browser gets that has logged in with the read token."""
    browser.set_cookie("hearsay", READ_TOKEN)

    def get(path: str, query: dict[str, str] | None = None, tag: str = "") -> TestResponse:
        headers = {**BROWSER, **({"If-None-Match": tag} if tag else {})}
        return browser.get(path, query_string=query, headers=headers, buffered=True)

    return get


def query_of(fields: dict[str, Any]) -> Query:
    """Return the question of *fields*, as the API reads it."""
    return read(json.dumps(fields).encode())


class Desk:
    """A collector of its own over the common tallies, and browsers of who has a token."""

    def __init__(self, site: Flask, storage: MemoryStorage, **settings: Any) -> None:
        self.documents, self.credentials = DocumentStore(MemoryHashes()), MemoryCredentials()
        for name, credential in (
            (VIEWER, Credential(READ, role=VIEWER, expires=END)),
            (ANALYST, Credential(READ, role=ANALYST, expires=END, label="Ada")),
            (
                ANALYST_OF_ONE,
                Credential(
                    READ, role=ANALYST, metrics=frozenset({ONE_METRIC}), app="types", expires=END
                ),
            ),
        ):
            self.credentials.add(token_of(name), credential)
        config = replace(site.extensions["hearsay"].config, **settings)
        self.app = compiled_once(
            create_app(config, storage, lambda: NOON, self.credentials, documents=self.documents)
        )
        self.workspace: Workspace = self.app.extensions["hearsay"].workspace

    def browser(self, name: str = ANALYST) -> FlaskClient:
        client = self.app.test_client()
        if name:
            client.set_cookie("hearsay", token_of(name))
        return client

    def get(self, path: str, name: str = ANALYST) -> TestResponse:
        return self.browser(name).get(path, headers=BROWSER)

    def post(self, path: str, who: str = ANALYST, **form: Any) -> TestResponse:
        return self.browser(who).post(path, data=form, headers=OURS)

    def board(self, *questions: str, title: str = "Release health") -> str:
        """Pin *questions* to a new board, and return its name."""
        first, *more = questions
        made = self.post("/pin", q=first, title="First", board="new", new=title)
        name = made.headers["Location"].removeprefix("/board/")
        for question in more:
            self.post("/pin", q=question, title="Next", board=name)
        return name

    def link(self, **form: Any) -> str:
        """Make a link, and return the path of its address."""
        made = self.post("/share", **{"days": "7", **form})
        place = made.headers["Location"].partition("#")[2]
        listed = self.get("/share").text.partition(f'id="{place}"')[2]
        address = re.search(r'value="http://localhost(/shared/[^"]+)"', listed)
        assert address
        return address[1]


@pytest.fixture
def desk(site: Flask, filled: MemoryStorage) -> Desk:
    return Desk(site, filled, embed_origins=(WIKI,))
