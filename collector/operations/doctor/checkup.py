"""The checkup of ``hearsay doctor``: gather the state of a deployment, and run every check on it.

Checks are pure, state in and findings out, so that every case is tested.  ``check_settings`` checks
what needs no store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

from client_sdk.core.epoch import day_of
from client_sdk.privacy.wording import counted

from ...core.catalog import Catalog
from ...core.config import HIDDEN, VOLATILE, Config, is_loopback
from ...core.credentials import REPORT, Credential, parse
from ...core.errors import CredentialError, RefusedByStoreError, StorageUnavailableError
from ...planning.registry_report import warnings
from ...storage.connect import archive_queue, open_connection
from ...storage.diagnosis import Diagnosis, diagnose
from ...storage.keys import Keys
from ...storage.records import (
    CredentialStore,
    WatchRecord,
    open_activity,
    open_credentials,
    open_suspicions,
)
from ...storage.values import ArchiveProgress
from ..telemetry.activity import CLOCK_WAITS, alive_among, granted_by, totals_of
from ..telemetry.snapshot import watched_in
from . import servers, uploads
from .findings import FAULT, GOOD, NOTE, WARNING, Finding, State

PAUSE_S: Final = 2.0  # seconds between two looks at what workers hold; a fold takes below 0.1
_SECRET = {"redis_url", "query_url"}  # settings that may hold a password


class Check(NamedTuple):
    """What judges a part of the state, and whether a web process may see that part."""

    judge: Callable[[Config, State], Iterator[Finding]]
    on_page: bool = False  # also on the page Operations; else in hearsay doctor alone


CHECKS: Final = (
    Check(servers.profile, on_page=True),
    Check(servers.library, on_page=True),
    Check(servers.shards),
    Check(servers.memory, on_page=True),
    Check(servers.log, on_page=True),
    Check(servers.capacity, on_page=True),
    Check(servers.clock, on_page=True),
    Check(servers.generation),
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
        store = open_credentials(config)
        now = time.time()
        state = State(
            servers=servers,
            shards=diagnosis.shards(),
            recorded_shards=shards,
            recorded_profile=profile,
            credentials=_credentials(config, store),
            alive=_alive(config),
            metrics=tuple(catalog),
            granted=_granted(config),
            used=_used(store.share_usage, now),
            begun=_used(store.share_growth, now),
            archiving=_archiving(config),
            stuck=_stuck(diagnosis),
            now=now,
            clock_waits=_clock_waits(config, now),
            watched=_watched(config, catalog),
        )
    except StorageUnavailableError as error:
        why = "uploads are answered 503 until it does; devices keep them and send again"
        step = (
            "look whether the server runs, in its own folder, and at REDIS_URL, user and password;"
            " of an empty store where there was one: docs/operate/operate.md#store-down"
        )
        return [Finding(FAULT, "store", str(error), why, step)]
    return [
        Finding(GOOD, "store", f"{counted(len(servers), 'server')} answered"),
        *examine(config, state),
    ]


def check_settings(config: Config) -> list[Finding]:
    """Return what can be said of *config* and its files without asking anybody.

    Raises: ConfigError, RegistryError: the collector would not start.
    """
    catalog = Catalog.from_files(config.registry_paths)
    Keys(config.prefix, config.shards)
    for url in (config.redis_url, config.query_url):
        open_connection(url)
    return [
        Finding(GOOD, "registry", counted(len(tuple(catalog)), "metric")),
        *_of_settings(config),
        *_of_registries(catalog, datetime.now(UTC).date()),
    ]


def shown(config: Config) -> Iterator[str]:
    """Yield each setting as it took effect, secrets left out."""
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name == "credentials":
            value = f"{len(value)} of the environment"
        yield f"{field.name} = {HIDDEN if field.name in _SECRET else value}"


def _of_settings(config: Config) -> Iterator[Finding]:
    if config.profile == VOLATILE:
        why = "all reports are gone when the store restarts"
        yield Finding(WARNING, "profile", "volatile", why, "set HEARSAY_PROFILE=strict")
    if not is_loopback(config.host):
        why = "keys and tokens are readable on their way without TLS"
        step = "let a proxy that ends TLS be the only one to reach it"
        yield Finding(NOTE, "host", f"listens on {config.host}", why, step)
    if not any(REPORT in credential.scopes for credential in config.credentials.values()):
        step = "set HEARSAY_WRITE_KEY_FILE, unless hearsay keys has made one"
        yield Finding(NOTE, "keys", "the environment has no write key", next=step)
    heartbeat = os.environ.get("HEARSAY_HEARTBEAT")
    if heartbeat and not os.access(Path(heartbeat).parent, os.W_OK):
        why = "the worker would not start"
        what = f"HEARSAY_HEARTBEAT={heartbeat}: its folder cannot be written"
        yield Finding(FAULT, "heartbeat", what, why, "name a file in a folder that is there")


def _of_registries(catalog: Catalog, today: date) -> Iterator[Finding]:
    step = "see hearsay registry check"
    for text in warnings(catalog.registries[0], today):
        what = text.strip().removeprefix("warning: ")
        yield Finding(NOTE, "registry", what, next=step)


def _alive(config: Config) -> Mapping[str, int] | None:
    """Return how many processes live, by role; None if their signs may not be read."""
    try:
        return alive_among(open_activity(config), time.time())
    except RefusedByStoreError:
        return None


def _clock_waits(config: Config, now: float) -> int:
    """Return in how many rounds of today workers found clocks apart; 0 if it may not be read."""
    try:
        records = open_activity(config).records(day_of(now))
    except RefusedByStoreError:
        return 0
    return sum(totals_of(records, {}).of(CLOCK_WAITS).values())


def _watched(config: Config, catalog: Catalog) -> Mapping[str, WatchRecord]:
    """Return what was found of closed epochs; nothing if it may not be read."""
    watched = watched_in(open_suspicions(config))
    return {metric.name: watched[metric.digest] for metric in catalog if metric.digest in watched}


def _granted(config: Config) -> Mapping[str, int] | None:
    """Return what the settings of live web processes open; None if none lives and tells."""
    try:
        return granted_by(open_activity(config), time.time()) or None
    except RefusedByStoreError:
        return None


def _used(
    share: Callable[[int, str, Mapping[bytes, int]], Mapping[bytes, int]], now: float
) -> Mapping[bytes, int]:
    """Return what *share* tells of today by key; nothing if it may not be read."""
    try:
        return share(day_of(now), "", {})
    except RefusedByStoreError:
        return {}


def _archiving(config: Config) -> Sequence[ArchiveProgress]:
    """Return how far the archive of each shard has got; nothing if it may not be read."""
    try:
        return archive_queue(config).archiving()
    except RefusedByStoreError:
        return ()


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


def _credentials(config: Config, store: CredentialStore) -> dict[bytes, Credential] | None:
    """Return the credentials of environment and store; None if they may not be read."""
    try:
        records = store.records()
    except RefusedByStoreError:
        return None
    credentials = dict(config.credentials)
    for digest, record in records.items():
        try:
            credentials[digest] = parse(record)
        except CredentialError:  # opens nothing; hearsay keys list shows it
            continue
    return credentials
