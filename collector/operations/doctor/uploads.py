"""Checks of uploads: what became of them, rights to send and ask, and what looks dishonest.

Reports are folded, waiting, set aside, late or missing; keys, tokens and metrics end on a day; and
closed epochs are checked for reports that do not look like honest ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from client_sdk.core.epoch import DAY, day_of, day_of_date
from client_sdk.privacy.wording import counted

from ...core.config import Config
from ...core.credentials import ADMIN, OPERATE, REPORT, id_of
from ...intake.tally_quota import daily_begun
from ...storage.values import Counters
from ..telemetry.activity import WORKER
from .findings import FAULT, GOOD, INIT, NOTE, WARNING, Finding, State

_LATE_NOTE: Final = 0.1  # share of late reports that is worth a look
_FULL_SHARE: Final = 0.8  # share of the new tallies of a day from which a person should know
_OLD_FOLD: Final = 2  # days since the day of a fold: then it has waited for one at least
SOON_DAYS: Final = 14  # days before the end of a metric or token at which a person should know
_MOST: Final = 3  # sentences of an epoch; one attack can fail many checks


def workers(config: Config, state: State) -> Iterator[Finding]:
    """Look whether what waits is being folded."""
    backlog = sum(counters.stream for counters in state.counters)
    what = f"{counted(backlog, 'upload')} waiting"
    if state.alive is None:
        yield Finding(NOTE, "workers", f"{what}; signs of life may not be read", next=INIT)
    elif state.alive.get(WORKER):
        yield Finding(GOOD, "workers", f"{what}, workers alive: {state.alive[WORKER]}")
    elif backlog:
        yield Finding(
            FAULT,
            "workers",
            f"{what}, and no worker lives",
            why="memory fills until uploads are refused, and answers lack what waits",
            next="start hearsay worker",
        )
    else:
        yield Finding(
            WARNING,
            "workers",
            "none lives",
            why="the next uploads will wait",
            next="start hearsay worker",
        )
    if backlog >= config.max_backlog / 2:
        yield Finding(
            WARNING,
            "workers",
            what,
            why=f"from {config.max_backlog} on uploads are answered 503",
            next="start more workers: docs/operate/operate.md#backlog",
        )


def stuck(config: Config, state: State) -> Iterator[Finding]:
    """Look for entries that workers are given and never fold."""
    if state.stuck and (state.alive or {}).get(WORKER):
        yield Finding(
            WARNING,
            "workers",
            f"{counted(state.stuck, 'upload')} given to workers, and the oldest not folded",
            why="workers leave the uploads of a metric that is in none of their registries",
            next="look for it in a worker's log, and give the worker the registry:"
            " docs/operate/operate.md#backlog",
        )


def conservation(config: Config, state: State) -> Iterator[Finding]:
    """Hold the counts against the lengths of the streams."""
    total = sum(state.counters, Counters())
    drift = sum(counters.drift for counters in state.counters)
    if drift:
        yield Finding(
            FAULT,
            "conservation",
            f"{counted(drift, 'upload')} not where the counts say",
            why="a person wrote to the store by hand, or an upload was lost or doubled",
            next="run hearsay fsck",
        )
    elif state.counters:
        yield Finding(
            GOOD,
            "conservation",
            f"{counted(total.accepted.uploads, 'accepted upload')}, all accounted for",
        )
    if total.pruned_reports or total.lost_reports:
        yield Finding(
            NOTE,
            "conservation",
            f"{counted(total.pruned_reports, 'report')} pruned, {total.lost_reports:,} lost",
            "no answer rests on them",
        )


def quarantine(config: Config, state: State) -> Iterator[Finding]:
    """Look for uploads that are set aside."""
    aside = sum(counters.aside for counters in state.counters)
    if aside:
        yield Finding(
            WARNING,
            "quarantine",
            f"{counted(aside, 'upload')} set aside",
            why="they could not be folded, and are in no answer",
            next="run hearsay quarantine list, then retry or drop",
        )


def archive(config: Config, state: State) -> Iterator[Finding]:
    """Look for folds that wait to be written to the archive."""
    days = [queue.oldest_day for queue in state.archiving if queue.oldest_day is not None]
    if not days:
        return
    age = day_of(state.now) - min(days)
    what = f"{counted(sum(queue.waiting for queue in state.archiving), 'fold')} not yet written"
    if age < _OLD_FOLD:
        yield Finding(GOOD, "archive", what)
        return
    yield Finding(
        WARNING,
        "archive",
        f"{what}, the oldest for {counted(age, 'day')}",
        why="they fill the store's memory until uploads are refused",
        next="run hearsay archive, and see why it did not: docs/operate/operate.md#archive",
    )


def lateness(config: Config, state: State) -> Iterator[Finding]:
    """Look at how many reports miss the first answer."""
    late = sum(state.counters, Counters()).late_share
    if late >= _LATE_NOTE:
        yield Finding(
            NOTE,
            "lateness",
            f"{late:.0%} of the reports came late",
            why="answers of fresh windows lack them; later versions have them",
        )


def keys(config: Config, state: State) -> Iterator[Finding]:
    """Look whether devices can report, and /metrics can be read."""
    if state.credentials is None:
        yield Finding(NOTE, "keys", "may not be read by this user", next=INIT)
        return
    good = [
        credential
        for credential in state.credentials.values()
        if credential.is_good(day_of(state.now))
    ]
    served = state.granted or {}
    if any(REPORT in credential.scopes for credential in good):
        yield Finding(GOOD, "keys", f"good keys and tokens: {len(good)}")
    elif served.get(REPORT):
        yield Finding(GOOD, "keys", "the web processes have a write key in their settings")
    elif state.granted is None:
        yield Finding(
            NOTE,
            "keys",
            "no write key is known here",
            why="and no web process lives that says what is in its settings",
            next="start hearsay serve",
        )
    else:
        yield Finding(
            WARNING,
            "keys",
            "there is no write key",
            why="every upload is answered 401",
            next="run hearsay keys create write",
        )
    if not (served.get(OPERATE) or any(OPERATE in credential.scopes for credential in good)):
        yield Finding(
            NOTE,
            "keys",
            "no token opens /metrics",
            "nothing can be watched",
            next=f"run hearsay keys create {ADMIN}, or set HEARSAY_ADMIN_TOKEN_FILE",
        )


def expiring_tokens(config: Config, state: State) -> Iterator[Finding]:
    """Look for keys and tokens that end soon."""
    today = day_of(state.now)
    for digest, credential in (state.credentials or {}).items():
        end = credential.expires
        if end is not None and credential.is_good(today) and end - today <= SOON_DAYS:
            rest = counted(end - today, "day")
            yield Finding(
                WARNING,
                "keys",
                f"{credential.kind} {id_of(digest)} is good for {rest} more",
                "its holder will be refused",
                next=f"run hearsay keys renew {id_of(digest)}, or make its successor with"
                " hearsay keys create and hand it over",
            )


def quotas(config: Config, state: State) -> Iterator[Finding]:
    """Look for keys that have sent all they may send today."""
    today = day_of(state.now)
    for digest, credential in (state.credentials or {}).items():
        quota = credential.quota
        if quota is not None and credential.is_good(today) and state.used.get(digest, 0) >= quota:
            reports = counted(quota, "report")
            yield Finding(
                WARNING,
                "keys",
                f"{credential.kind} {id_of(digest)} has sent its {reports} of today",
                why="its uploads are answered 429 until 0:00 UTC; a public key may be abused",
                next="replace the key if it is, or else make one with a larger quota",
            )


def growth(config: Config, state: State) -> Iterator[Finding]:
    """Look for write keys under which so many tallies were begun that there may be no more."""
    memory = sum(server.memory_limit for server in state.servers)
    limit = daily_begun(config.new_tallies_mb, memory)
    for digest, size in state.begun.items():
        if limit and size >= _FULL_SHARE * limit:
            yield Finding(
                WARNING,
                "keys",
                f"write {id_of(digest)} has begun tallies of {size / 1e6:.0f} MB today",
                why=f"from {limit / 1e6:.0f} MB on uploads that begin another are answered 429",
                next="replace the key if it is abused, or raise HEARSAY_NEW_TALLIES_MB:"
                " docs/operate/security.md",
            )


def registry(config: Config, state: State) -> Iterator[Finding]:
    """Look for metrics that have expired or soon will."""
    now = state.now / DAY
    left = {metric.address: day_of_date(metric.expires) + 1 - now for metric in state.metrics}
    ended = sorted(name for name, days in left.items() if days <= 0)
    soon = sorted(name for name, days in left.items() if 0 < days <= SOON_DAYS)
    why = "devices record nothing after the day in expires"
    if ended:
        yield Finding(
            NOTE,
            "registry",
            f"expired: {', '.join(ended)}",
            why,
            next="give them a later date in the registry, or take them out",
        )
    if soon:
        yield Finding(
            WARNING,
            "registry",
            f"expires within {SOON_DAYS} days: {', '.join(soon)}",
            why,
            next="decide whether to ask on, and set a later date",
        )
    if not soon:
        yield Finding(GOOD, "registry", f"{counted(len(left) - len(ended), 'metric')} asked")


def suspicious(config: Config, state: State) -> Iterator[Finding]:
    """Tell each epoch in which something was found."""
    if not state.watched:
        return  # no worker has looked yet, or that may not be read
    for name, watch in state.watched.items():
        for epoch, texts in watch.sentences.items():
            more = f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
            yield Finding(
                WARNING,
                "poisoning",
                f"{name}, {epoch}: {'; '.join(texts[:_MOST])}{more}",
                why="fakes, a broken client or news; answers show it unchanged",
                next="find out which people have the write key, and what else happened:"
                " docs/operate/operate.md#suspicious",
            )
    epochs = sum(watch.looked for watch in state.watched.values())
    if epochs and not any(watch.sentences for watch in state.watched.values()):
        yield Finding(
            GOOD, "poisoning", f"nothing in the {epochs} last closed epochs looks made up"
        )
