"""Judge the state of a deployment: state in, findings out.  Pure, so that every case is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ..config import Config
from . import days, expiry, poisoning, servers, uploads
from .findings import Finding
from .state import State

Check: TypeAlias = Callable[[Config, State], Iterator[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    *(servers.profile, servers.library, servers.shards, servers.memory, servers.log),
    *(servers.capacity, servers.clock, days.generation, days.confirmed, days.waits),
    *(uploads.workers, uploads.stuck, uploads.conservation, uploads.quarantine, uploads.lateness),
    *(uploads.archive, poisoning.suspicious),
    *(expiry.keys, expiry.expiring_tokens, expiry.quotas, expiry.registry),
)


def examine(config: Config, state: State) -> list[Finding]:
    """Return a finding of each thing that was looked at, good ones too."""
    return [finding for check in CHECKS for finding in check(config, state)]
