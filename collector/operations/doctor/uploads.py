"""Checks of uploads: what became of them, who may send and ask, and what looks dishonest.

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
        why = "memory fills until uploads are refused, and answers lack what waits"
        yield Finding(FAULT, "workers", f"{what}, and no worker lives", why, "start hearsay worker")
    else:
        why = "the next uploads will wait"
        yield Finding(WARNING, "workers", "none lives", why, "start hearsay worker")
    if backlog >= config.max_backlog / 2:
        why = f"from {config.max_backlog} on uploads are answered 503"
        step = "start more workers: docs/operate/operate.md#backlog"
        yield Finding(WARNING, "workers", what, why, step)


def stuck(config: Config, state: State) -> Iterator[Finding]:
    """Look for entries that workers are given and never fold."""
    if state.stuck and (state.alive or {}).get(WORKER):
        what = f"{counted(state.stuck, 'upload')} given to workers, and the oldest not folded"
        why = "workers leave what belongs to a metric that is in no registry of theirs"
        step = "look for that in a worker's log, and give it the registry"
        step += ": docs/operate/operate.md#backlog"
        yield Finding(WARNING, "workers", what, why, step)


def conservation(config: Config, state: State) -> Iterator[Finding]:
    """Hold the counts against the lengths of the streams."""
    total = sum(state.counters, Counters())
    drift = sum(counters.drift for counters in state.counters)
    if drift:
        why = "somebody wrote to the store by hand, or an upload was lost or doubled"
        what = f"{counted(drift, 'upload')} not where the counts say"
        yield Finding(FAULT, "conservation", what, why, "run hearsay fsck")
    elif state.counters:
        what = f"{counted(total.accepted.uploads, 'accepted upload')}, all accounted for"
        yield Finding(GOOD, "conservation", what)
    if total.pruned_reports or total.lost_reports:
        what = f"{counted(total.pruned_reports, 'report')} pruned, {total.lost_reports:,} lost"
        yield Finding(NOTE, "conservation", what, "no answer rests on them")


def quarantine(config: Config, state: State) -> Iterator[Finding]:
    """Look for uploads that are set aside."""
    aside = sum(counters.aside for counters in state.counters)
    if aside:
        why = "they could not be folded, and are in no answer"
        step = "run hearsay quarantine list, then retry or drop"
        yield Finding(WARNING, "quarantine", f"{counted(aside, 'upload')} set aside", why, step)


def archive(config: Config, state: State) -> Iterator[Finding]:
    """Look for folds that nobody writes to the archive."""
    days = [queue.oldest_day for queue in state.archiving if queue.oldest_day is not None]
    if not days:
        return
    age = day_of(state.now) - min(days)
    what = f"{counted(sum(queue.waiting for queue in state.archiving), 'fold')} not yet written"
    if age < _OLD_FOLD:
        yield Finding(GOOD, "archive", what)
        return
    why = "they fill the store's memory until uploads are refused"
    step = "run hearsay archive, and see why it did not: docs/operate/operate.md#archive"
    yield Finding(WARNING, "archive", f"{what}, the oldest for {counted(age, 'day')}", why, step)


def lateness(config: Config, state: State) -> Iterator[Finding]:
    """Look at how many reports miss the first answer."""
    late = sum(state.counters, Counters()).late_share
    if late >= _LATE_NOTE:
        why = "answers of fresh windows lack them; later versions have them"
        yield Finding(NOTE, "lateness", f"{late:.0%} of the reports came late", why)


def keys(config: Config, state: State) -> Iterator[Finding]:
    """Look whether somebody can report, and somebody can watch."""
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
        why = "and no web process lives that says what is in its settings"
        yield Finding(NOTE, "keys", "no write key is known here", why, "start hearsay serve")
    else:
        why, step = "every upload is answered 401", "run hearsay keys create write"
        yield Finding(WARNING, "keys", "there is no write key", why, step)
    if not (served.get(OPERATE) or any(OPERATE in credential.scopes for credential in good)):
        step = f"run hearsay keys create {ADMIN}, or set HEARSAY_ADMIN_TOKEN_FILE"
        yield Finding(NOTE, "keys", "no token opens /metrics", "nothing can be watched", step)


def expiring_tokens(config: Config, state: State) -> Iterator[Finding]:
    """Look for keys and tokens that end soon."""
    today = day_of(state.now)
    for digest, credential in (state.credentials or {}).items():
        end = credential.expires
        if end is not None and credential.is_good(today) and end - today <= SOON_DAYS:
            rest = counted(end - today, "day")
            what = f"{credential.kind} {id_of(digest)} is good for {rest} more"
            step = (
                f"run hearsay keys renew {id_of(digest)}, or make its successor with"
                " hearsay keys create and hand it over"
            )
            yield Finding(WARNING, "keys", what, "who uses it will be refused", step)


def quotas(config: Config, state: State) -> Iterator[Finding]:
    """Look for keys that have sent all they may send today."""
    today = day_of(state.now)
    for digest, credential in (state.credentials or {}).items():
        quota = credential.quota
        if quota is not None and credential.is_good(today) and state.used.get(digest, 0) >= quota:
            reports = counted(quota, "report")
            what = f"{credential.kind} {id_of(digest)} has sent its {reports} of today"
            why = "its uploads are answered 429 until 0:00 UTC; a public key may be abused"
            step = "replace the key if it is, or else make one with a larger quota"
            yield Finding(WARNING, "keys", what, why, step)


def growth(config: Config, state: State) -> Iterator[Finding]:
    """Look for write keys under which so many tallies were begun that there may be no more."""
    memory = sum(server.memory_limit for server in state.servers)
    limit = daily_begun(config.new_tallies_mb, memory)
    for digest, size in state.begun.items():
        if limit and size >= _FULL_SHARE * limit:
            what = f"write {id_of(digest)} has begun tallies of {size / 1e6:.0f} MB today"
            why = f"from {limit / 1e6:.0f} MB on uploads that begin another are answered 429"
            step = "replace the key if it is abused, or raise HEARSAY_NEW_TALLIES_MB"
            step += ": docs/operate/security.md"
            yield Finding(WARNING, "keys", what, why, step)


def registry(config: Config, state: State) -> Iterator[Finding]:
    """Look for metrics that have expired or soon will."""
    now = state.now / DAY
    left = {metric.address: day_of_date(metric.expires) + 1 - now for metric in state.metrics}
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


def suspicious(config: Config, state: State) -> Iterator[Finding]:
    """Tell each epoch in which something was found."""
    if not state.watched:
        return  # nobody has looked yet, or that may not be read
    for name, watch in state.watched.items():
        for epoch, texts in watch.sentences.items():
            more = f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
            what = f"{name}, {epoch}: {'; '.join(texts[:_MOST])}{more}"
            why = "fakes, a broken client or news; answers show it unchanged"
            step = "look who has the write key, and what else happened"
            step += ": docs/operate/operate.md#suspicious"
            yield Finding(WARNING, "poisoning", what, why, step)
    epochs = sum(watch.looked for watch in state.watched.values())
    if epochs and not any(watch.sentences for watch in state.watched.values()):
        yield Finding(
            GOOD, "poisoning", f"nothing in the {epochs} last closed epochs looks made up"
        )
