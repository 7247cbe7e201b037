"""A collector in this process: its registries in files, its store in memory, its clock at noon."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from flask import Flask
from flask.testing import FlaskClient

from collector.core.config import Config
from collector.web import create_app
from tests.support.crowds.uploads import NOON, READ_TOKEN, WRITE_KEY
from tests.support.sites.templates import compiled_once
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

SECRETS: Final = {"HEARSAY_WRITE_KEY": WRITE_KEY, "HEARSAY_READ_TOKEN": READ_TOKEN}


def in_memory(
    folder: Path,
    *texts: str,
    storage: MemoryStorage | None = None,
    credentials: MemoryCredentials | None = None,
    settings: Mapping[str, str] = SECRETS,
    clock: Callable[[], float] = lambda: NOON,
    **more: Any,
) -> Flask:
    """Return a collector of the registries *texts*, which are written into *folder*."""
    paths = [folder / f"{place}.toml" for place in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    config = Config.from_env({"HEARSAY_REGISTRY": os.pathsep.join(map(str, paths)), **settings})
    kept = MemoryStorage() if storage is None else storage
    known = MemoryCredentials() if credentials is None else credentials
    return compiled_once(create_app(config, kept, clock, known, **more))


def browser_of(app: Flask, token: str = READ_TOKEN) -> FlaskClient:
    """Return a browser that has logged in with *token*."""
    client = app.test_client()
    client.set_cookie("hearsay", token)
    return client
