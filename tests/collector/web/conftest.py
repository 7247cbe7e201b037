"""The web process over a store in memory, without a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from flask import Flask
from flask.testing import FlaskClient

from collector.core.config import Config
from collector.web import create_app
from tests.support.crowds.uploads import (
    ADMIN_TOKEN,
    GATEWAY_KEY,
    NOON,
    READ_TOKEN,
    WRITE_KEY,
    registry_text,
)
from tests.support.sites.templates import compiled_once
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

MakeApp: TypeAlias = Callable[..., Flask]


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def credentials() -> MemoryCredentials:
    """The keys and tokens of the store: none yet."""
    return MemoryCredentials()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Settings of an application that measures what the tests' registry says."""
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    return Config.from_env(
        {
            "HEARSAY_REGISTRY": str(path),
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "HEARSAY_GATEWAY_KEY": GATEWAY_KEY,
            "HEARSAY_READ_TOKEN": READ_TOKEN,
            "HEARSAY_ADMIN_TOKEN": ADMIN_TOKEN,
        }
    )


@pytest.fixture
def make_app(storage: MemoryStorage, credentials: MemoryCredentials, config: Config) -> MakeApp:
    """Return a factory of applications: registry *text* and changed settings are arguments."""

    def make(text: str | None = None, **settings: Any) -> Flask:
        if text is not None:
            Path(config.registry_paths[0]).write_text(text, encoding="utf-8")
        changed = replace(config, **settings)
        return compiled_once(create_app(changed, storage, lambda: NOON, credentials))

    return make


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    return make_app()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()
