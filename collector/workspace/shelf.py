"""Documents of one kind: from the store, where people change them, and from files.

Law: no save overwrites a change that its author has not seen: a save names the version that was
read.  Deleted and replaced documents are kept for a while and can be restored.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from client_sdk.core.errors import UnknownMetricError

from ..core.catalog import Catalog
from ..core.errors import (
    AmbiguousMetricError,
    ChangedDocumentError,
    QueryError,
    UnknownDocumentError,
)
from ..storage.documents import DocumentStore, Entry, Place, Version
from .budget import MOST_BYTES, Budget
from .documents import (
    FILE,
    MAX_RECORD,
    Author,
    Board,
    Content,
    Document,
    File,
    Grant,
    Note,
    SavedQuestion,
    checked,
    is_name,
    plain,
    slug_of,
)

C = TypeVar("C", bound=Content)


class Shelf(Generic[C]):
    """The documents of one kind."""

    def __init__(
        self,
        kind: str,
        form: type[C],
        budget: Budget,
        clock: Callable[[], float],
        of_files: Mapping[str, C] | None = None,
    ) -> None:
        """Keep documents of *form* under *kind* within *budget*; those *of_files* are read only."""
        self.kind, self._budget, self._clock = kind, budget, clock
        self._store = budget.store
        self._form: Any = Document[form]  # type: ignore[valid-type]  # msgspec takes it
        self._of_files: dict[str, Document[C]] = {
            name: Document(content, FILE, 0, version=0, name=name)
            for name, content in (of_files or {}).items()
        }

    def documents(self) -> list[Document[C]]:
        """Return all documents that are not deleted, files first.

        Documents of a newer release, which cannot be read here, are left out.
        """
        kept = (document for document in self._stored() if not document.deleted)
        return [*self._of_files.values(), *kept]

    def deleted(self) -> list[Document[C]]:
        """Return those that can be restored, the last deleted first."""
        gone = (document for document in self._stored() if document.deleted)
        return sorted(gone, key=lambda document: -document.at)

    def document(self, name: str) -> Document[C]:
        """Return a document as it is now, also a deleted one.  Raises UnknownDocumentError."""
        return self._of_files.get(name) or self._read(name)[0]

    def history(self, name: str) -> list[Document[C]]:
        """Return the versions before the one of now, the newest first."""
        if name in self._of_files:
            return []
        records = self._store.history(self.kind, name).values()
        now = self.document(name).version
        versions = filter(None, (self._parsed(name, record) for record in records))
        return sorted((v for v in versions if v.version < now), key=lambda v: -v.version)

    def add(self, content: C, author: Author) -> Document[C]:
        """Keep *content* as a new document.

        Raises: QueryError: it breaks a rule, or there is no room for it.
        """
        content = checked(content)
        start = slug_of(getattr(content, "title", ""))
        name = f"{start}-{secrets.token_hex(4)}" if start else secrets.token_hex(8)
        now = int(self._clock())
        document = Document(content, author.name, now, author.id, author.id, author.name, name=name)
        return self._put(document)

    def replace(
        self, name: str, version: int, content: C, author: Author, *, deleted: bool = False
    ) -> Document[C]:
        """Keep *content* in place of *version* of a document.

        Raises: ChangedDocumentError: it is another version by now.  QueryError: it breaks a rule.
                UnknownDocumentError: there is none, or it stands in a file.
        """
        before, record = self._read(name)
        if before.version != version:
            raise ChangedDocumentError(self.kind)
        document = Document(
            checked(content),
            author.name,
            int(self._clock()),
            author.id,
            before.began,
            before.first_author,
            version=version + 1,
            deleted=deleted,
            name=name,
        )
        return self._put(document, record, Version(version, len(record), before.by))

    def delete(self, name: str, version: int, author: Author) -> None:
        """Delete a document; it can be restored.  Raises as ``replace``."""
        self.replace(name, version, self.document(name).content, author, deleted=True)

    def restore(self, name: str, version: int, wanted: int, author: Author) -> Document[C]:
        """Let a document be again what it was in version *wanted*.  Raises as ``replace``."""
        versions: list[Document[C]] = [self.document(name), *self.history(name)]
        for document in versions:
            if document.version == wanted:
                return self.replace(name, version, document.content, author)
        raise UnknownDocumentError(self.kind)

    def _stored(self) -> Iterator[Document[C]]:
        for name, record in sorted(self._store.records(self.kind).items()):
            document = self._parsed(name, record)
            if document and name not in self._of_files:
                yield document

    def _read(self, name: str) -> tuple[Document[C], bytes]:
        record = self._store.record(self.kind, name) if is_name(name) else None
        document = record and self._parsed(name, record)
        if not record or not document or name in self._of_files:
            raise UnknownDocumentError(self.kind)
        return document, record

    def _parsed(self, name: str, record: bytes) -> Document[C] | None:
        try:
            document: Document[C] = msgspec.json.decode(record, type=self._form)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return msgspec.structs.replace(document, name=name)

    def _put(
        self, document: Document[C], read: bytes | None = None, before: Version | None = None
    ) -> Document[C]:
        """Keep *document* in place of what was *read*, where there is room for it.

        Args: before: of what was read.
        """
        record, name, version = _record(document), document.name, document.version
        entry = Entry(
            document.content.app,
            document.author,
            document.at,
            (Version(version, len(record), document.by), *([before] if before else ())),
            document.began,
            document.deleted,
        )
        entry = self._budget.admit(Place(self.kind, name), entry)
        if not self._store.put(self.kind, name, record, version=version, read=read, entry=entry):
            raise ChangedDocumentError(self.kind)
        return document


def _record(document: Document[Any]) -> bytes:
    value = msgspec.to_builtins(msgspec.structs.replace(document, name=""))
    record = msgspec.json.encode({**value, "content": plain(document.content)})
    if len(record) > MAX_RECORD:
        raise QueryError("panels", f"must take at most {MAX_RECORD:,} bytes together")
    return record


@dataclass(frozen=True)
class Workspace:
    """All that people keep in one deployment."""

    store: DocumentStore
    clock: Callable[[], float]
    file: File
    memory: Callable[[], float | None] = lambda: None  # share of the store's in use
    most: int = MOST_BYTES  # of all documents
    apps: int = 1

    @cached_property
    def budget(self) -> Budget:
        """The bytes that all documents share."""
        return Budget(self.store, self.memory, self.most, self.apps)

    @cached_property
    def boards(self) -> Shelf[Board]:
        """The boards."""
        return Shelf("boards", Board, self.budget, self.clock, self.file.boards)

    @cached_property
    def questions(self) -> Shelf[SavedQuestion]:
        """The saved questions."""
        return Shelf("questions", SavedQuestion, self.budget, self.clock, self.file.questions)

    @cached_property
    def notes(self) -> Shelf[Note]:
        """The notes."""
        notes = {f"file-{number}": note for number, note in enumerate(self.file.notes, 1)}
        return Shelf("notes", Note, self.budget, self.clock, notes)

    @cached_property
    def links(self) -> Shelf[Grant]:
        """The shared links."""
        return Shelf("links", Grant, self.budget, self.clock)


def is_visible(content: Any, view: Catalog, catalog: Catalog) -> bool:
    """Return whether who may see the metrics of *view*, of all of *catalog*, may see *content*.

    A metric that no registry has any more hides nothing; one that is another's hides it all.  Texts
    without a question say of no metric that they are about it: who sees all of the app sees them.
    """
    if content.app and content.app not in view.apps and view is not catalog:
        return False
    if getattr(content, "panels", ()) and not content.metrics:
        seen, whole = (
            [metric for metric in each if content.app in ("", metric.app)]
            for each in (view, catalog)
        )
        return len(seen) == len(whole)
    return all(knows(view, name) or not knows(catalog, name) for name in content.metrics)


def matching(documents: Iterable[Document[C]], search: str) -> list[Document[C]]:
    """Return the *documents* that hold all words of *search*, in any of their texts."""
    words = search.casefold().split()
    return [document for document in documents if all(word in _text_of(document) for word in words)]


def _text_of(document: Document[Any]) -> str:
    content = document.content
    texts = [value for value in msgspec.structs.astuple(content) if isinstance(value, str)]
    panels = getattr(content, "panels", ())
    texts += [text for panel in panels for text in (panel.title, panel.text)]
    return " ".join((*texts, document.author, *content.metrics)).casefold()


def knows(catalog: Catalog, name: str) -> bool:
    """Return whether *name* is of a metric of *catalog*, or of several."""
    try:
        catalog.metric(name)
    except UnknownMetricError:
        return False
    except AmbiguousMetricError:
        pass
    return True


def place_of(catalog: Catalog, name: str) -> tuple[str, str]:
    """Return the app and the plain name of a metric.

    Raises: UnknownMetricError, AmbiguousMetricError.
    """
    metric = catalog.metric(name)
    return metric.app, metric.name


def place_if_known(catalog: Catalog, name: str) -> tuple[str, str] | None:
    """Return the app and the plain name of a metric; None if there is not one of this name."""
    try:
        return place_of(catalog, name)
    except (UnknownMetricError, AmbiguousMetricError):
        return None


def app_of(metrics: Iterable[str], view: Catalog, catalog: Catalog) -> str:
    """Return the app that a document of *metrics* is of: theirs, or the writer's; "" for all."""
    apps = {place[0] for name in metrics if (place := place_if_known(view, name))}
    if not apps and view is not catalog:
        apps = set(view.apps)
    return apps.pop() if len(apps) == 1 else ""
