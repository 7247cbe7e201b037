"""Reports that no answer shows: the definition that they were made under is in no registry file.

Another release may choose another mechanism for ``auto``, or somebody changes a key: the digest is
another one then, and what was reported under the old one is neither shown nor missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from client_sdk.privacy.wording import counted

from ...core.catalog import Catalog, Orphan, orphans_among
from ...core.config import Config
from ...core.errors import StorageUnavailableError
from ...storage.connect import inspect
from ...storage.connection import allowed
from .findings import GOOD, NOTE, WARNING, Finding, State

_CHECK = "definitions"
_BEHIND = "behind the current one in HEARSAY_REGISTRY"


def orphans_of(config: Config, catalog: Catalog) -> list[Orphan] | None:
    """Return the definitions in no file of *catalog* under which the store holds reports.

    None: the store's user may not ask.
    Raises: StorageUnavailableError.
    """
    return allowed(partial(_orphans_of, config, catalog), None)


def _orphans_of(config: Config, catalog: Catalog) -> list[Orphan]:
    store = inspect(config)
    orphans = {each.digest: each for each in orphans_among(store.definitions(), catalog)}
    held = Counter[bytes]()
    for size in store.sizes(orphans) if orphans else ():  # it looks at every key
        held[size.cell.metric] += size.reports
    return [orphans[digest]._replace(reports=held[digest]) for digest in sorted(+held)]


def look(config: Config, catalog: Catalog) -> list[Finding]:
    """Return the findings for a command that otherwise needs no store."""
    try:
        return list(judge(orphans_of(config, catalog)))
    except StorageUnavailableError:
        return [
            Finding(
                NOTE,
                _CHECK,
                "the store does not answer: its reports were not compared with the registry files",
                next="run this where the store answers",
            )
        ]


def check(config: Config, state: State) -> Iterator[Finding]:
    """Look for stored reports whose definition no registry file has."""
    yield from judge(state.orphans)


def judge(orphans: Sequence[Orphan] | None) -> Iterator[Finding]:
    """Yield a finding for each of *orphans*, or that there is none."""
    if orphans is None:
        yield Finding(
            NOTE,
            _CHECK,
            "this user of the store may not read under which definitions it holds reports",
            next="run this as the store's init user",
        )
    elif not orphans:
        yield Finding(GOOD, _CHECK, "all stored reports are of definitions in the registry files")
    for orphan in orphans or ():
        yield _finding(orphan)


def _finding(orphan: Orphan) -> Finding:
    reports, digest = counted(orphan.reports, "report"), orphan.digest.hex()
    what = f"{orphan.name}: {reports} under definition {digest} in no registry file"
    why = "no answer shows them"
    step = f"name the registry file of that time, with {orphan.pin}, {_BEHIND}"
    if orphan.in_use is None:
        step += f"; or delete them: hearsay prune --metric {digest}"
        return Finding(NOTE, _CHECK, what, f"{why}: no registry file has the metric", step)
    if orphan.changed != ("mechanism",):
        why += f"; changed since then: {', '.join(orphan.changed)}"
        return Finding(NOTE, _CHECK, what, why, step)
    return Finding(
        WARNING,
        _CHECK,
        what,
        f"{why}: the mechanism is {orphan.in_use} now",
        next=f"to keep the metric as it was, write {orphan.pin} and run hearsay registry lock; to"
        f" take the new choice, write them in a copy of the file, and name it {_BEHIND}",
    )
