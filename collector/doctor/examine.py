"""Judge the state of a deployment: state in, findings out.  Pure, so that every case is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ..core.config import Config
from . import days, expiry, poisoning, servers, uploads
from .findings import Finding
from .state import State


class Check(NamedTuple):
    """What judges a part of the state, and whether a web process may see that part."""

    judge: Callable[[Config, State], Iterator[Finding]]
    on_page: bool = False  # also on the page Operations; else in hearsay doctor alone


CHECKS: Final = (
    Check(servers.profile, on_page=True),
    Check(servers.library, on_page=True),
    Check(servers.shards),
    Check(servers.memory, on_page=True),
    Check(servers.log, on_page=True),
    Check(servers.capacity, on_page=True),
    Check(servers.clock, on_page=True),
    Check(days.generation),
    Check(days.confirmed),
    Check(days.waits),
    Check(uploads.workers, on_page=True),
    Check(uploads.stuck),
    Check(uploads.conservation, on_page=True),
    Check(uploads.quarantine, on_page=True),
    Check(uploads.lateness, on_page=True),
    Check(uploads.archive),
    Check(poisoning.suspicious, on_page=True),
    Check(expiry.keys),
    Check(expiry.expiring_tokens),
    Check(expiry.quotas),
    Check(expiry.registry, on_page=True),
)


def examine(config: Config, state: State, *, for_page: bool = False) -> list[Finding]:
    """Return a finding of each thing that was looked at, good ones too.

    Args: for_page: only what can be judged from what a web process may see.
    """
    judges = (check.judge for check in CHECKS if check.on_page or not for_page)
    return [finding for judge in judges for finding in judge(config, state)]
