"""How many bytes the documents of people may occupy, so that they never take the place of uploads.

Each app has a part of the budget, and what is of all apps has one.  Where a part is full, older
versions of the same app make room first, then what was deleted first there; then there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from ..core.errors import QueryError
from ..storage.documents import KEPT, DocumentStore, Entry, Place

MOST: Final = 1_000  # documents of a kind and app: a list that can be read at once
MOST_BYTES: Final = 16 * 1024 * 1024  # of all documents and their versions, unless it is set
FULL_MEMORY: Final = 0.70  # of the store's, from which documents are refused: before any upload is
_STEP: Final = "delete some, or ask an operator: hearsay documents lists and deletes them"


@dataclass(frozen=True)
class Budget:
    """Decides whether there is room, and makes it."""

    store: DocumentStore
    memory: Callable[[], float | None] = lambda: None  # share of the store's memory in use
    most: int = MOST_BYTES
    apps: int = 1

    def admit(self, place: Place, entry: Entry) -> Entry:
        """Return *entry*, which has one size, with the sizes of the versions that stay before it.

        Raises: QueryError: there is no room, and none can be made; nothing was changed.
        """
        memory = self.memory() or 0.0
        if memory >= FULL_MEMORY and not entry.deleted:
            rule = "is full for documents, so that uploads still have room; tell an operator"
            raise QueryError(f"{place.kind}: the store, used to {memory:.0%}, {rule}")
        index = dict(self.store.index())
        known = index.get(place)
        kept = (*entry.sizes, *(known.sizes if known else ()))[: KEPT + 1]
        before = index | {place: structs.replace(entry, sizes=kept)}
        after = dict(before)
        if known is None:
            self._limit_number(place, entry.app, after)
        part = self.most // (self.apps + 1)
        while self._excess(after, entry.app, part) > 0:
            if _shorten(after, entry.app, place) or _drop(after, entry.app, place):
                continue
            if not entry.deleted:  # what is deleted makes room for others
                app = f"app {entry.app}" if entry.app else "documents of all apps"
                rule = f"may keep {part:,} bytes, and has no older versions to drop"
                raise QueryError(f"{place.kind}: {app} {rule}; {_STEP}")
            break
        for other, was in before.items():
            now = after.get(other)
            if now is None:
                self.store.remove(*other, was)
            elif other != place and now != was:
                self.store.forget(other, now)
        if known is not None and after[place] != before[place]:
            older = after[place].sizes[1:]
            self.store.forget(place, structs.replace(known, sizes=older))
        return after[place]

    def _limit_number(self, place: Place, app: str, index: dict[Place, Entry]) -> None:
        """Forget the document of this kind and *app* that was deleted first, if there are MOST."""
        alike = [at for at, entry in index.items() if (at.kind, entry.app) == (place.kind, app)]
        if len(alike) > MOST and not _drop(index, app, place, place.kind):
            raise QueryError(f"{place.kind}: there are {MOST:,}, as many as are kept; delete one")

    def _excess(self, index: dict[Place, Entry], app: str, part: int) -> int:
        """Return the bytes by which *app* exceeds its *part*, or all the budget."""
        of_app = sum(entry.size for entry in index.values() if entry.app == app)
        return max(of_app - part, sum(entry.size for entry in index.values()) - self.most)


def _shorten(index: dict[Place, Entry], app: str, new: Place) -> bool:
    """Drop the oldest version of the document of *app* with most bytes of them; False: none has.

    Of the *new* one the version that it replaces stays.
    """
    mine = [at for at, e in index.items() if e.app == app and len(e.sizes) > 1 + (at == new)]
    if not mine:
        return False
    longest = max(mine, key=lambda at: index[at].older)
    entry = index[longest]
    index[longest] = structs.replace(entry, sizes=entry.sizes[:-1])
    return True


def _drop(index: dict[Place, Entry], app: str, new: Place, kind: str = "") -> bool:
    """Drop what was deleted first of *app*, of *kind* if it is named; False: nothing is deleted."""
    gone = [
        (entry.at, at)
        for at, entry in index.items()
        if entry.deleted and entry.app == app and at != new and kind in ("", at.kind)
    ]
    if gone:
        del index[min(gone)[1]]
    return bool(gone)
