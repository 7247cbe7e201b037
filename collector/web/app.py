"""The application, and a web process as the server starts it.

The HTTP server limits no answers.  A connection takes over the options of the socket that it came
in by, so limits are set there, once, and the system keeps them on every connection.
"""

from __future__ import annotations

import gc
import logging
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from flask import Flask, request
from werkzeug.routing import BaseConverter
from werkzeug.wrappers import Response

from ..core.catalog import Catalog
from ..core.config import Config
from ..core.credentials import OPERATE, REPORT
from ..core.logs import Incidents, configure
from ..core.proxies import require_apps
from ..intake.backpressure import Pressure, TokenBuckets
from ..intake.capsules import Opener
from ..intake.keyring import Keyring
from ..intake.memory_quota import IdQuota
from ..intake.oblivious_keys import read_keys
from ..intake.tally_quota import TallyQuota
from ..intake.tokens import Tokens, days_kept
from ..operations.parent_death import end_with_parent
from ..operations.pulses import pulse
from ..operations.questions import Questions
from ..operations.telemetry.activity import LOST, WEB, Activity
from ..operations.telemetry.snapshot import Sources, take
from ..query.cache import Cache
from ..query.gate import Gate
from ..storage.connect import connect, connect_reader
from ..storage.documents import DocumentStore
from ..storage.hashes import MemoryHashes
from ..storage.protocols import Intake, TallyStore
from ..storage.records import CredentialStore
from ..workspace.documents import File, read_file
from ..workspace.links import Links
from ..workspace.shelf import Workspace
from . import auth, problems
from .api import openapi, query, workspace
from .cors import ASKED_METHOD, PREFLIGHT, Cors
from .ingest import recent, route
from .ingest.front import Front
from .ingest.recent import RecentReports
from .ingest.upload import HotRoute
from .pages import blueprints
from .pages.layout import OPENED, page_of, utc
from .services import CACHE, EVERY_ANSWER, FRAMES, NO_FRAMES, NO_STORE, Services, services

UNREAD_S: Final = 10  # seconds without progress after which an answer is given up
SEND_BUFFER: Final = 32 * 1024  # bytes of answers; the system doubles it, and never lets it grow
_OPEN_FILES: Final = "/dev/fd"
_USER_TIMEOUT: Final = getattr(socket, "TCP_USER_TIMEOUT", None)  # of Linux, since 2.6.37

_log = logging.getLogger("hearsay.web")
_ALLOCATIONS: Final = 10_000  # objects between two collections; an upload of ten columns makes 100


class Store(Intake, TallyStore, Protocol):
    """A store for one application: it takes uploads, and is read for answers."""


class MetricConverter(BaseConverter):
    """``name`` or ``app/name`` in an address; what stands before a file is always a name."""

    regex = r"(?:[a-z0-9_.]+/(?![^/]+\.(?:csv|svg|png|json|geojson|parquet)$))?[a-z0-9_.]+"
    part_isolating = False


