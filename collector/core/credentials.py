"""Keys and tokens as records: what each may do, for which metrics, until when.  Pure.

A secret is 256 random bits behind letters that name its kind; only its SHA-256 is kept.  A write
key ships inside applications, so it is public: it tells applications apart and can be revoked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from .errors import CredentialError

WRITE: Final = "write"  # devices: bodies of at most 64 KiB
GATEWAY: Final = "gateway"  # gateways: bodies of at most 8 MiB
READ: Final = "read"  # people and programs that read answers
ADMIN: Final = "admin"  # operators: the state of the collector, never an answer
KINDS: Final = (WRITE, GATEWAY, READ, ADMIN)

VIEWER: Final = "viewer"  # pages, and what metrics there are
ANALYST: Final = "analyst"  # and questions of their own
OWNER: Final = "owner"  # and deletes what others keep beside the answers
OPERATOR: Final = "operator"  # and the state of the collector
ROLES: Final = (VIEWER, ANALYST, OWNER, OPERATOR)  # each may what those before it may

OPEN: Final = "open"  # scope: nothing is needed
REPORT: Final = "report"  # scope: send uploads
VIEW: Final = "view"  # scope: see pages and the list of metrics
ASK: Final = "ask"  # scope: ask of a metric
MANAGE: Final = "manage"  # scope: delete boards, questions and notes that others began
OPERATE: Final = "operate"  # scope: see the state of the collector
SCOPES: Final = (OPEN, REPORT, VIEW, ASK, MANAGE, OPERATE)
EVERY_APP: Final = "*"  # in roles by app: any of them

MAX_READ_DAYS: Final = 90  # days that a token may be good for; a forgotten one must end by itself
MAX_SERVICE_DAYS: Final = 400  # of a program's, which no browser takes: a year, and time to renew
MAX_LABEL: Final = 64  # characters
_ID_HEX: Final = 12  # characters by which people name a credential: 48 bits, enough among thousands
_OF_ROLE: Final[Mapping[str, frozenset[str]]] = {
    VIEWER: frozenset({VIEW}),
    ANALYST: frozenset({VIEW, ASK}),
    OWNER: frozenset({VIEW, ASK, MANAGE}),
    OPERATOR: frozenset({VIEW, ASK, MANAGE, OPERATE}),
}


@dataclass(frozen=True)
class Credential:
    """What one key or token allows.  The secret is not in it, and cannot be had from it."""

    kind: str
    app: str | None = None  # the app of a registry; None for all
    metrics: frozenset[str] | None = None  # names; None for all of the app
    role: str | None = None  # of a read token, unless it has one by app
    expires: int | None = None  # the epoch day from which it is refused; None for never, which
    # only write keys and the tokens of the environment may have
    quota: int | None = None  # reports a UTC day; None for any number
    label: str = ""  # by whom or for what, in words of the operator
    revoked: bool = False
    roles: Mapping[str, str] | None = None  # by app, or EVERY_APP; of a read token without the like
    service: bool = False  # of a program: it lives longer, and opens no page

    def __post_init__(self) -> None:
        """Raise CredentialError, naming the field, if this could not be meant."""
        _require(self.kind in KINDS, "kind", f"must be one of {', '.join(KINDS)}")
        reads, writes = self.kind == READ, self.kind in (WRITE, GATEWAY)
        rule = f"must be one of {', '.join(ROLES)} for a read token, and absent otherwise"
        given = [self.role] if self.roles is None else list(self.roles.values())
        good = bool(given) and set(given) <= set(ROLES) if reads else given == [None]
        _require(good, "role", rule)
        alone = self.app is None and self.role is None and self.metrics is None
        _require(self.roles is None or alone, "roles", "stand instead of role, app and metrics")
        _require(not (writes and self.service), "service", "is for read and admin tokens only")
        _require(writes or self.quota is None, "quota", "is for write keys only")
        _require(self.quota is None or self.quota > 0, "quota", "must be at least 1")
        _require(
            self.metrics is None or bool(self.metrics), "metrics", "must name one, or be absent"
        )
        _require(self.kind != ADMIN or self.metrics is None, "metrics", "an admin token reads none")
        fits = len(self.label) <= MAX_LABEL and self.label.isprintable()
        _require(fits, "label", f"must be at most {MAX_LABEL} printable characters")

    @property
    def scopes(self) -> frozenset[str]:
        """What routes it opens, beside those open to all: of any of its apps."""
        if self.roles is not None:
            return frozenset().union(*(_OF_ROLE[role] for role in self.roles.values()))
        if self.kind == READ:
            return _OF_ROLE[self.role or VIEWER]
        return frozenset({OPERATE if self.kind == ADMIN else REPORT})

    def is_good(self, today: int) -> bool:
        """Return whether it is neither revoked nor past its time on epoch day *today*."""
        return not self.revoked and (self.expires is None or today < self.expires)

    def may(self, scope: str, app: str, metric: str, today: int) -> bool:
        """Return whether it allows *scope* on *metric* of *app*: the one rule of authorisation."""
        return self.is_good(today) and scope in self.scopes and self.covers(app, metric, scope)

    def covers(self, app: str, metric: str, scope: str = VIEW) -> bool:
        """Return whether *metric* of *app* is among what it is for, as far as *scope* goes."""
        if self.roles is not None:
            roles = [self.roles[name] for name in (app, EVERY_APP) if name in self.roles]
            return any(scope in _OF_ROLE[role] for role in roles)
        return self.app in (None, app) and (self.metrics is None or metric in self.metrics)

    def to_json(self) -> str:
        """Return the record as it is stored."""
        record = {name: value for name, value in asdict(self).items() if value is not None}
        if self.metrics is not None:
            record["metrics"] = sorted(self.metrics)
        if self.roles is not None:
            record["roles"] = dict(self.roles)
        if not self.service:  # so that records of before are written as they were
            del record["service"]
        return json.dumps(record, sort_keys=True, separators=(",", ":"))


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "kind": (str,),
    "app": (str, type(None)),
    "metrics": (list, type(None)),
    "role": (str, type(None)),
    "expires": (int, type(None)),
    "quota": (int, type(None)),
    "label": (str,),
    "revoked": (bool,),
    "roles": (dict, type(None)),
    "service": (bool,),
}


def parse(text: str | bytes) -> Credential:
    """Return the credential that ``to_json`` wrote.

    Raises: CredentialError: anything else; what cannot be read allows nothing.
    """
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise CredentialError("record", "is not JSON") from None
    _require(isinstance(record, dict), "record", "must be an object")
    names = {field.name for field in fields(Credential)}
    _require(set(record) <= names, "record", f"known fields are {', '.join(sorted(names))}")
    _require("kind" in record, "kind", "is missing")
    for name, value in record.items():
        right = type(value) in _TYPES[name]  # not isinstance: True is no number here
        _require(right, name, "has a wrong type")
    lasts = record["kind"] in (WRITE, GATEWAY) or record.get("expires") is not None
    _require(lasts, "expires", "must be given but for write keys")
    metrics = record.pop("metrics", None)
    _require(all(type(name) is str for name in metrics or ()), "metrics", "must be names")
    roles = (record.get("roles") or {}).values()
    _require(all(type(role) is str for role in roles), "roles", "must be roles by app")
    return Credential(**record, metrics=None if metrics is None else frozenset(metrics))


def readable(records: Mapping[bytes, bytes]) -> dict[bytes, Credential]:
    """Return the *records* that can be read; the others allow nothing."""
    credentials = {}
    for digest, record in records.items():
        with suppress(CredentialError):
            credentials[digest] = parse(record)
    return credentials


def digest_of(secret: str) -> bytes:
    """Return the SHA-256 by which a key or token is known here."""
    return hashlib.sha256(secret.encode()).digest()


def id_of(digest: bytes) -> str:
    """Return the short name of a credential: safe to show, of no use to a thief."""
    return digest.hex()[:_ID_HEX]


def presented(header: str) -> bytes | None:
    """Return the digest of the secret in an Authorization header; None if it holds none.

    All that follows compares digests: the time it takes reveals nothing of a secret.
    """
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        return None
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _require(holds: bool, name: str, rule: str) -> None:
    if not holds:
        raise CredentialError(name, rule)
