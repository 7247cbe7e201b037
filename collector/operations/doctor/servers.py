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
        yield Finding(
            FAULT,
            "profile",
            fault,
            why=f"profile {config.profile} promises what this setting breaks",
            next="set it in the server's configuration file",
        )
    replicas = min((server.replicas for server in state.servers), default=0)
    if config.profile == HA and not replicas:
        yield Finding(
            FAULT,
            "profile",
            "no replica is connected",
            why="no upload is acknowledged before a replica has confirmed it",
            next="start the replica",
        )
    if config.profile == VOLATILE:
        yield Finding(
            WARNING,
            "profile",
            "volatile",
            why="all reports are gone when the store restarts",
            next="set HEARSAY_PROFILE=strict",
        )
    elif not faults:
        yield Finding(GOOD, "profile", f"{config.profile}, as the servers are set")


def library(config: Config, state: State) -> Iterator[Finding]:
    """Look whether the steps of this release are there."""
    for version in {server.library for server in state.servers}:
        if version is None:
            yield Finding(NOTE, "library", "may not be asked by this user", next=INIT)
        elif version < LIBRARY_VERSION:
            yield Finding(
                FAULT,
                "library",
                f"version {version}, this release has {LIBRARY_VERSION}",
                why="steps that this release takes are missing: uploads are answered 503",
                next=INIT,
            )
        elif version > LIBRARY_VERSION:
            yield Finding(
                NOTE,
                "library",
                f"version {version}, this release has {LIBRARY_VERSION}",
                why="a newer release has prepared the store; it keeps the steps of this one",
                next="finish the upgrade",
            )
        else:
            yield Finding(GOOD, "library", f"version {version}")


def shards(config: Config, state: State) -> Iterator[Finding]:
    """Look whether every shard is there and can be claimed from."""
    recorded = state.recorded_shards
    if recorded is None:
        yield Finding(
            FAULT,
            "shards",
            "none are recorded",
            why="the store has not been prepared under this prefix",
            next=f"{INIT}, unless there was a store before: docs/operate/operate.md#store-down",
        )
    elif recorded != config.shards:
        yield Finding(
            FAULT,
            "shards",
            f"HEARSAY_SHARDS is {config.shards}, the store has {recorded}",
            why="uploads would be remembered in another place, and could be counted twice",
            next=f"set HEARSAY_SHARDS={recorded}",
        )
    lacking = [str(i) for i, shard in enumerate(state.shards) if shard.has_group is False]
    if lacking:
        yield Finding(
            FAULT,
            "shards",
            f"{', '.join(lacking)} have no consumer group",
            "nothing can be claimed from them",
            INIT,
        )
    elif recorded == config.shards:
        yield Finding(GOOD, "shards", str(recorded))


def memory(config: Config, state: State) -> Iterator[Finding]:
    """Compare the memory in use with the limit."""
    for server in state.servers:
        if not server.memory_limit:
            yield Finding(
                WARNING,
                "memory",
                "no limit is set",
                why="the system ends a server that takes all memory, and nothing is shed before",
                next="set maxmemory",
            )
            continue
        share = server.memory / server.memory_limit
        what = f"{share:.0%} of {_size(server.memory_limit)}"
        more = "fold the backlog, raise maxmemory, or add servers: docs/operate/operate.md#memory"
        if share >= SHED_MEMORY:
            yield Finding(
                FAULT,
                "memory",
                what,
                why=f"from {SHED_MEMORY:.0%} on uploads are answered 503",
                next=more,
            )
        elif share >= ALARM_MEMORY:
            yield Finding(
                WARNING,
                "memory",
                what,
                why=f"from {SHED_MEMORY:.0%} on uploads will be answered 503",
                next=more,
            )
        else:
            yield Finding(GOOD, "memory", what)


