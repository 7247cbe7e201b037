"""The checkup of ``hearsay doctor``: gather the state of a deployment, and run every check on it.

Checks are pure, state in and findings out, so that every case is tested.  ``check_settings`` checks
what needs no store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from client_sdk.core.epoch import day_of, epoch_label
from client_sdk.privacy.wording import counted
from client_sdk.wire.private_token import EVERY, week_of

from ...core.catalog import Catalog
from ...core.config import VOLATILE, Config
from ...core.credentials import readable
from ...core.errors import StorageUnavailableError
from ...core.proxies import require_apps
from ...core.settings import HIDDEN, is_loopback
from ...intake.oblivious_keys import read_keys
from ...intake.tokens import read_public
from ...planning.registry_report import warnings
from ...storage.connect import archive_queue, connect_reader, open_connection
from ...storage.connection import allowed
from ...storage.diagnosis import Diagnosis, diagnose
from ...storage.keys import Keys
from ...storage.records import (
    BYTES_BEGUN,
    REPORTS_SENT,
    ActivityStore,
    CredentialStore,
    SuspicionStore,
)
from ..telemetry.activity import CLOCK_WAITS, alive_among, granted_by, lost_by, totals_of
from . import definitions, retirement, servers, uploads
from .findings import FAULT, GOOD, NOTE, WARNING, Finding, State

PAUSE_S: Final = 2.0  # seconds between two looks at what workers hold; a fold takes below 0.1
_WEEKS_LEFT: Final = 8  # of keys of tokens, before which a release must be out


class Check(NamedTuple):
    """What judges a part of the state, and whether a web process may see that part."""

    judge: Callable[[Config, State], Iterator[Finding]]
    on_page: bool = False  # also on the page Operations; else in hearsay doctor alone


CHECKS: Final = (
    Check(servers.profile, on_page=True),
    Check(servers.library, on_page=True),
    Check(servers.shards),
    Check(servers.memory, on_page=True),
    Check(servers.packing),
    Check(servers.coverage),
    Check(servers.log, on_page=True),
    Check(servers.capacity, on_page=True),
    Check(servers.clock, on_page=True),
    Check(servers.generation),
    Check(servers.lost, on_page=True),
    Check(servers.confirmed),
    Check(servers.waits),
    Check(uploads.workers, on_page=True),
    Check(uploads.stuck),
    Check(uploads.conservation, on_page=True),
    Check(uploads.quarantine, on_page=True),
    Check(uploads.lateness, on_page=True),
    Check(uploads.archive),
    Check(uploads.suspicious, on_page=True),
    Check(uploads.keys),
    Check(uploads.expiring_tokens),
    Check(uploads.quotas),
    Check(uploads.growth),
    Check(uploads.registry, on_page=True),
    Check(retirement.retired),
    Check(definitions.check),
)


def examine(config: Config, state: State, *, for_page: bool = False) -> list[Finding]:
    """Return a finding of each thing that was looked at, good ones too.

    Args: for_page: only what can be judged from what a web process may see.
    """
    judges = (check.judge for check in CHECKS if check.on_page or not for_page)
    return [finding for judge in judges for finding in judge(config, state)]


def check_deployment(config: Config) -> list[Finding]:
    """Return what is found by asking the store; that it does not answer is a finding, too."""
    catalog = Catalog.from_files(config.registry_paths)
    diagnosis = diagnose(config)
    try:
        servers = diagnosis.servers()
        shards, profile = diagnosis.recorded()
        store, activity = CredentialStore.of(config), ActivityStore.of(config)
        now = time.time()
        today = day_of(now)
        records = allowed(store.records, None)
        stored = None if records is None else readable(records)  # hearsay keys list shows others
        signs = allowed(partial(activity.records, today), [])
        watched = allowed(SuspicionStore.of(config).records, {})
        state = State(
            servers=servers,
            shards=diagnosis.shards(),
            recorded_shards=shards,
            recorded_profile=profile,
            credentials=None if stored is None else {**config.credentials, **stored},
            alive=allowed(partial(alive_among, activity, now), None),
            metrics=tuple(catalog),
            granted=allowed(partial(granted_by, activity, now), None) or None,
            used=allowed(partial(store.share, REPORTS_SENT, today), {}),
            begun=allowed(partial(store.share, BYTES_BEGUN, today), {}),
            archiving=allowed(archive_queue(config).archiving, ()),
            stuck=_stuck(diagnosis),
            now=now,
            clock_waits=sum(totals_of(signs, {}).of(CLOCK_WAITS).values()),
            lost=lost_by(signs),
            watched={m.name: watched[m.digest] for m in catalog if m.digest in watched},
            retired=allowed(
                partial(retirement.look_at, config, catalog, connect_reader(config), now),
                retirement.look_at(config, catalog, None, now),
            ),
            orphans=definitions.orphans_of(config, catalog),
        )
    except StorageUnavailableError as error:
        away = diagnosis.away()
        if 0 < len(away) < config.shards:
            return [
                Finding(
                    FAULT,
                    "store",
                    f"shards {', '.join(map(str, away))}: {error}",
                    why="uploads and questions of these shards are answered 503; other shards work",
                    next="start their server, with its files: docs/operate/operate.md#shard-down",
                )
            ]
        return [
            Finding(
                FAULT,
                "store",
                str(error),
                why="uploads are answered 503 until it does; devices keep them and send again",
                next="check that the server runs in its own folder, REDIS_URL, user and password;"
                " if the store is empty and was not: docs/operate/operate.md#store-down",
            )
        ]
    return [
        Finding(GOOD, "store", f"{counted(len(servers), 'server')} answered"),
        *examine(config, state),
        *_of_issuers(config.issuer_keys, today),
    ]


def check_settings(config: Config) -> list[Finding]:
    """Return what can be said of *config* and its files without asking anybody.

    Raises: ConfigError, RegistryError: the collector would not start.
    """
    catalog = Catalog.from_files(config.registry_paths)
    Keys(config.prefix, config.shards)
    for url in (config.redis_url, config.query_url):
        open_connection(url)
    require_apps(config.proxy, catalog.apps)
    if config.retired:
        retirement.retired_list(config.retired)
    return [
        Finding(GOOD, "registry", counted(len(tuple(catalog)), "metric")),
        *_of_capsules(config),
        *_of_settings(config),
        *_of_registries(catalog, datetime.now(UTC).date()),
        *_of_issuers(config.issuer_keys, day_of(time.time())),
    ]


def _of_capsules(config: Config) -> Iterator[Finding]:
    """Yield by which keys capsules are opened.  Raises ConfigError: their file is wrong."""
    if config.oblivious_keys:
        keys = read_keys(config.oblivious_keys)
        names = " and ".join(f"key {key.key_id} of {key.since}" for key in keys)
        yield Finding(GOOD, "capsules", f"opened by {names}")


def _of_issuers(paths: Sequence[str], today: int) -> Iterator[Finding]:
    """Judge how long the keys last by which one-time tokens are taken.  Raises ConfigError."""
    if not paths:
        return
    week, keys = week_of(today), [key for path in paths for key in read_public(path).values()]
    last = max(key.week for key in keys)
    what = f"the last key of an issuer is of the week of {epoch_label(EVERY, last)}"
    step = "make new keys, and release the application with both digests: docs/guide/tokens.md#keys"
    if all(key.week != week for key in keys):
        yield Finding(
            FAULT,
            "tokens",
            what,
            why="no token is good this week: uploads with one are answered 403, and kept for now",
            next=step,
        )
    elif last - week < _WEEKS_LEFT:
        yield Finding(WARNING, "tokens", what, "then no token can be good any more", step)
    else:
        yield Finding(GOOD, "tokens", what)


def shown(config: Config) -> Iterator[str]:
    """Yield each setting as it took effect, secrets left out."""
    for field, row in config.rows().items():
        value = getattr(config, field)
        yield f"{field} = {HIDDEN if row.secret and value else value}"


def _of_settings(config: Config) -> Iterator[Finding]:
    if config.profile == VOLATILE:
        yield Finding(
            WARNING,
            "profile",
            "volatile",
            why="all reports are gone when the store restarts",
            next="set HEARSAY_PROFILE=strict",
        )
    if not is_loopback(config.host):
        yield Finding(
            NOTE,
            "host",
            f"listens on {config.host}",
            why="keys and tokens are readable on their way without TLS",
            next="let a proxy that ends TLS be the only one to reach it",
        )
    if not (config.write_key or config.gateway_key):
        yield Finding(
            NOTE,
            "keys",
            "the environment has no write key",
            next="set HEARSAY_WRITE_KEY_FILE, unless hearsay keys has made one",
        )
    if config.heartbeat and not os.access(Path(config.heartbeat).parent, os.W_OK):
        yield Finding(
            FAULT,
            "heartbeat",
            f"HEARSAY_HEARTBEAT={config.heartbeat}: its folder cannot be written",
            why="the worker would not start",
            next="name a file in a folder that is there",
        )


def _of_registries(catalog: Catalog, today: date) -> Iterator[Finding]:
    step = "see hearsay registry check"
    for text in warnings(catalog.registries[0], today):
        yield Finding(NOTE, "registry", text, next=step)


def _stuck(diagnosis: Diagnosis) -> int:
    """Return how many entries are delivered in the shards whose oldest one is not done in time."""
    first = diagnosis.held()
    if not any(held and held.entries for held in first):
        return 0
    time.sleep(PAUSE_S)
    pairs = zip(first, diagnosis.held(), strict=True)
    return sum(
        now.entries for then, now in pairs if then and now and now.oldest == then.oldest != ""
    )
