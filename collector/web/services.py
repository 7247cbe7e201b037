"""What the routes of one application share: its services, and the headers of every answer.

The headers allow no script but ours, no frame and no cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from flask import Flask, current_app

from ..core.catalog import Catalog
from ..core.config import Config
from ..core.logs import Incidents
from ..intake.backpressure import Pressure, TokenBuckets
from ..intake.capsules import Opener
from ..intake.keyring import Keyring
from ..intake.memory_quota import IdQuota
from ..intake.tally_quota import TallyQuota
from ..operations.questions import Questions
from ..operations.telemetry.activity import Activity
from ..operations.telemetry.snapshot import Snapshot
from ..query.cache import Cache
from ..query.gate import Gate
from ..storage.protocols import Intake, TallyStore
from ..storage.records import WatchState
from ..workspace.links import Links
from ..workspace.shelf import Workspace
from .cors import Cors
from .ingest.upload import HotRoute, Observer

_NAME: Final = "hearsay"
EVERY_ANSWER: Final = (
    (
        "Content-Security-Policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Strict-Transport-Security", "max-age=31536000"),  # browsers heed it over TLS only
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
FRAMES: Final = "Content-Security-Policy"
NO_FRAMES: Final = "frame-ancestors 'none'"
CACHE: Final = "Cache-Control"
REVALIDATE: Final = "private, no-cache"  # kept, but not used before the collector was asked
FOR_EVERYBODY: Final = "public, max-age=3600"  # an hour later a device knows all the same
NO_STORE: Final = "no-store"  # unless a page says otherwise


@dataclass(frozen=True)
class Services:
    """What a route may use: settings, metrics, stores, keys and tokens, Unix time in seconds."""

    config: Config
    catalog: Catalog
    cors: Cors  # whose pages may report from a browser
    storage: Intake
    tallies: TallyStore  # of the same store, to be read only
    gate: Gate  # of large questions
    keyring: Keyring
    clock: Callable[[], float]
    pressure: Pressure
    tally_quota: TallyQuota
    id_quota: IdQuota
    hot: HotRoute
    opener: Opener | None  # of capsules, where there are keys
    retired: Callable[[], bytes]  # the list of retired metrics; raises where there is none
    activity: Activity  # what this process counts
    snapshot: Callable[[], Snapshot]  # the state of the deployment
    watches: Callable[[], WatchState]  # what they said
    answers: Cache[bytes]  # those that cannot change any more
    pages: Cache[Any]  # answers by their tallies, and charts by their rows
    workspace: Workspace  # boards, questions, notes and links
    links: Links  # to share it
    writes: TokenBuckets  # how fast each token may write it
    incidents: Incidents  # failures that the log knows
    questions: Questions | None  # counts questions by visitor, if wanted
    recent: Observer | None  # of a development collector only

    def attach(self, app: Flask) -> None:
        """Let the routes of *app* find these services."""
        app.extensions[_NAME] = self


def services() -> Services:
    """Return what the running application was built with."""
    return services_of(current_app)


def services_of(app: Flask) -> Services:
    """Return what *app* was built with."""
    shared: Services = app.extensions[_NAME]
    return shared
