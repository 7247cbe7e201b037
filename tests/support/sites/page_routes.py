"""The routes of pages, which the description of the API leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from flask import Flask

from collector.core.config import Config
from collector.web import create_app
from collector.web.api.openapi import operation_of, path_of
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

_REGISTRY: Final = Path(__file__).parents[3] / "examples" / "metrics.toml"


def unasked() -> Flask:
    """Return an application for its routes only."""
    config = Config.from_env({"HEARSAY_REGISTRY": str(_REGISTRY)})
    return create_app(config, MemoryStorage(), credentials=MemoryCredentials())


def page_paths(method: str) -> list[str]:
    """Return the paths of all pages that take *method*, with names in braces."""
    app = unasked()
    return [
        path_of(rule)
        for rule in app.url_map.iter_rules()
        if method in (rule.methods or ()) and not operation_of(app.view_functions[rule.endpoint])
    ]
