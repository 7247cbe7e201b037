"""The keys and tokens that a process knows: from its environment, and from the store, renewed.

Law: a revoked stored credential opens nothing TRUST_S later, even if the store does not answer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from client_sdk.core.epoch import day_of
from client_sdk.core.limits import MAX_DEVICE_BODY, MAX_GATEWAY_BODY

from ..core.catalog import Catalog
from ..core.cells import MOST_KEYS, OTHER_KEYS, UNKNOWN, Source, key_source
from ..core.credentials import (
    ADMIN,
    EVERY_APP,
    GATEWAY,
    READ,
    REPORT,
    VIEW,
    Credential,
    id_of,
    parse,
    presented,
)
from ..core.errors import (
    CollectorError,
    CredentialError,
    QuotaExhaustedError,
    StorageUnavailableError,
    UnauthorizedError,
)
from ..storage.records import REPORTS_SENT, CredentialStore
from .day_counts import DayCounts

RENEW_S: Final = 3.0  # seconds after which one request reads the records again
TRUST_S: Final = 5.0  # seconds after which what was read counts for nothing
_GRANTS_KEPT: Final = 4_096  # a header may be written in many ways
_HEADER_KEPT: Final = 128  # characters
_PAUSE_S: Final = 1.0  # seconds between two tries on a store that is away
_NEVER: Final = float("-inf")
_NEEDS_KEY: Final = "a write key is needed: Authorization: Bearer <write key>"

_log = logging.getLogger("hearsay.keyring")


@dataclass(frozen=True, slots=True)
class WriteGrant:
    """What the key of one upload allows."""

    limit: int  # bytes of the body on the wire
    key: bytes  # the digest: for limits of rate, and for `Keyring.count`
    catalog: Catalog  # the metrics it may report to; any other is unknown
    counted: bool  # whether it has a quota
    is_public: bool  # whether it ships inside applications, so that anyone may use it
    source: Source = UNKNOWN  # under what its reports are kept apart


class Keyring:
    """Finds credentials by what a request presents.  Safe to share between threads."""

    def __init__(
        self,
        bootstrap: Mapping[bytes, Credential],
        store: CredentialStore,
        catalog: Catalog,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """Know *bootstrap* for as long as the process lives, and what *store* holds.

        Args: clock: Unix time in seconds.  monotonic: seconds that never jump.
        """
        self._bootstrap, self._store, self._catalog = bootstrap, store, catalog
        self._clock, self._monotonic = clock, monotonic
        self._stored: Mapping[bytes, Credential] = {}
        self._sources = sources_of(bootstrap)
        self._read_at, self._failed_at = _NEVER, _NEVER
        self._renewing = threading.Lock()
        self._unreadable: set[bytes] = set()  # digests already logged
        self._usage = DayCounts(partial(store.share, REPORTS_SENT), clock)
        self._views: dict[tuple[Any, ...], Catalog] = {}
        self._grants: dict[str, tuple[Credential, WriteGrant]] = {}  # by header, of public keys

    def find(self, header: str) -> Credential | None:
        """Return the good credential in an Authorization *header*; None for any other.

        Raises: StorageUnavailableError: it is no bootstrap one, and the store does not answer.
        """
        return self._find(presented(header))

    def knows(self, header: str) -> bool:
        """Return whether *header* holds a good token, by what was last read: nothing is asked.

        Write keys are none: they are public.
        """
        digest = presented(header)
        if digest is None:
            return False
        credential = self._bootstrap.get(digest) or self._stored.get(digest)
        return (
            credential is not None
            and credential.kind in (READ, ADMIN)
            and credential.is_good(day_of(self._clock()))
        )

    def grant(self, header: str) -> WriteGrant:
        """Return what the write key in *header* allows.

        What a public key allows is kept by the text of the key, which is no secret: so few
        uploads pay for a digest.

        Raises: UnauthorizedError, QuotaExhaustedError, StorageUnavailableError.
        """
        grants = self._grants
        kept = grants.get(header)
        if kept is not None and self.is_fresh and kept[0].is_good(day_of(self._clock())):
            return kept[1]
        digest = presented(header)
        credential = self._find(digest)
        if digest is None or credential is None or REPORT not in credential.scopes:
            raise UnauthorizedError(_NEEDS_KEY)
        counted = credential.quota is not None
        if credential.quota is not None and self._usage.of(digest) >= credential.quota:
            raise QuotaExhaustedError("the key has sent all that it may send today")
        is_public = credential.kind != GATEWAY
        limit = MAX_DEVICE_BODY if is_public else MAX_GATEWAY_BODY
        source = self._sources.get(digest, UNKNOWN)
        grant = WriteGrant(limit, digest, self.view(credential), counted, is_public, source)
        if is_public and not counted and len(header) <= _HEADER_KEPT:
            if len(grants) >= _GRANTS_KEPT:
                grants.clear()
            grants[header] = credential, grant
        return grant

    def count(self, grant: WriteGrant, reports: int) -> None:
        """Count *reports* against the quota of the key of *grant*, if it has one."""
        if grant.counted:
            self._usage.add(grant.key, reports)

    def view(self, credential: Credential, scope: str = VIEW) -> Catalog:
        """Return the metrics that *credential* is for, as far as *scope* goes.

        Any other is as unknown as a wrong name.
        """
        whole = credential.app is None and credential.metrics is None
        if whole and (credential.roles is None or credential.covers(EVERY_APP, "", scope)):
            return self._catalog
        roles = frozenset((credential.roles or {}).items())
        place = credential.app, credential.metrics, roles, scope if roles else ""
        catalog = self._views.get(place)
        if catalog is None:
            catalog = self._catalog.only(lambda app, name: credential.covers(app, name, scope))
            self._views[place] = catalog
        return catalog

    @property
    def is_fresh(self) -> bool:
        """Whether :meth:`find` and :meth:`grant` would answer without asking the store."""
        return self._monotonic() - self._read_at < RENEW_S

    def renew(self) -> None:
        """Read the store now, so that no request has to.  Never raises what a store raises."""
        with self._renewing:
            self._renew(self._monotonic())

    def can_anybody_report(self) -> bool:
        """Return whether some write key is good today.  Raises StorageUnavailableError."""
        self._renew_if_old()
        today = day_of(self._clock())
        credentials = (*self._bootstrap.values(), *self._stored.values())
        return any(
            REPORT in credential.scopes and credential.is_good(today) for credential in credentials
        )

    def _find(self, digest: bytes | None) -> Credential | None:
        if digest is None:
            return None
        credential = self._bootstrap.get(digest)
        if credential is None:
            self._renew_if_old()
            credential = self._stored.get(digest)
        good = credential is not None and credential.is_good(day_of(self._clock()))
        return credential if good else None

    def _renew_if_old(self) -> None:
        """Read the store again if its time has come: one request does, and others need not wait."""
        age = self._monotonic() - self._read_at
        if age < RENEW_S or not self._renewing.acquire(blocking=age >= TRUST_S):
            return
        try:
            now = self._monotonic()
            if now - self._read_at >= RENEW_S and now - self._failed_at >= _PAUSE_S:
                self._renew(now)
        finally:
            self._renewing.release()
        if self._monotonic() - self._read_at >= TRUST_S:
            raise StorageUnavailableError("store: the keys and tokens could not be read")

    def _renew(self, now: float) -> None:
        """Read records and usage; *now*, before the reading, is how old they are at most."""
        try:
            stored = self._parsed(self._store.records())
            if stored != self._stored:
                self._sources = sources_of({**stored, **self._bootstrap})
            self._stored = stored
            self._grants = {}  # last: what a thread still makes of older records is dropped with it
            self._read_at = now
            if any(credential.quota is not None for credential in self._stored.values()):
                self._usage.exchange()
        except (CollectorError, ValueError) as error:  # a full store still lets records be read
            if self._failed_at <= self._read_at:  # logged once, not at each try
                _log.warning("keys and tokens: %s", error)
            self._failed_at = now

    def _parsed(self, records: Mapping[bytes, bytes]) -> dict[bytes, Credential]:
        """Return the records that can be read; the others open nothing, and are logged once."""
        credentials: dict[bytes, Credential] = {}
        for digest, record in records.items():
            try:
                credentials[digest] = parse(record)
            except CredentialError as error:
                if digest not in self._unreadable:
                    _log.error("credential=%s: cannot be used: %s", id_of(digest), error)
                self._unreadable.add(digest)
        return credentials


def sources_of(credentials: Mapping[bytes, Credential]) -> dict[bytes, Source]:
    """Return the source of what each key that reports sends.

    Of the keys of one app, those for all apps among them, MOST_KEYS are kept apart: those whose
    names come first.  The others are one source.  Every process that reads the same records says
    the same; a revoked key keeps its place, so that its past has a name.
    """
    reporting = sorted(
        (digest for digest, credential in credentials.items() if REPORT in credential.scopes)
    )
    apps: dict[str | None, int] = {}  # of each app, the keys before that may report to it
    sources = {}
    for digest in reporting:
        app = credentials[digest].app
        anywhere = apps.get(None, 0)
        before = sum(apps.values()) if app is None else anywhere + apps.get(app, 0)
        sources[digest] = key_source(id_of(digest) if before < MOST_KEYS else OTHER_KEYS)
        apps[app] = apps.get(app, 0) + 1
    return sources
