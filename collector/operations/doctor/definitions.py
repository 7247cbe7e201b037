"""Reports that no answer shows: the definition that they were made under is in no registry file.

Another release may choose another mechanism for ``auto``, or somebody changes a key: the digest is
another one then, and what was reported under the old one is neither shown nor missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from client_sdk.privacy.wording import counted

from ...core.catalog import Catalog
from ...core.config import Config
from ...core.definitions import Orphan, orphans_among
from ...core.errors import StorageUnavailableError
from ...storage.connect import definitions_in, inspect
from ...storage.connection import allowed
from .findings import GOOD, NOTE, WARNING, Finding, State

_CHECK = "definitions"


def orphans_of(config: Config, catalog: Catalog) -> list[Orphan] | None:
    """Return the definitions in no file of *catalog* under which the store holds reports.

    None: the store's user may not ask.
    Raises: StorageUnavailableError.
    """
    records = allowed(definitions_in(config).records, None)
    if records is None:
        return None
    orphans = {orphan.digest: orphan for orphan in orphans_among(records, catalog)}
    held = Counter[bytes]()

    def count() -> Counter[bytes]:
        for size in inspect(config).sizes(orphans):
            held[size.cell.metric] += size.reports
        return held

    if not orphans or allowed(count, None) is None:
        return list(orphans.values())
    return [
        orphan._replace(reports=held[digest]) for digest, orphan in orphans.items() if held[digest]
    ]


def look(config: Config, catalog: Catalog) -> list[Finding]:
    """Return the findings for a command that otherwise needs no store."""
    try:
        return list(judge(orphans_of(config, catalog)))
    except StorageUnavailableError:
        what = "the store does not answer, so its reports were not compared with the registry files"
        return [Finding(NOTE, _CHECK, what, next="run this where the store answers")]


def check(config: Config, state: State) -> Iterator[Finding]:
    """Look for stored reports whose definition no registry file has."""
    yield from judge(state.orphans)


def judge(orphans: Sequence[Orphan] | None) -> Iterator[Finding]:
    """Yield a finding for each of *orphans*, or that there is none."""
    if orphans is None:
        what = "this user of the store may not read under which definitions it holds reports"
        yield Finding(NOTE, _CHECK, what, next="run this as the store's init user")
        return
    if not orphans:
        yield Finding(GOOD, _CHECK, "all stored reports are of definitions in the registry files")
    for orphan in orphans:
        yield _finding(orphan)


def _finding(orphan: Orphan) -> Finding:
    reports = "what was reported" if orphan.reports is None else counted(orphan.reports, "report")
    what = f"{orphan.name}: {reports} under definition {orphan.digest.hex()} in no registry file"
    lines = f"{orphan.pin} under {_heading(orphan.name)}"
    behind = "behind the current one in HEARSAY_REGISTRY"
    file = f"name the registry file of that time, with {lines}, {behind}"
    if orphan.in_use is None:
        why = "no registry file has the metric, so no answer shows them"
        step = f"{file}; or delete them: hearsay prune --metric {orphan.digest.hex()}"
        return Finding(NOTE, _CHECK, what, why, step)
    if orphan.changed:
        why = f"no answer shows them; changed since then: {', '.join(orphan.changed)}"
        return Finding(NOTE, _CHECK, what, why, file)
    why = f"no answer shows them: the mechanism was {orphan.mechanism} and is {orphan.in_use}"
    step = (
        f"to keep the metric as it was, write {lines} and run hearsay registry lock; to take the"
        f" new choice, write them in a copy of the file, and name it {behind}"
    )
    return Finding(WARNING, _CHECK, what, why, step)


def _heading(name: str) -> str:
    own = name.rpartition("/")[2]
    return f'[metrics."{own}"]' if "." in own else f"[metrics.{own}]"
