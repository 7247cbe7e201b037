"""Checks of what people have granted and asked, and of the days on which that ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from client_sdk.core.epoch import DAY, day_of, day_of_date
from client_sdk.privacy.wording import counted

from ..core.config import Config
from ..core.credentials import ADMIN, OPERATE, REPORT, id_of
from .findings import GOOD, NOTE, WARNING, Finding
from .state import INIT, State

SOON_DAYS: Final = 14  # days before the end of a metric or token at which a person should know


def keys(config: Config, state: State) -> Iterator[Finding]:
    """Look whether somebody can report, and somebody can watch."""
    if state.credentials is None:
        yield Finding(NOTE, "keys", "may not be read by this user", next=INIT)
        return
    good = [one for one in state.credentials.values() if one.is_good(day_of(state.now))]
    served = state.granted or {}
    if any(REPORT in one.scopes for one in good):
        yield Finding(GOOD, "keys", f"good keys and tokens: {len(good)}")
    elif served.get(REPORT):
        yield Finding(GOOD, "keys", "the web processes have a write key in their settings")
    elif state.granted is None:
        why = "and no web process lives that says what is in its settings"
        yield Finding(NOTE, "keys", "no write key is known here", why, "start hearsay serve")
    else:
        why, step = "every upload is answered 401", "run hearsay keys create write"
        yield Finding(WARNING, "keys", "there is no write key", why, step)
    if not (served.get(OPERATE) or any(OPERATE in one.scopes for one in good)):
        step = f"run hearsay keys create {ADMIN}, or set HEARSAY_ADMIN_TOKEN_FILE"
        yield Finding(NOTE, "keys", "no token opens /metrics", "nothing can be watched", step)


def expiring_tokens(config: Config, state: State) -> Iterator[Finding]:
    """Look for keys and tokens that end soon."""
    today = day_of(state.now)
    for digest, one in (state.credentials or {}).items():
        if one.expires is not None and one.is_good(today) and one.expires - today <= SOON_DAYS:
            what = (
                f"{one.kind} {id_of(digest)} is good for {counted(one.expires - today, 'day')} more"
            )
            step = (
                f"run hearsay keys renew {id_of(digest)}, or make its successor with"
                " hearsay keys create and hand it over"
            )
            yield Finding(WARNING, "keys", what, "who uses it will be refused", step)


def quotas(config: Config, state: State) -> Iterator[Finding]:
    """Look for keys that have sent all they may send today."""
    today = day_of(state.now)
    for digest, one in (state.credentials or {}).items():
        if one.quota is not None and one.is_good(today) and state.used.get(digest, 0) >= one.quota:
            what = (
                f"{one.kind} {id_of(digest)} has sent its {counted(one.quota, 'report')} of today"
            )
            why = "its uploads are answered 429 until 0:00 UTC; a public key may be abused"
            step = "replace the key if it is, or else make one with a larger quota"
            yield Finding(WARNING, "keys", what, why, step)


def registry(config: Config, state: State) -> Iterator[Finding]:
    """Look for metrics that have expired or soon will."""
    now = state.now / DAY
    left = {metric.name: day_of_date(metric.expires) + 1 - now for metric in state.metrics}
    ended = sorted(name for name, days in left.items() if days <= 0)
    soon = sorted(name for name, days in left.items() if 0 < days <= SOON_DAYS)
    why = "devices record nothing after the day in expires"
    if ended:
        step = "give them a later date in the registry, or take them out"
        yield Finding(NOTE, "registry", f"expired: {', '.join(ended)}", why, step)
    if soon:
        step = "decide whether to ask on, and set a later date"
        what = f"expires within {SOON_DAYS} days: {', '.join(soon)}"
        yield Finding(WARNING, "registry", what, why, step)
    if not soon:
        yield Finding(GOOD, "registry", f"{counted(len(left) - len(ended), 'metric')} asked")
