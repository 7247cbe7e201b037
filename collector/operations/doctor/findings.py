"""Findings of checks, and the state that they judge.

A finding says how bad it is, what, why it matters, and what to do next.  The state is gathered
once, so that each check is a pure function of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Final

from client_sdk.registry.metric import Metric

from ...core.catalog import Orphan
from ...core.credentials import Credential
from ...storage.diagnosis import Server, Shard
from ...storage.records import WatchRecord
from ...storage.values import ArchiveProgress, Counters

GOOD: Final = "good"
NOTE: Final = "note"  # worth knowing; nothing is wrong
WARNING: Final = "warning"  # works now, and will not for ever
FAULT: Final = "fault"  # reports or answers are at risk, or already missing
LEVELS: Final = (GOOD, NOTE, WARNING, FAULT)
INIT: Final = "run hearsay init, as the store's init user"  # the next step of many findings


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    level: str
    check: str
    what: str
    why: str = ""
    next: str = ""  # a command or an action; empty if none is needed

    def lines(self) -> list[str]:
        """Return it as people read it."""
        lines = [f"{self.level:7}  {self.check}: {self.what}"]
        if self.why:
            lines.append(f"         why:  {self.why}")
        if self.next:
            lines.append(f"         next: {self.next}")
        return lines

    def row(self) -> dict[str, str]:
        """Return it as JSON has it."""
        return asdict(self)


def worst(findings: Iterable[Finding]) -> str:
    """Return the worst level among *findings*."""
    return max((finding.level for finding in findings), key=LEVELS.index, default=GOOD)


@dataclass(frozen=True)
class RetiredList:
    """What is known of the list of retired metrics that is served."""

    error: str = ""  # why there is none in the file
    keys: int = 0  # that registries name
    issued: date | None = None  # None: it is signed by none of these keys
    metrics: int = 0
    still: Sequence[str] = ()  # metrics that are reported, though every device could know


@dataclass(frozen=True)
class State:
    """What checks judge; None and empty where the store's user may not ask."""

    servers: Sequence[Server]
    shards: Sequence[Shard]
    recorded_shards: int | None
    recorded_profile: str | None
    credentials: dict[bytes, Credential] | None  # by digest, those of the environment too
    alive: Mapping[str, int] | None  # processes by role
    metrics: Sequence[Metric]
    # Of live web processes, keys and tokens in their settings by scope; None if none lives, or that
    # may not be read.
    granted: Mapping[str, int] | None
    used: Mapping[bytes, int]  # reports of today, by the digest of a key with a quota
    archiving: Sequence[ArchiveProgress]  # of each shard
    stuck: int  # entries that were delivered and of which the oldest of a shard is not done
    now: float  # Unix time
    clock_waits: int = 0  # rounds of today in which a worker folded nothing, as clocks disagreed
    lost: int = 0  # acknowledged uploads that the store lost today
    # Bytes of tallies that were begun today, by the digest of a write key.
    begun: Mapping[bytes, int] = field(default_factory=dict)
    watched: Mapping[str, WatchRecord] | None = None  # what was found of closed epochs, by metric
    retired: RetiredList | None = None  # None: no list is served
    # Definitions with reports that are in no registry file; None: that may not be asked.
    orphans: Sequence[Orphan] | None = ()

    @property
    def counters(self) -> list[Counters]:
        """What became of the uploads of each shard of which that may be read."""
        return [shard.counters for shard in self.shards if shard.counters]
