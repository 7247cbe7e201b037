"""How many bytes the documents of people may occupy, so that they never take the place of uploads.

Each app has a part of the budget, and what is of all apps has one.  Where a part is full, what
makes room is of the same app: older versions of the author who saves, then what they began and
deleted; then older versions of others, then what others began and was deleted first; then there is
none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import structs

from ..core.errors import QueryError
from ..storage.documents import DocumentStore, Entry, Place, Reduction, Version

KEPT: Final = 20  # versions of a document and author, before the one of now
MOST: Final = 1_000  # documents of a kind and app: a list that can be read at once
MOST_BYTES: Final = 16 * 1024 * 1024  # of all documents and their versions, unless it is set
_FULL_MEMORY: Final = 0.70  # of the store's, from which documents are refused: before any upload is
_STEP: Final = "delete some, or ask an operator: hearsay documents lists and deletes them"


@dataclass(frozen=True)
class Budget:
    """Decides whether there is room, and makes it."""

    store: DocumentStore
    memory: Callable[[], float | None] = lambda: None  # share of the store's memory in use
    most: int = MOST_BYTES
    apps: int = 1

    def admit(self, place: Place, entry: Entry) -> Entry:
        """Return *entry* with the versions that stay before it.

        Args:    entry: it has the new version, and after it the one that it replaces, if any.

        Raises: QueryError: there is no room, and none can be made; nothing was changed.
        """
        memory = self.memory() or 0.0
        if memory >= _FULL_MEMORY and not entry.deleted:
            rule = "is full, as uploads need the rest; delete documents, or ask an operator"
            raise QueryError(place.kind, f"the store, used to {memory:.0%}, {rule}")
        index = dict(self.store.index())
        known = index.get(place)
        versions = (*entry.versions, *(known.versions[1:] if known else ()))
        before = index | {place: structs.replace(entry, versions=versions)}
        after = before | {place: structs.replace(entry, versions=_last(versions))}
        author = versions[0].by
        if known is None:
            self._limit_number(place, entry, after)
        part = self.most // (self.apps + 1)
        excess = self._excess(after, entry.app, part)
        for by in (author, ""):
            excess = _shorten(after, entry.app, place, by, excess)
            excess = _drop(after, entry.app, place, by, excess)
        if excess > 0 and not entry.deleted:  # what is deleted makes room for others
            app = f"app {entry.app}" if entry.app else "documents of all apps"
            rule = f"may keep {part:,} bytes, and has no older versions to drop"
            raise QueryError(place.kind, f"{app} {rule}; {_STEP}")
        reductions = {
            at: Reduction(was, now := after.get(at), _gone(was, now))
            for at, was in index.items()
            if at != place and after.get(at) != was
        }
        if known is not None and after[place] != before[place]:
            reductions[place] = Reduction(
                known,
                structs.replace(known, versions=after[place].versions[1:]),
                _gone(before[place], after[place]),
            )
        if reductions:
            self.store.reduce(reductions)
        return after[place]

    def _limit_number(self, place: Place, new: Entry, index: dict[Place, Entry]) -> None:
        """Forget one deleted document of this kind and app, if there are MOST: the author's own.

        Where they have deleted none, the one that was deleted first.
        """
        alike = [at for at, each in index.items() if (at.kind, each.app) == (place.kind, new.app)]
        gone = [
            at
            for by in (new.began, "")
            for at in _deleted(index, new.app, place, by)
            if at.kind == place.kind
        ]
        if len(alike) > MOST and gone:
            del index[gone[0]]
        elif len(alike) > MOST:
            raise QueryError(place.kind, f"there are {MOST:,}, as many as are kept; delete one")

    def _excess(self, index: dict[Place, Entry], app: str, part: int) -> int:
        """Return the bytes by which *app* exceeds its *part*, or all the budget."""
        of_app = sum(entry.size for entry in index.values() if entry.app == app)
        return max(of_app - part, sum(entry.size for entry in index.values()) - self.most)


def _last(versions: tuple[Version, ...]) -> tuple[Version, ...]:
    """Return the first of *versions*, and of those after it the KEPT newest of each author.

    So however often one author saves, what another wrote stays.
    """
    counts = Counter[str]()
    kept = [versions[0]]
    for version in versions[1:]:
        counts[version.by] += 1
        if counts[version.by] <= KEPT:
            kept.append(version)
    return tuple(kept)


def _gone(was: Entry, now: Entry | None) -> list[int]:
    """Return the numbers of the versions that are in *was* and not in *now*."""
    left = set(now.versions if now else ())
    return [version.number for version in was.versions if version not in left]


def _shorten(index: dict[Place, Entry], app: str, new: Place, by: str, excess: int) -> int:
    """Drop older versions *by* an author of *app*, "" for any, until there is no *excess* of bytes.

    Always of the document with most bytes of older versions, the oldest.  Of the *new* one the
    version that it replaces stays.  Returns the excess that is left.
    """
    older = {
        at: [each for each in entry.versions[1 + (at == new) :] if by in ("", each.by)]
        for at, entry in index.items()
        if entry.app == app
    }
    heap = [(-index[at].older, each[-1].number, at) for at, each in older.items() if each]
    heapify(heap)
    dropped: dict[Place, set[Version]] = {}
    while heap and excess > 0:
        size, _, at = heappop(heap)
        version = older[at].pop()
        dropped.setdefault(at, set()).add(version)
        excess -= version.stored
        if older[at]:
            heappush(heap, (size + version.stored, older[at][-1].number, at))
    for at, gone in dropped.items():
        left = tuple(version for version in index[at].versions if version not in gone)
        index[at] = structs.replace(index[at], versions=left)
    return excess


def _drop(index: dict[Place, Entry], app: str, new: Place, by: str, excess: int) -> int:
    """Drop what was deleted first until there is no *excess* of bytes; return what is left of it.

    Args: app, new, by: see ``_deleted``.
    """
    for at in _deleted(index, app, new, by):
        if excess > 0:
            excess -= index.pop(at).size
    return excess


def _deleted(index: Mapping[Place, Entry], app: str, new: Place, by: str) -> list[Place]:
    """Return what was deleted of *app* and began *by* an author, "" for any; the first is first."""
    gone = (
        (entry.at, at)
        for at, entry in index.items()
        if entry.deleted and entry.app == app and at != new and by in ("", entry.began)
    )
    return [at for _, at in sorted(gone)]
