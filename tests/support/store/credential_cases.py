"""Two applications, every kind of credential, and what an independent reading lets each do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from collector.core.credentials import (
    ADMIN,
    ANALYST,
    GATEWAY,
    OPERATOR,
    READ,
    ROLES,
    VIEWER,
    WRITE,
    Credential,
)
from tests.support.crowds.uploads import COMMON, TODAY

OURS, THEIRS = "ours", "theirs"
# By app, the names of its metrics; each metric's texts hold its canary, so that a leak is seen.
METRICS: Final = {OURS: ("alpha", "beta"), THEIRS: ("gamma", "delta")}
NOBODY: Final = "omega"  # no metric has this name
ALL_METRICS: Final = (*METRICS[OURS], *METRICS[THEIRS])

_COMMON: Final = COMMON.format(epsilon="1", min_reports=100, expires="2027-12-31")


def canary(metric: str) -> str:
    """Return a word that only texts about *metric* hold."""
    return f"canary{metric}"


def registry_text(app: str) -> str:
    """Return the registry file of one application."""
    return f'schema = 1\napp = "{app}"\n' + "".join(
        f"""
[metrics.{name}]
title = "{canary(name)}"
question = "Which {canary(name)}?"
type = "category"
values = ["{canary(name)}one", "two"]
every = "1d"
{_COMMON}"""
        for name in METRICS[app]
    )


@dataclass(frozen=True)
class Case:
    """A credential, the secret that presents it, and what it should open."""

    name: str
    secret: str
    credential: Credential | None  # None: nobody has stored it
    reads: frozenset[str] = frozenset()  # the metrics that it should be able to read
    writes: frozenset[str] = frozenset()
    views: bool = False
    asks: bool = False
    operates: bool = False

    @property
    def is_public(self) -> bool:
        """Whether it shows no more than that somebody has it: nothing, or a write key."""
        return not (self.views or self.asks or self.operates)


def cases() -> Iterator[Case]:
    """Yield one case for each kind, role, app and choice of metrics, and for each way to be bad."""
    for app, other in ((OURS, THEIRS), (THEIRS, OURS)):
        own = frozenset(METRICS[app])
        chosen = frozenset({METRICS[app][0]})
        wrong = frozenset({METRICS[other][0]})
        for which, metrics, allowed in (
            ("all", None, own),
            ("one", chosen, chosen),
            ("of the other app", wrong, frozenset[str]()),
        ):
            for role in ROLES:
                one = Credential(READ, app, metrics, role, TODAY + 30)
                yield _reading(f"{role} of {app}, {which}", one, allowed)
            for kind in (WRITE, GATEWAY):
                one = Credential(kind, app, metrics, expires=TODAY + 1)
                yield Case(f"{kind} key of {app}, {which}", _secret(one), one, writes=allowed)
        for state, good in (("revoked", False), ("expired", True)):
            ends = TODAY if good else TODAY + 1
            for kind in (READ, WRITE, ADMIN):
                right = OPERATOR if kind == READ else None
                bad = Credential(kind, app, role=right, expires=ends, revoked=not good)
                yield Case(f"{state} {kind} of {app}", _secret(bad), bad)
    everything = Credential(READ, role=ANALYST, expires=TODAY + 1)
    yield _reading("analyst of every app", everything, frozenset(ALL_METRICS))
    admin = Credential(ADMIN, expires=TODAY + 1)
    yield Case("admin", _secret(admin), admin, operates=True)
    yield Case("a secret that nobody has stored", "hsr_nobody-knows-this-one", None)
    yield Case("no secret", "", None)


def _reading(name: str, one: Credential, allowed: frozenset[str]) -> Case:
    asks = one.role != VIEWER
    operates = one.role == OPERATOR
    return Case(name, _secret(one), one, reads=allowed, views=True, asks=asks, operates=operates)


def _secret(one: Credential) -> str:
    """Return a secret of its own for *one*; in production it is chance."""
    return "-".join(["secret-for-tests", *one.to_json().translate(_HEADER_SAFE).split("-")])


_HEADER_SAFE: Final = {ord(mark): "." for mark in '{}":,[] '}
