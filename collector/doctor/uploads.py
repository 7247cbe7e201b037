"""Checks of what became of uploads: folded, waiting, set aside, late, or missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from client_sdk.core.epoch import day_of
from client_sdk.privacy.wording import counted

from ..core.config import Config
from ..telemetry.activity import WORKER
from .findings import FAULT, GOOD, NOTE, WARNING, Finding
from .state import INIT, State

LATE_NOTE: Final = 0.1  # share of late reports that is worth a look
OLD_FOLD: Final = 2  # days since the day of a fold: then it has waited for one at least


def workers(config: Config, state: State) -> Iterator[Finding]:
    """Look whether what waits is being folded."""
    backlog = sum(shard.counters.stream for shard in state.shards if shard.counters)
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
    known = [shard.counters for shard in state.shards if shard.counters]
    drift = sum(one.drift for one in known)
    accepted = sum(one.accepted.uploads for one in known)
    if drift:
        why = "somebody wrote to the store by hand, or an upload was lost or doubled"
        what = f"{counted(drift, 'upload')} not where the counts say"
        yield Finding(FAULT, "conservation", what, why, "run hearsay fsck")
    elif known:
        yield Finding(
            GOOD, "conservation", f"{counted(accepted, 'accepted upload')}, all accounted for"
        )
    pruned, lost = (
        sum(one.pruned_reports for one in known),
        sum(one.lost_reports for one in known),
    )
    if pruned or lost:
        what = f"{counted(pruned, 'report')} pruned, {lost:,} lost"
        yield Finding(NOTE, "conservation", what, "no answer rests on them")


def quarantine(config: Config, state: State) -> Iterator[Finding]:
    """Look for uploads that are set aside."""
    aside = sum(shard.counters.aside for shard in state.shards if shard.counters)
    if aside:
        why = "they could not be folded, and are in no answer"
        step = "run hearsay quarantine list, then retry or drop"
        yield Finding(WARNING, "quarantine", f"{counted(aside, 'upload')} set aside", why, step)


def archive(config: Config, state: State) -> Iterator[Finding]:
    """Look for folds that nobody writes to the archive."""
    days = [one.oldest_day for one in state.archiving if one.oldest_day is not None]
    if not days:
        return
    age = day_of(state.now) - min(days)
    what = f"{counted(sum(one.waiting for one in state.archiving), 'fold')} not yet written"
    if age < OLD_FOLD:
        yield Finding(GOOD, "archive", what)
        return
    why = "they fill the store's memory until uploads are refused"
    step = "run hearsay archive, and see why it did not: docs/operate/operate.md#archive"
    yield Finding(WARNING, "archive", f"{what}, the oldest for {counted(age, 'day')}", why, step)


def lateness(config: Config, state: State) -> Iterator[Finding]:
    """Look at how many reports miss the first answer."""
    known = [shard.counters for shard in state.shards if shard.counters]
    folded = sum(one.folded.reports for one in known)
    late = sum(one.late_reports for one in known)
    if folded and late / folded >= LATE_NOTE:
        why = "answers of fresh windows lack them; later versions have them"
        yield Finding(NOTE, "lateness", f"{late / folded:.0%} of the reports came late", why)
