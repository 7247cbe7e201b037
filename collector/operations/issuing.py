"""Make, list, renew and revoke keys and tokens.  A secret is returned once and stored nowhere."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from ..core.catalog import Catalog
from ..core.credentials import (
    ADMIN,
    EVERY_APP,
    GATEWAY,
    MAX_READ_DAYS,
    MAX_SERVICE_DAYS,
    READ,
    VIEWER,
    WRITE,
    Credential,
    digest_of,
    id_of,
    parse,
)
from ..core.errors import CredentialError, NotPreparedError
from ..storage.records import CredentialStore

_FIRST_DAY: Final = date(1970, 1, 1)  # epoch day 0
_SECRET_BYTES: Final = 32


@dataclass(frozen=True)
class CredentialRequest:
    """What an operator asks of a new credential.  None stands for what the kind usually has."""

    kind: str
    app: str | None = None
    metrics: Sequence[str] = ()
    role: str | None = None
    days: int | None = None
    quota: int | None = None
    label: str = ""
    roles: Mapping[str, str] | None = None  # by app, or EVERY_APP; instead of app, metrics and role
    service: bool = False  # of a program: it may live longer, and opens no page


def issue(
    request: CredentialRequest, store: CredentialStore, catalog: Catalog, today: int
) -> tuple[str, str]:
    """Store a new credential; return its secret and its id.

    Raises: CredentialError: names what cannot be granted, and what could.
    """
    credential = _granted(request, catalog, today)
    secret = new_secret(credential.kind)
    digest = digest_of(secret)
    store.put(digest, credential.to_json())
    return secret, id_of(digest)


def new_secret(kind: str) -> str:
    """Return a fresh secret.  Its first letters tell people, and scanners of code, what it is."""
    return f"hs{kind[0]}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def revoke(id_: str, store: CredentialStore) -> Credential:
    """Revoke the credential *id_*; return it.  Its record stays, to be listed.

    Raises: CredentialError: there is no such id.
    """
    while True:  # until no other process has written between our reading and our writing
        digest, record = _record_of(id_, store)
        credential = replace(_readable(record), revoked=True)
        try:
            if store.replace(digest, record, credential.to_json()):
                return credential
        except NotPreparedError:  # before hearsay init: whatever is there, revoked it shall be
            store.put(digest, credential.to_json())
            return credential


def renew(id_: str, days: int | None, store: CredentialStore, today: int) -> Credential:
    """Let the credential *id_* be good for *days* from today; return it.  None: as many as usual.

    It keeps its secret, so its holder need not change anything.

    Raises: CredentialError: there is no such id, it is no longer good, or it never ends.
            NotPreparedError: hearsay init has not run.
    """

    def prolonged(credential: Credential) -> Credential:
        if credential.expires is None:
            raise CredentialError("id", "never expires, so there is nothing to renew")
        writes = credential.kind in (WRITE, GATEWAY)
        _require_days(days, writes=writes, service=credential.service)
        most = MAX_SERVICE_DAYS if credential.service else MAX_READ_DAYS
        last = today + (most if days is None else days)
        return replace(credential, expires=max(credential.expires, last))

    return _change(id_, store, today, prolonged)


def set_quota(id_: str, quota: int | None, store: CredentialStore, today: int) -> Credential:
    """Let the write key *id_* send *quota* reports a UTC day, None: any number; return it.

    Raises: CredentialError: there is no such id, it is no longer good, or it is no write key.
            NotPreparedError: hearsay init has not run.
    """

    def limited(credential: Credential) -> Credential:
        if credential.kind not in (WRITE, GATEWAY):
            raise CredentialError("id", "is of a token; a quota is for write keys only")
        return replace(credential, quota=quota)

    return _change(id_, store, today, limited)


def _change(
    id_: str, store: CredentialStore, today: int, change: Callable[[Credential], Credential]
) -> Credential:
    """Put what *change* makes of the credential *id_* in its place, and return it."""
    while True:  # as above: a token that is revoked meanwhile must stay so
        digest, record = _record_of(id_, store)
        credential = _readable(record)
        if not credential.is_good(today):
            state = _state(credential, today)
            raise CredentialError("id", f"is {state}; make another with hearsay keys create")
        changed = change(credential)
        if store.replace(digest, record, changed.to_json()):
            return changed


def listed(store: CredentialStore, today: int) -> Iterator[tuple[str, str, Credential]]:
    """Yield id, state and record of every credential, by id."""
    for digest, record in sorted(store.records().items()):
        credential = _readable(record)
        yield id_of(digest), _state(credential, today), credential


def day_text(day: int | None) -> str:
    """Return epoch day *day* as a date; "never" for None."""
    return "never" if day is None else (_FIRST_DAY + timedelta(days=day)).isoformat()


def _record_of(id_: str, store: CredentialStore) -> tuple[bytes, bytes]:
    """Return digest and record of the credential *id_*."""
    for digest, record in store.records().items():
        if id_of(digest) == id_:
            return digest, record
    raise CredentialError("id", "is of no key or token; hearsay keys list shows them")


def _granted(request: CredentialRequest, catalog: Catalog, today: int) -> Credential:
    writes = request.kind in (WRITE, GATEWAY)
    app = None if request.kind == ADMIN or request.roles else _app(request.app, catalog)
    for name in set(request.roles or ()) - {EVERY_APP}:
        _app(name, catalog)
    if request.roles and (request.app or request.metrics):
        raise CredentialError("role", "by app stands instead of --app and --metric")
    metrics = {m for r in catalog.registries if r.app == app for m in r.metrics}
    for name in request.metrics:
        if name not in metrics:
            rule = f"{name} is no metric of {app}; known are {', '.join(sorted(metrics))}"
            raise CredentialError("metric", rule)
    _require_days(request.days, writes=writes, service=request.service)
    days = request.days
    if not writes and days is None:
        days = MAX_SERVICE_DAYS if request.service else MAX_READ_DAYS
    return Credential(
        kind=request.kind,
        app=app,
        metrics=frozenset(request.metrics) or None,
        role=request.role or (VIEWER if request.kind == READ and not request.roles else None),
        expires=None if days is None else today + days,
        quota=request.quota,
        label=request.label,
        roles=request.roles,
        service=request.service,
    )


def _require_days(days: int | None, *, writes: bool, service: bool) -> None:
    most = MAX_SERVICE_DAYS if service else MAX_READ_DAYS
    if not writes and days is not None and days > most:
        more = "" if service else f"; with --service, for a program, {MAX_SERVICE_DAYS}"
        rule = f"must be at most {most} of a read or admin token{more}"
        raise CredentialError("days", rule)


def _app(name: str | None, catalog: Catalog) -> str:
    apps = list(dict.fromkeys(registry.app for registry in catalog.registries))
    if name is None and len(apps) == 1:
        return apps[0]
    if name not in apps:
        raise CredentialError("app", f"must be one of {', '.join(apps)}")
    return name


def _readable(record: bytes) -> Credential:
    """Return *record*; one that cannot be read opens nothing, and is shown as revoked."""
    try:
        return parse(record)
    except CredentialError:
        return Credential(WRITE, label="(record cannot be read)", revoked=True)


def _state(credential: Credential, today: int) -> str:
    if credential.revoked:
        return "revoked"
    return "good" if credential.is_good(today) else "expired"
