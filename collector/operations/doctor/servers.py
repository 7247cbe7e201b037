"""Checks of the servers: are they safe, ready and roomy, and are they the store that we knew?

No clock alone decides which store this is, or how far its days have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from client_sdk.core.epoch import day_of
from client_sdk.privacy.wording import counted

from ...core.cells import MARGIN
from ...core.config import HA, VOLATILE, Config
from ...intake.backpressure import ALARM_MEMORY, SHED_MEMORY
from ...intake.memory_quota import BYTES_PER_ID, SHARE
from ...intake.tokens import days_kept
from ...storage.preparation import LIBRARY_VERSION, PACKED
from ...storage.preparation import faults as unsafe
from .findings import FAULT, GOOD, INIT, NOTE, WARNING, Finding, State

_CLOCK_WARNING_S: Final = 60.0  # seconds; classes of lateness allow for MARGIN
_MOST_LAG: Final = 2  # days; workers confirm a day shortly after it has begun


def profile(config: Config, state: State) -> Iterator[Finding]:
    """Hold the settings against what the profile promises."""
    appendfsync = "always" if state.recorded_profile == config.profile else None
    faults = [
        fault
        for server in state.servers
        for fault in unsafe(
            server.info, server.appendfsync or appendfsync, config.profile, server.replays
        )
    ]
    for fault in dict.fromkeys(faults):
        why = f"profile {config.profile} promises what this setting breaks"
        yield Finding(FAULT, "profile", fault, why, "set it in the server's configuration file")
    replicas = min((server.replicas for server in state.servers), default=0)
    if config.profile == HA and not replicas:
        why = "no upload is acknowledged before a replica has confirmed it"
        yield Finding(FAULT, "profile", "no replica is connected", why, "start the replica")
    if config.profile == VOLATILE:
        why = "all reports are gone when the store restarts"
        yield Finding(WARNING, "profile", "volatile", why, "set HEARSAY_PROFILE=strict")
    elif not faults:
        yield Finding(GOOD, "profile", f"{config.profile}, as the servers are set")


def library(config: Config, state: State) -> Iterator[Finding]:
    """Look whether the steps of this release are there."""
    for version in {server.library for server in state.servers}:
        if version is None:
            yield Finding(NOTE, "library", "may not be asked by this user", next=INIT)
        elif version < LIBRARY_VERSION:
            what = f"version {version}, this release has {LIBRARY_VERSION}"
            why = "steps that this release takes are missing: uploads are answered 503"
            yield Finding(FAULT, "library", what, why, INIT)
        elif version > LIBRARY_VERSION:
            what = f"version {version}, this release has {LIBRARY_VERSION}"
            why = "a newer release has prepared the store; it keeps the steps of this one"
            yield Finding(NOTE, "library", what, why, "finish the upgrade")
        else:
            yield Finding(GOOD, "library", f"version {version}")


def shards(config: Config, state: State) -> Iterator[Finding]:
    """Look whether every shard is there and can be claimed from."""
    recorded = state.recorded_shards
    if recorded is None:
        why = "the store has not been prepared under this prefix"
        step = (
            f"{INIT}; but if there was a store before, do not: docs/operate/operate.md#store-down"
        )
        yield Finding(FAULT, "shards", "none are recorded", why, step)
    elif recorded != config.shards:
        what = f"HEARSAY_SHARDS is {config.shards}, the store has {recorded}"
        why = "uploads would be remembered in another place, and could be counted twice"
        yield Finding(FAULT, "shards", what, why, f"set HEARSAY_SHARDS={recorded}")
    lacking = [str(i) for i, shard in enumerate(state.shards) if shard.has_group is False]
    if lacking:
        what = f"{', '.join(lacking)} have no consumer group"
        yield Finding(FAULT, "shards", what, "nothing can be claimed from them", INIT)
    elif recorded == config.shards:
        yield Finding(GOOD, "shards", str(recorded))


def memory(config: Config, state: State) -> Iterator[Finding]:
    """Compare the memory in use with the limit."""
    for server in state.servers:
        if not server.memory_limit:
            why = "the system ends a server that takes all memory, and nothing is shed before"
            yield Finding(WARNING, "memory", "no limit is set", why, "set maxmemory")
            continue
        share = server.memory / server.memory_limit
        what = f"{share:.0%} of {_size(server.memory_limit)}"
        more = "fold the backlog, raise maxmemory, or add servers: docs/operate/operate.md#memory"
        if share >= SHED_MEMORY:
            why = f"from {SHED_MEMORY:.0%} on uploads are answered 503"
            yield Finding(FAULT, "memory", what, why, more)
        elif share >= ALARM_MEMORY:
            why = f"from {SHED_MEMORY:.0%} on uploads will be answered 503"
            yield Finding(WARNING, "memory", what, why, more)
        else:
            yield Finding(GOOD, "memory", what)


def log(config: Config, state: State) -> Iterator[Finding]:
    """Look whether the append-only file can be written."""
    if all(server.log_is_sound for server in state.servers):
        yield Finding(GOOD, "log", "the append-only file is written")
        return
    why = "the server takes no writes, or its file grows without end"
    step = "look at the server's disk and log"
    yield Finding(FAULT, "log", "the append-only file could not be written", why, step)


def packing(config: Config, state: State) -> Iterator[Finding]:
    """Look whether the servers pack sets of integers as large as buckets of ids are."""
    for most in {server.packed for server in state.servers if server.packed is not None}:
        if most < PACKED:
            what = f"set-max-intset-entries is {most}"
            why = f"upload ids take six times the memory, as sets of up to {PACKED} hold them"
            step = f"set it to {PACKED} in the server's configuration file"
            yield Finding(WARNING, "memory", what, why, step)


def coverage(config: Config, state: State) -> Iterator[Finding]:
    """Look whether the servers of a cluster stop where one of them is away."""
    if any(server.stops_with_others for server in state.servers):
        what = "cluster-require-full-coverage is yes"
        why = (
            "while one server is away and has no replica, all of them refuse, not its shards alone"
        )
        yield Finding(WARNING, "cluster", what, why, "set it to no on each server")


def capacity(config: Config, state: State) -> Iterator[Finding]:
    """Compare the ids to be remembered with the memory, at one upload a device or report a day."""
    limit = sum(server.memory_limit for server in state.servers)
    today = day_of(state.now)
    quotas = sum(key.quota or 0 for key in (state.credentials or {}).values() if key.is_good(today))
    devices = max((metric.expected_devices for metric in state.metrics), default=0)
    days = days_kept(bool(config.issuer_keys))
    for daily, who, most, step in (
        (devices, "expected devices", ALARM_MEMORY, "raise maxmemory or add servers"),
        (quotas, "reports of all quotas", SHARE, "lower a quota (hearsay keys quota)"),
    ):
        needed = daily * days * BYTES_PER_ID
        if limit and needed > most * limit:
            what = f"{daily:,} {who} need {_size(needed)} for ids alone"
            why = f"ids are remembered {days} days, and the limit is {_size(limit)}"
            yield Finding(WARNING, "capacity", what, why, step)


def clock(config: Config, state: State) -> Iterator[Finding]:
    """Compare the servers' clocks with ours."""
    ahead = [server.ahead for server in state.servers if server.ahead is not None]
    if not ahead:
        return
    most = max(ahead, key=abs)
    if abs(most) < _CLOCK_WARNING_S:
        yield Finding(GOOD, "clock", f"the store's is {most:+.1f} s off this machine's")
        return
    level = FAULT if abs(most) >= MARGIN else WARNING
    why = "the store's clock decides what is late, this machine's what is published"
    step = "synchronise both machines with a time server"
    yield Finding(level, "clock", f"the store's is {most:+.0f} s off this machine's", why, step)


