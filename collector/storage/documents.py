"""Documents of people in the store: boards, saved questions, notes, shared links, with history.

A hash of each kind holds every document as it is now, by name; a hash of each document holds what
it was before, by version.  An index has each document's size and author.  The content of a
document is bytes here; its readers interpret it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec

from ..core.errors import DamagedIndexError
from .hashes import Hashes, HashStore, Records, Removal, Replacement, Step

_SECRETS: Final = "documents:secrets"  # hashes
_INDEX: Final = "documents:index"
_OVERHEAD: Final = 128  # bytes that the store takes in addition for each record


class Place(NamedTuple):
    """Where a document is."""

    kind: str
    name: str


class Version(NamedTuple):
    """What is known of one version of a document."""

    number: int
    size: int  # bytes
    by: str  # the id of its author

    @property
    def stored(self) -> int:
        """Bytes that it takes in the store."""
        return self.size + _OVERHEAD


class Entry(msgspec.Struct, frozen=True):
    """What is known of a document without reading it."""

    app: str  # "" if it is of all
    author: str  # the name of the current version's author
    at: int  # Unix time of that version
    versions: tuple[Version, ...]  # that are kept, the current one first
    began: str = ""  # the id of the first version's author
    deleted: bool = False

    @property
    def older(self) -> int:
        """Bytes of the versions before the one of now."""
        return self.size - self.versions[0].stored

    @property
    def size(self) -> int:
        """Bytes of all its versions."""
        return sum(version.stored for version in self.versions)


class Reduction(NamedTuple):
    """What makes room: an entry before and after, None where all of a document goes."""

    was: Entry
    now: Entry | None
    gone: Collection[int] = ()  # the versions that are not in the entry any more


class DocumentStore(HashStore):
    """Records by kind and name; a writer replaces only the record that it has read.

    Laws: a record is in the history of its document before another takes its place.  Every method
    may be repeated: putting a record again changes nothing.
    """

    def __init__(self, hashes: Hashes) -> None:

        super().__init__(hashes)
        self._index = Records(hashes, _INDEX, Entry)

    def records(self, kind: str) -> dict[str, bytes]:
        """Return every document of *kind* as it is now, by name; others are passed over."""
        read = self._hashes.read(_key(kind))
        return {name: record for name, record in read.items() if name.isascii()}

    def index(self) -> dict[Place, Entry]:
        """Return what is known of all documents: some hundred bytes each.

        Raises: DamagedIndexError: what an entry counts must not be forgotten.
        """
        entries = {}
        for name, text in self._hashes.read(_INDEX).items():
            kind, _, own = name.partition(":")
            try:
                entries[Place(kind, own)] = msgspec.json.decode(text, type=Entry)
            except msgspec.MsgspecError:
                rule = "cannot be read: delete this field by HDEL, and save the document once more"
                raise DamagedIndexError(f"{_INDEX}={name}: {rule}") from None
        return entries

    def record(self, kind: str, name: str) -> bytes | None:
        """Return a document as it is now; None if there is none."""
        return self._hashes.get(_key(kind), name)

    def put(
        self,
        kind: str,
        name: str,
        record: bytes,
        *,
        version: int = 1,
        read: bytes | None = None,
        entry: Entry | None = None,
    ) -> bool:
        """Store *record* as *version* in place of what was *read*; None for a new document.

        History is written first: a death between leaves a copy there of what is still the newest.

        Args:    entry: of the index, which is written before it, so that nothing is uncounted.
        Returns: False if another record is there, or is being put; the index is as it was.
        """
        if read is not None:  # a full store refuses this, and nothing has changed
            self._hashes.put(_key(kind, name), {str(version - 1): read})
        if entry is None:
            return self._hashes.replace(_key(kind), name, read, record)
        place = f"{kind}:{name}"
        was, _ = self._index.get(place)
        text = self._index.replace(place, was, entry)
        if text is None:
            return False
        is_there = self._hashes.replace(_key(kind), name, read, record)
        if not is_there and was is not None:
            self._hashes.replace(_INDEX, place, text, was)
        elif not is_there and self.record(kind, name) is None:
            self._index.forget([place])
        return is_there

    def history(self, kind: str, name: str) -> dict[int, bytes]:
        """Return the versions of a document before the one of now, the oldest first."""
        read = self._hashes.read(_key(kind, name)).items()
        return dict(sorted((int(version), r) for version, r in read if version.isdigit()))

    def reduce(self, reductions: Mapping[Place, Reduction]) -> None:
        """Delete versions and documents, and then their entries in the index.

        A document whose index entry has changed is left alone.  One round trip, after one that
        reads the index.
        """
        index, steps = self.index(), list[Step]()
        for place, (was, now, gone) in reductions.items():
            if index.get(place) != was:
                continue
            if now is None:
                steps += _removal(place)
                continue
            if gone:
                steps.append(Removal(_key(*place), tuple(map(str, gone))))
            texts = self._index.encode(was), self._index.encode(now)
            steps.append(Replacement(_INDEX, ":".join(place), *texts))
        self._hashes.apply(steps)

    def remove(self, kind: str, name: str) -> None:
        """Delete a document with its history, for good."""
        self._hashes.apply(_removal(Place(kind, name)))

    def secret(self, purpose: str, fresh: bytes) -> bytes:
        """Return the secret for *purpose*, of all processes: *fresh* if there was none."""
        secret = self._hashes.get(_SECRETS, purpose)
        if secret is None:
            self._hashes.replace(_SECRETS, purpose, None, fresh)
            secret = self._hashes.get(_SECRETS, purpose)
        return secret or fresh


class ExclusionStore(HashStore):
    """Records of what operators have taken out of answers; questions read them as tallies."""

    def put(self, name: str, record: bytes, read: bytes | None = None) -> bool:
        """Store *record* in place of what was *read*, None for a new one; return if it is there."""
        return self._hashes.replace("exclusions", name, read, record)


def _key(*parts: str) -> str:
    return ":".join(("documents", *parts))


def _removal(place: Place) -> list[Step]:
    """Return how a document goes, first of all: what is left of a history belongs to nothing."""
    return [
        Removal(_key(place.kind), (place.name,)),
        Removal(_key(*place)),
        Removal(_INDEX, (":".join(place),)),
    ]
