"""Checks of what may not be decided by a clock alone: which store this is, and how far its days."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from client_sdk.core.epoch import day_of
from client_sdk.privacy.wording import counted

from ..core.config import Config
from .findings import FAULT, GOOD, NOTE, WARNING, Finding
from .state import INIT, State

MOST_LAG: Final = 2  # days; workers confirm a day shortly after it has begun


def generation(config: Config, state: State) -> Iterator[Finding]:
    """Look whether all shards belong to the same store."""
    told = [shard.generation for shard in state.shards]
    if not told or None in told:
        return
    if len(set(told)) == 1 and told[0]:
        yield Finding(GOOD, "generation", f"{told[0]}, in all shards")
        return
    lacking = [str(shard) for shard, name in enumerate(told) if not name]
    what = f"shards {', '.join(lacking)} have none" if lacking else "it is not that of all shards"
    why = "the store, or a part of it, was emptied or never prepared; uploads are answered 503"
    step = f"look where its data is first: docs/operate/operate.md#replaced; then {INIT}"
    yield Finding(FAULT, "generation", what, why, step)


def confirmed(config: Config, state: State) -> Iterator[Finding]:
    """Look whether upload ids are forgotten in time, and not too early."""
    told = [shard.confirmed for shard in state.shards if shard.confirmed is not None]
    if not told:
        return
    today = day_of(state.now)
    if max(told) > today + 1:
        what = f"two clocks have confirmed a day that is {counted(max(told) - today, 'day')} ahead"
        why = "uploads of days whose ids were deleted are refused, and devices give them up in time"
        step = "synchronise all machines with a time server: docs/operate/operate.md#clock"
        yield Finding(FAULT, "ids", what, why, step)
    elif min(told) < today - MOST_LAG:
        what = f"upload ids are kept {counted(today - min(told), 'day')} longer than needed"
        why = "they fill memory; the day moves on by one at a time, while a worker runs"
        step = "see that workers run and that clocks agree; after a long pause, wait"
        yield Finding(WARNING, "ids", what, why, step)
    else:
        yield Finding(GOOD, "ids", "forgotten in time")


def waits(config: Config, state: State) -> Iterator[Finding]:
    """Look whether workers found their clock and the store's apart."""
    if state.clock_waits:
        rounds = counted(state.clock_waits, "round")
        what = f"workers folded nothing in {rounds} of today: clocks disagreed"
        why = "a fold under a wrong clock would be of a wrong class for ever; entries wait instead"
        step = "synchronise the workers' machines and the store's: docs/operate/operate.md#clock"
        yield Finding(NOTE, "clock", what, why, step)
