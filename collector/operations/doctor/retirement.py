"""The list of retired metrics: is it one, would devices heed it, and did they?

A device takes a list only under the public key of its own registry, and only after an upload that
arrived.  So a list that is wrong stops nothing, and no one would notice without this check.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from client_sdk.core.epoch import ONCE, epochs_between
from client_sdk.core.limits import MAX_REPORT_AGE
from client_sdk.privacy.retirement import MAX_LIST, parsed, read
from client_sdk.privacy.wording import counted

from ...core.catalog import Catalog
from ...core.config import Config
from ...core.errors import ConfigError
from ...storage.protocols import TallyStore
from .findings import FAULT, GOOD, WARNING, Finding, RetiredList, State

GRACE: Final = MAX_REPORT_AGE + 1  # days from the list on; until then reports may be under way
_LOOKED_BACK: Final = 60  # days; tallies before them say nothing of today's devices
_RETIRE: Final = "write it with hearsay registry retire, by the key of the registry"


def retired_list(path: str) -> bytes:
    """Return the list in the file *path*.  Raises ConfigError: it is none."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_LIST + 1)
    except OSError as error:
        raise ConfigError("HEARSAY_RETIRED", path, f"cannot be read: {error.strerror}") from error
    if parsed(text) is None:
        rule = "must be a list that hearsay registry retire wrote"
        raise ConfigError("HEARSAY_RETIRED", path, rule)
    return text


def look_at(
    config: Config, catalog: Catalog, storage: TallyStore | None, now: float
) -> RetiredList | None:
    """Return what there is to judge of the list of *config* at Unix time *now*; None: it has none.

    Args:   storage: where reports are looked for; None: they are not.
    Raises: StorageUnavailableError.
    """
    if not config.retired:
        return None
    try:
        text = retired_list(config.retired)
    except ConfigError as error:
        return RetiredList(error=str(error))
    keys = {registry.retire_key for registry in catalog.registries} - {None}
    heeded = [bytes.fromhex(key) for key in keys if key is not None]
    lists = [retirement for key in heeded if (retirement := read(text, key)) is not None]
    if not lists:
        return RetiredList(keys=len(keys))
    (retirement,) = lists
    issued = datetime.fromtimestamp(retirement.issued, UTC).date()
    today = datetime.fromtimestamp(now, UTC).date()
    still = () if storage is None else _still(catalog, storage, retirement.digests, issued, today)
    return RetiredList(
        keys=len(keys),
        issued=issued,
        metrics=len(retirement.digests),
        still=tuple(still),
    )


def _still(
    catalog: Catalog, storage: TallyStore, digests: frozenset[bytes], issued: date, today: date
) -> Iterator[str]:
    """Yield the names of metrics with reports of epochs that began when all should know."""
    first = max(issued + timedelta(days=GRACE), today - timedelta(days=_LOOKED_BACK))
    for digest in sorted(digests):
        metric = catalog.by_digest.get(digest)
        if metric is None or metric.every == ONCE or first > today:
            continue
        if storage.index(digest, epochs_between(metric.every, first, today)).cells:
            yield metric.address


def retired(config: Config, state: State) -> Iterator[Finding]:
    """Judge the list of retired metrics, where there is one."""
    listed = state.retired
    if listed is None:
        return
    if listed.error:
        yield Finding(
            FAULT,
            "retired",
            listed.error,
            why="devices that ask are answered 503 and go on",
            next=_RETIRE,
        )
    elif not listed.keys:
        yield Finding(
            WARNING,
            "retired",
            "no registry has a retire_key",
            why="no device asks for the list",
            next="put the public key into [app], and release that registry",
        )
    elif listed.issued is None:
        yield Finding(
            FAULT,
            "retired",
            "the list is signed by no key of a registry",
            why="every device refuses it, and counts list_refused",
            next=_RETIRE,
        )
    else:
        yield Finding(
            GOOD,
            "retired",
            f"{counted(listed.metrics, 'metric')}, by a list of {listed.issued.isoformat()}",
        )
        today = datetime.fromtimestamp(state.now, UTC).date()
        if listed.issued > today + timedelta(days=1):
            yield Finding(
                WARNING,
                "retired",
                f"the list is of {listed.issued.isoformat()}, which is still to come",
                why="devices refuse every list that is older, until then",
                next="look at the clock where it is signed",
            )
        if listed.still:
            yield Finding(
                WARNING,
                "retired",
                f"reported {GRACE} days after the list and later: {', '.join(listed.still)}",
                why="those devices have a registry without the key, or never got the list",
                next="release a version without these metrics",
            )