def create_app(
    config: Config | None = None,
    storage: Store | None = None,
    clock: Callable[[], float] = time.time,
    credentials: CredentialStore | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    sources: Sources | None = None,
    documents: DocumentStore | None = None,
) -> Flask:
    """Return the collector's Flask application.

    Args:   config: settings; read from the environment if left out.
            storage: a prepared store; connected as *config* says if left out.
            credentials: keys and tokens in addition to *config*; in its store if left out.
            sources: of /metrics; its store, or with a *storage* this process alone, if left out.
            documents: boards and notes; in its store, or with a *storage* in memory, if left out.
    Raises: ConfigError, RegistryError: the settings, a registry or the file of boards are wrong.
    """
    config = config or Config.from_env()
    catalog = Catalog.from_files(config.registry_paths)
    require_apps(config.proxy, catalog.apps)
    if config.retired:
        route.retired_list(config.retired)  # a mistake in it stops the start
    app = Flask(__name__)
    app.url_map.converters["metric"] = MetricConverter
    app.url_map.merge_slashes = False  # an address is right or unknown; nothing is redirected
    credentials = credentials or CredentialStore.of(config)
    keyring = Keyring(config.credentials, credentials, catalog, clock, monotonic)
    sources = sources or (Sources.alone() if storage else Sources.of(config))
    activity = Activity(WEB, sources.activity, clock)
    for opened in (REPORT, OPERATE):
        held = config.credentials.values()
        activity.grant(opened, sum(opened in credential.scopes for credential in held))
    documents = documents or (
        DocumentStore(MemoryHashes()) if storage else DocumentStore.of(config)
    )
    file = read_file(config.boards) if config.boards else File(schema=1)
    tallies = storage or connect_reader(config)
    storage = storage or connect(config)
    tell_lost = partial(activity.add, LOST, "")
    limits = config.max_backlog, config.key_rate
    pressure = Pressure(storage, *limits, monotonic, clock, tell_lost, activity.see_empty)
    kept_by_people = Workspace(
        documents,
        clock,
        file,
        lambda: pressure.load.health.memory,
        config.documents_mb << 20,
        len(catalog.apps),
    )
    id_quota = IdQuota(credentials, clock, monotonic, days_kept(bool(config.issuer_keys)))
    tally_quota = TallyQuota(
        storage, credentials, catalog, config.new_tallies_mb, clock, monotonic, id_quota.begun
    )
    kept = RecentReports(catalog) if config.development else None
    tokens = Tokens.of_files(config.issuer_keys, required=config.require_token)
    hot = HotRoute(keyring, pressure, id_quota, tally_quota, activity, kept, tokens)
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
        refused=pressure.refused,
    )
    Services(
        config=config,
        catalog=catalog,
        cors=Cors(config.origins),
        storage=storage,
        tallies=tallies,
        gate=Gate(),
        keyring=keyring,
        clock=clock,
        pressure=pressure,
        id_quota=id_quota,
        tally_quota=tally_quota,
        hot=hot,
        opener=Opener(read_keys(config.oblivious_keys)) if config.oblivious_keys else None,
        retired=partial(route.list_of, config.retired),
        activity=activity,
        snapshot=snapshot,
        watches=sources.watches,
        answers=Cache(),
        pages=Cache(),
        workspace=kept_by_people,
        writes=TokenBuckets(auth.WRITES, monotonic, burst_s=auth.WRITES_BURST_S),
        links=Links(kept_by_people.links, documents, clock, monotonic),
        incidents=Incidents(monotonic),
        questions=Questions(credentials, clock, monotonic) if config.audit else None,
        recent=kept,
    ).attach(app)
    app.jinja_env.filters |= {"utc": utc}
    app.json.sort_keys = False  # type: ignore[attr-defined]  # the default provider has it
    for module in (route, query, workspace, openapi):
        app.register_blueprint(module.blueprint)
    if config.development:
        app.register_blueprint(recent.blueprint)
    for blueprint in blueprints():
        app.register_blueprint(blueprint)
    app.before_request(_answer_preflight)
    auth.guard(app)
    openapi.declare_files(app)
    problems.register(app, page_of)
    app.after_request(_harden)
    return app


def _harden(response: Response) -> Response:
    """Set the headers that every answer carries."""
    for name, value in EVERY_ANSWER:
        response.headers[name] = value
    origins = services().config.embed_origins
    if origins and request.endpoint == OPENED:
        policy = response.headers[FRAMES]
        framed = NO_FRAMES.replace("'none'", " ".join(origins))
        response.headers[FRAMES] = policy.replace(NO_FRAMES, framed)
    response.headers.setdefault(CACHE, NO_STORE)
    for name, value in services().cors.headers(request.path, request.headers.getlist("Origin")):
        response.headers.setdefault(name, value)
    return response


def _answer_preflight() -> Response | None:
    """Answer a browser that asks before it sends, for a listed origin: without a credential."""
    if request.method != PREFLIGHT or ASKED_METHOD not in request.headers:
        return None
    headers = services().cors.preflight(request.path, request.headers.getlist("Origin"))
    return None if headers is None else Response(status=204, headers=list(headers))


def limit_answers() -> None:
    """Let the system end connections of this process' server whose answers are not read."""
    listening = 0
    for listener in _listening():
        with listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            if _USER_TIMEOUT is not None:
                listener.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, 1_000 * UNREAD_S)
                listening += 1
    if not listening:
        _log.warning("web: this system does not end connections whose answers are not read")


def _listening() -> Iterator[socket.socket]:
    """Yield the sockets on which this process listens, each by a descriptor of its own."""
    for name in os.listdir(_OPEN_FILES):
        with suppress(OSError):  # closed meanwhile
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            listener = socket.socket(fileno=os.dup(int(name)))
            is_tcp = listener.family in (socket.AF_INET, socket.AF_INET6)
            if is_tcp and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield listener
            else:
                listener.close()


def create_process() -> Front:
    """Return the application of a process that ends with the server that started it."""
    end_with_parent()  # otherwise a killed server would leave it answering, under old keys
    configure(WEB)
    front = Front(create_app(), listens=limit_answers, beat=pulse())
    gc.collect()
    gc.freeze()  # what is loaded stays: it need not be looked through again and again
    gc.set_threshold(_ALLOCATIONS)
    return front