def log(config: Config, state: State) -> Iterator[Finding]:
    """Look whether the append-only file can be written."""
    if all(server.log_is_sound for server in state.servers):
        yield Finding(GOOD, "log", "the append-only file is written")
        return
    yield Finding(
        FAULT,
        "log",
        "the append-only file could not be written",
        why="the server takes no writes, or its file grows without end",
        next="look at the server's disk and log",
    )


def packing(config: Config, state: State) -> Iterator[Finding]:
    """Look whether the servers pack sets of integers as large as buckets of ids are."""
    for most in {server.packed for server in state.servers if server.packed is not None}:
        if most < PACKED:
            yield Finding(
                WARNING,
                "memory",
                f"set-max-intset-entries is {most}",
                why=f"upload ids take six times the memory, as sets of up to {PACKED} hold them",
                next=f"set it to {PACKED} in the server's configuration file",
            )


def coverage(config: Config, state: State) -> Iterator[Finding]:
    """Look whether the servers of a cluster stop where one of them is away."""
    if any(server.stops_with_others for server in state.servers):
        yield Finding(
            WARNING,
            "cluster",
            "cluster-require-full-coverage is yes",
            why="while one server without a replica is away, all servers refuse, not it alone",
            next="set it to no on each server",
        )


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
            yield Finding(
                WARNING,
                "capacity",
                f"{daily:,} {who} need {_size(needed)} for ids alone",
                why=f"ids are remembered {days} days, and the limit is {_size(limit)}",
                next=step,
            )


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
    yield Finding(
        level,
        "clock",
        f"the store's is {most:+.0f} s off this machine's",
        why="the store's clock decides what is late, this machine's what is published",
        next="synchronise both machines with a time server",
    )


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
    yield Finding(
        FAULT,
        "generation",
        f"shards {', '.join(lacking)} have none" if lacking else "it is not that of all shards",
        why="the store, or a part of it, was emptied or never prepared; uploads are answered 503",
        next=f"look where its data is first: docs/operate/operate.md#replaced; then {INIT}",
    )


def lost(config: Config, state: State) -> Iterator[Finding]:
    """Look whether web processes saw the store go back."""
    if state.lost:
        yield Finding(
            FAULT,
            "store",
            f"went back today, by at least {counted(state.lost, 'upload')}",
            why="they were acknowledged, so devices have forgotten them; totals lack them",
            next="find out why, and look for a newer copy: docs/operate/operate.md#went-back",
        )


def confirmed(config: Config, state: State) -> Iterator[Finding]:
    """Look whether upload ids are forgotten in time, and not too early."""
    confirmations = [shard.confirmed for shard in state.shards if shard.confirmed is not None]
    if not confirmations:
        return
    today = day_of(state.now)
    last, first = max(confirmations), min(confirmations)
    if last > today + 1:
        yield Finding(
            FAULT,
            "ids",
            f"two clocks have confirmed a day that is {counted(last - today, 'day')} ahead",
            why="uploads of days whose ids were deleted are refused, and in time given up",
            next="synchronise all machines with a time server: docs/operate/operate.md#clock",
        )
    elif first < today - _MOST_LAG:
        yield Finding(
            WARNING,
            "ids",
            f"upload ids are kept {counted(today - first, 'day')} longer than needed",
            why="they fill memory; the day moves on by one at a time, while a worker runs",
            next="see that workers run and that clocks agree; after a long pause, wait",
        )
    else:
        yield Finding(GOOD, "ids", "forgotten in time")


def waits(config: Config, state: State) -> Iterator[Finding]:
    """Look whether workers found their clock and the store's apart."""
    if state.clock_waits:
        rounds = counted(state.clock_waits, "round")
        yield Finding(
            NOTE,
            "clock",
            f"workers folded nothing in {rounds} of today: clocks disagreed",
            why="a fold under a wrong clock would stay in a wrong class; entries wait instead",
            next="synchronise the workers' machines and the store's: docs/operate/operate.md#clock",
        )
