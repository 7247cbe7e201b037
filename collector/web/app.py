"""The application factory."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from flask import Flask
from werkzeug.wrappers import Response

from ..core.catalog import Catalog
from ..core.config import Config
from ..core.credentials import OPERATE, REPORT
from ..core.logs import Incidents
from ..intake.backpressure import Pressure
from ..intake.keyring import Keyring
from ..intake.memory_quota import Growth, Shares
from ..operations.telemetry.activity import WEB, Activity
from ..operations.telemetry.snapshot import Sources, take
from ..query.cache import Cache
from ..query.price import Gate
from ..storage.connect import connect, connect_reader
from ..storage.protocols import Intake, TallyStore
from ..storage.records import CredentialStore, open_credentials
from . import auth, problems
from .api import openapi, query, status
from .ingest import route
from .pages import BLUEPRINTS
from .pages.faults import page_of
from .services import CACHE, EVERY_ANSWER, NO_STORE, Services
from .upload import HotRoute


class Store(Intake, TallyStore, Protocol):
    """A store for one application: it takes uploads, and is read for answers."""


def create_app(
    config: Config | None = None,
    storage: Store | None = None,
    clock: Callable[[], float] = time.time,
    credentials: CredentialStore | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    sources: Sources | None = None,
) -> Flask:
    """Return the collector's Flask application.

    Args:   config: settings; read from the environment if left out.
            storage: a prepared store; connected as *config* says if left out.
            credentials: keys and tokens beside those of *config*; in its store if left out.
            sources: of /metrics; its store, or with a *storage* this process alone, if left out.
    Raises: ConfigError, RegistryError: the settings or a registry file are wrong.
    """
    config = config or Config.from_env()
    catalog = Catalog.from_files(config.registry_paths)
    app = Flask(__name__)
    app.url_map.merge_slashes = False  # an address is right or unknown; nothing is redirected
    credentials = credentials or open_credentials(config)
    keyring = Keyring(config.credentials, credentials, catalog, clock, monotonic)
    sources = sources or (Sources.alone() if storage else Sources.of(config))
    activity = Activity(WEB, sources.activity, clock)
    for opened in (REPORT, OPERATE):
        held = config.credentials.values()
        activity.grant(opened, sum(opened in credential.scopes for credential in held))
    tallies = Gate(storage or connect_reader(config))
    storage = storage or connect(config)
    pressure = Pressure(storage, config.max_backlog, config.key_rate, monotonic, clock)
    shares = Shares(credentials, clock, monotonic)
    most = config.new_tallies_mb * 1_000_000
    growth = Growth(storage, credentials, catalog, most, clock, monotonic)
    hot = HotRoute(keyring, pressure, shares, growth, activity)
    snapshot = partial(
        take,
        count=storage.counters,
        sources=sources,
        activity=activity,
        credentials=credentials,
        metrics=catalog,
        clock=clock,
        profile=config.profile,
        is_replaced=lambda: pressure.is_replaced,
    )
    Services(
        config=config,
        catalog=catalog,
        storage=storage,
        tallies=tallies,
        keyring=keyring,
        clock=clock,
        pressure=pressure,
        shares=shares,
        growth=growth,
        hot=hot,
        activity=activity,
        snapshot=snapshot,
        answers=Cache(),
        incidents=Incidents(monotonic),
    ).attach(app)
    app.json.sort_keys = False  # type: ignore[attr-defined]  # the default provider has it
    for module in (route, query, status, openapi):
        app.register_blueprint(module.blueprint)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    auth.guard(app)
    openapi.declare_files(app)
    problems.register(app, page_of)
    app.after_request(_harden)
    return app


def _harden(response: Response) -> Response:
    """Set the headers that every answer carries."""
    for name, value in EVERY_ANSWER:
        response.headers[name] = value
    response.headers.setdefault(CACHE, NO_STORE)
    return response
