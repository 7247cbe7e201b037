"""The pages over a store in memory that holds reports of a metric of every type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.core.epoch import DAY
from collector.core.config import Config
from collector.core.credentials import OPERATOR, READ, ROLES, Credential
from collector.web import create_app
from tests.support.crowds.uploads import ADMIN_TOKEN, NOON, READ_TOKEN, WRITE_KEY
from tests.support.device.every_type import fill, registry_text
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ONE_METRIC = "set"
END = int(NOON // DAY) + 9  # the day on which tokens end
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
    return create_app(config, filled, lambda: NOON, stored)


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
