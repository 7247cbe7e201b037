"""The application factory."""

from __future__ import annotations

import time
from collections.abc import Callable

from flask import Flask
from werkzeug.wrappers import Response

from client_sdk.registry import Registry

from ..catalog import Catalog
from ..config import Config
from ..storage import Storage
from ..storage.connect import connect
from . import health, ingest, pages, problems, query
from .services import Services


def create_app(
    config: Config | None = None,
    storage: Storage | None = None,
    clock: Callable[[], float] = time.time,
) -> Flask:
    """Return the collector's Flask application.

    Args:   config: settings; read from the environment if left out.
            storage: a prepared store; connected as *config* says if left out.
    Raises: ConfigError, RegistryError: the settings or a registry file are wrong.
    """
    config = config or Config.from_env()
    catalog = Catalog([Registry.from_file(path) for path in config.registry_paths])
    app = Flask(__name__)
    app.url_map.merge_slashes = False  # an address is right or unknown; nothing is redirected
    Services(config, catalog, storage or connect(config), clock).attach(app)
    app.json.sort_keys = False  # type: ignore[attr-defined]  # the default provider has it
    for blueprint in (ingest.blueprint, query.blueprint, health.blueprint, pages.blueprint):
        app.register_blueprint(blueprint)
    problems.register(app)
    app.after_request(_harden)
    return app


def _harden(response: Response) -> Response:
    """Set the headers that every answer carries: no script but ours, no frame, no cache."""
    headers = response.headers
    headers["Content-Security-Policy"] = (
        "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Strict-Transport-Security"] = "max-age=31536000"  # browsers heed it over TLS only
    headers["Referrer-Policy"] = "no-referrer"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers.setdefault("Cache-Control", "no-store")
    return response