def _size(size: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def generation(config: Config, state: State) -> Iterator[Finding]:
    """Look whether all shards belong to the same store."""
    generations = [shard.generation for shard in state.shards]
    if not generations or None in generations:
        return
    if len(set(generations)) == 1 and generations[0]:
        yield Finding(GOOD, "generation", f"{generations[0]}, in all shards")
        return
    lacking = [str(shard) for shard, name in enumerate(generations) if not name]
    what = f"shards {', '.join(lacking)} have none" if lacking else "it is not that of all shards"
    why = "the store, or a part of it, was emptied or never prepared; uploads are answered 503"
    step = f"look where its data is first: docs/operate/operate.md#replaced; then {INIT}"
    yield Finding(FAULT, "generation", what, why, step)


def lost(config: Config, state: State) -> Iterator[Finding]:
    """Look whether web processes saw the store go back."""
    if state.lost:
        what = f"went back today, by at least {counted(state.lost, 'upload')}"
        why = "they were acknowledged, so devices have forgotten them; totals are too low by them"
        step = "find out why, and look for a newer copy: docs/operate/operate.md#went-back"
        yield Finding(FAULT, "store", what, why, step)


def confirmed(config: Config, state: State) -> Iterator[Finding]:
    """Look whether upload ids are forgotten in time, and not too early."""
    confirmations = [shard.confirmed for shard in state.shards if shard.confirmed is not None]
    if not confirmations:
        return
    today = day_of(state.now)
    last, first = max(confirmations), min(confirmations)
    if last > today + 1:
        what = f"two clocks have confirmed a day that is {counted(last - today, 'day')} ahead"
        why = "uploads of days whose ids were deleted are refused, and devices give them up in time"
        step = "synchronise all machines with a time server: docs/operate/operate.md#clock"
        yield Finding(FAULT, "ids", what, why, step)
    elif first < today - _MOST_LAG:
        what = f"upload ids are kept {counted(today - first, 'day')} longer than needed"
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
