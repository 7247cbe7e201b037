"""A shelf of documents: nobody undoes another's work, and what was deleted comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
import pytest
from msgspec import structs

from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.core.errors import ChangedDocumentError, QueryError, UnknownDocumentError
from collector.query import Query
from collector.storage.documents import DocumentStore, Entry, Place, Reduction, Version
from collector.storage.hashes import MemoryHashes
from collector.workspace.budget import KEPT, MOST, Budget
from collector.workspace.documents import Board, File, Note, Panel
from collector.workspace.notes import is_planned, notes_on, readable
from collector.workspace.shelf import Shelf, Workspace, app_of, is_visible, matching
from tests.support.store.authors import ADA, BOB, EVE
from tests.support.store.credential_cases import METRICS, OURS, THEIRS, registry_text

NOW: Final = 1_790_000_000.0  # 2026-09-21
ALPHA, BETA, GAMMA = METRICS[OURS][0], METRICS[OURS][1], METRICS[THEIRS][0]


@pytest.fixture
def store() -> DocumentStore:
    return DocumentStore(MemoryHashes())


@pytest.fixture
def boards(store: DocumentStore) -> Shelf[Board]:
    return Workspace(store, lambda: NOW, File(1, {"of-file": Board("Of a file")})).boards


@pytest.fixture
def catalog() -> Catalog:
    return Catalog([Registry.from_text(registry_text(app)) for app in (OURS, THEIRS)])


def test_a_document_has_its_author_moment_and_an_address_that_can_be_read(
    boards: Shelf[Board],
) -> None:
    document = boards.add(Board("Release <b> Health!"), ADA)

    assert (document.author, document.at, document.version) == ("ada", int(NOW), 1)
    assert document.name.startswith("release-b-health-")
    assert boards.document(document.name) == document
    assert [board.name for board in boards.documents()] == ["of-file", document.name]


def test_of_two_who_save_the_same_version_one_is_told(boards: Shelf[Board]) -> None:
    name = boards.add(Board("x"), ADA).name
    boards.replace(name, 1, Board("y"), ADA)

    with pytest.raises(ChangedDocumentError, match="by somebody else meanwhile"):
        boards.replace(name, 1, Board("z"), BOB)

    assert boards.document(name).content.title == "y"


def test_every_version_can_be_restored_and_restoring_is_a_version(boards: Shelf[Board]) -> None:
    name = boards.add(Board("x"), ADA).name
    boards.replace(name, 1, Board("y"), BOB)
    boards.delete(name, 2, EVE)
    assert [board.name for board in boards.documents()] == ["of-file"]
    assert [board.name for board in boards.deleted()] == [name]

    restored = boards.restore(name, 3, 1, ADA)

    assert (restored.content.title, restored.version, restored.deleted) == ("x", 4, False)
    assert [before.author for before in boards.history(name)] == ["eve", "bob", "ada"]
    with pytest.raises(UnknownDocumentError):
        boards.restore(name, 4, 9, ADA)


def test_the_last_versions_of_each_author_are_kept_whoever_saves_more(
    boards: Shelf[Board],
) -> None:
    """Law: an author's many saves push out no version of another."""
    name = boards.add(Board("of ada"), ADA).name
    boards.replace(name, 1, Board("of bob"), BOB)
    for version in range(2, 2 * KEPT + 4):
        boards.replace(name, version, Board(f"of eve {version}"), EVE)

    history = boards.history(name)

    assert [document.content.title for document in history[-2:]] == ["of bob", "of ada"]
    assert len(history) == KEPT + 2
    assert history[0].version == boards.document(name).version - 1
    assert {document.began for document in history} == {ADA.id}
    assert boards.restore(name, 2 * KEPT + 4, 2, EVE).content.title == "of bob"


@pytest.mark.parametrize("name", ["", "none", "../x", "a:b", "A", "x" * 65, "of-file"])
def test_what_is_not_there_or_stands_in_a_file_is_not_replaced(
    boards: Shelf[Board], name: str
) -> None:
    with pytest.raises(UnknownDocumentError):
        boards.replace(name, 1, Board("x"), ADA)


def test_a_document_that_cannot_be_read_costs_no_other(
    boards: Shelf[Board], store: DocumentStore
) -> None:
    """Law: what a newer release wrote, or somebody by hand, is passed over."""
    name = boards.add(Board("x"), ADA).name
    for number, record in enumerate((b"{}", b"\xff", b"[" * 9_999, b'{"content":{"tilte":"x"}}')):
        store.put("boards", f"bad-{number}", record)

    assert [board.name for board in boards.documents()] == ["of-file", name]
    with pytest.raises(UnknownDocumentError):
        boards.document("bad-0")


def test_a_shelf_holds_so_many_and_makes_room_by_what_was_deleted_first(
    boards: Shelf[Board], store: DocumentStore
) -> None:
    """Law: ten thousand boards are refused where they are made, and break nothing."""
    first = boards.add(Board("x", app=OURS), ADA).name
    gone = boards.add(Board("x", app=THEIRS), BOB).name
    boards.delete(gone, 1, BOB)
    for number in range(MOST - 1):
        entry = Entry(OURS, "eve", int(NOW), (Version(1, 9, EVE.id),))
        store.put("boards", f"b{number}", b"x" * 9, entry=entry)

    with pytest.raises(QueryError, match="boards: there are 1,000, as many as are kept"):
        boards.add(Board("y", app=OURS), ADA)
    boards.add(Board("y", app=THEIRS), BOB)
    boards.delete(first, 1, ADA)
    boards.add(Board("y", app=OURS), ADA)

    assert store.record("boards", first) is None
    assert store.record("boards", gone) is not None


PART: Final = 40_000  # bytes of each of two apps, and of what is of all
WIDE: Final = [Panel("y", Query(metrics=["m"], filters=[("is", "d", ["x" * 90] * 9)]))]


@pytest.fixture
def shared(store: DocumentStore) -> Workspace:
    """Documents of two apps within a budget that is soon used up."""
    return Workspace(store, lambda: NOW, File(1), most=3 * PART, apps=2)


def used(store: DocumentStore, app: str) -> int:
    return sum(entry.size for entry in store.index().values() if entry.app == app)


def fill(shared: Workspace) -> tuple[list[str], str]:
    """Make boards until one is refused; return the names of the others, and why."""
    names: list[str] = []
    while True:
        try:
            names.append(shared.boards.add(Board("one more", WIDE, app=OURS), EVE).name)
        except QueryError as error:
            return names, str(error)


def held(store: DocumentStore) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return what the store really holds, each version's bytes, the newest first."""
    found = {}
    for kind, name in store.index():
        older = store.history(kind, name).values()
        sizes = [len(record) for record in (*older, store.record(kind, name) or b"")]
        found[kind, name] = tuple(reversed(sizes))
    return found


def test_an_app_that_fills_its_part_loses_its_older_versions_first_and_then_gets_no_more(
    store: DocumentStore, shared: Workspace
) -> None:
    """Law: what makes room is of the same app, and the index says what is there."""
    theirs = shared.boards.add(Board("theirs", app=THEIRS), BOB).name
    shared.boards.replace(theirs, 1, Board("changed", app=THEIRS), BOB)
    quiet = shared.boards.add(Board("quiet", app=OURS), ADA).name
    shared.boards.replace(quiet, 1, Board("quieter", app=OURS), ADA)
    loud = shared.boards.add(Board("loud", WIDE, app=OURS), EVE).name
    for version in range(1, 60):
        shared.boards.replace(loud, version, Board(f"loud {version}", WIDE, app=OURS), EVE)
        assert used(store, OURS) <= PART

    _, refusal = fill(shared)

    assert f"app {OURS} may keep {PART:,} bytes" in refusal
    assert "hearsay documents" in refusal
    assert shared.boards.document(loud).version == 60
    assert shared.boards.document(quiet).content.title == "quieter"
    assert [board.version for board in shared.boards.history(theirs)] == [1]
    assert used(store, OURS) <= PART
    assert held(store) == {
        place: tuple(version.size for version in entry.versions)
        for place, entry in store.index().items()
    }
    shared.notes.add(Note("2026-09-01", "a note of theirs", app=THEIRS), BOB)


def test_older_versions_of_others_make_room_only_after_all_of_the_author_who_saves(
    store: DocumentStore, shared: Workspace
) -> None:
    """Law: so does what others deleted."""
    quiet = shared.boards.add(Board("quiet", WIDE, app=OURS), ADA).name
    shared.boards.replace(quiet, 1, Board("quieter", app=OURS), ADA)
    gone = shared.boards.add(Board("gone", WIDE, app=OURS), BOB).name
    shared.boards.delete(gone, 1, BOB)
    loud = shared.boards.add(Board("loud", WIDE, app=OURS), EVE).name
    for version in range(1, 60):
        shared.boards.replace(loud, version, Board(f"loud {version}", WIDE, app=OURS), EVE)
    for version in range(2, 60):
        shared.boards.replace(quiet, version, Board(f"quiet {version}", WIDE, app=OURS), EVE)

    assert shared.boards.history(quiet)[-1].content.title == "quiet"
    assert shared.boards.document(gone).deleted
    assert used(store, OURS) <= PART
    fill(shared)
    assert [v.content.title for v in shared.boards.history(quiet)] == []
    assert gone not in store.records("boards")


class Counted(str):
    """An author that counts how often it is compared."""

    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)


def written_by(entry: Entry, kind: type[str]) -> Entry:
    """Return *entry* with authors of *kind*."""
    versions = tuple(each._replace(by=kind(each.by)) for each in entry.versions)
    return structs.replace(entry, versions=versions)


class CountingStore(DocumentStore):
    """Shows authors that count, and keeps them as texts."""

    def index(self) -> dict[Place, Entry]:
        return {place: written_by(entry, Counted) for place, entry in super().index().items()}

    def reduce(self, reductions: Mapping[Place, Reduction]) -> None:
        super().reduce(
            {
                place: Reduction(written_by(was, str), now and written_by(now, str), gone)
                for place, (was, now, gone) in reductions.items()
            }
        )


def test_a_save_looks_at_each_version_a_few_times_however_many_make_room() -> None:
    """Law: of documents with as many bytes, each loses one before any loses a second."""
    store, documents, kept, size = CountingStore(MemoryHashes()), 50, 20, 1_000
    for number in range(documents):
        versions = tuple(Version(kept - place, size, "eve") for place in range(kept))
        entry = Entry(OURS, "eve", 0, versions)
        store.put("boards", f"b{number}", b"1", entry=entry)
    most = 2 * (used(store, OURS) + size)
    saved = Entry(OURS, "eve", 0, (Version(1, 300 * size, Counted("eve")),))
    Counted.comparisons = 0

    Budget(store, most=most).admit(Place("boards", "new"), saved)

    left = [len(entry.versions) for entry in store.index().values()]
    assert sum(left) < documents * kept - 250
    assert max(left) - min(left) <= 1
    assert Counted.comparisons < 10 * documents * kept


def test_what_is_deleted_makes_room_where_an_app_is_full(
    store: DocumentStore, shared: Workspace
) -> None:
    names, _ = fill(shared)
    shared.boards.delete(names[1], 1, EVE)
    shared.boards.delete(names[2], 1, EVE)

    made = shared.boards.add(Board("y", WIDE, app=OURS), ADA).name

    assert made in store.records("boards")
    assert names[1] not in store.records("boards")
    assert names[0] in store.records("boards")


@pytest.mark.parametrize("memory", [0.7, 0.99])
def test_a_store_that_fills_up_takes_no_documents_but_lets_them_be_deleted(
    store: DocumentStore, memory: float
) -> None:
    """Before it refuses any upload."""
    shares = [0.69]
    workspace = Workspace(store, lambda: NOW, File(1), lambda: shares[-1])
    name = workspace.boards.add(Board("x"), ADA).name
    shares.append(memory)

    with pytest.raises(QueryError, match=f"boards: the store, used to {memory:.0%}"):
        workspace.boards.add(Board("y"), ADA)
    with pytest.raises(QueryError, match="is full, as uploads need the rest"):
        workspace.boards.replace(name, 1, Board("y"), ADA)
    workspace.boards.delete(name, 1, ADA)

    assert workspace.boards.documents() == []


def test_a_document_that_is_too_large_is_refused(boards: Shelf[Board]) -> None:
    wide = Query(metrics=["m"], filters=[("is", "d", ["x" * 90] * 60)])
    panels = [Panel("y", wide)] * 20

    with pytest.raises(QueryError, match="65,536 bytes"):
        boards.add(Board("x", panels), ADA)


def test_a_document_is_of_its_app_and_hidden_from_others(catalog: Catalog) -> None:
    ours = catalog.only(lambda app, _: app == OURS)
    one = catalog.only(lambda _, name: name == ALPHA)
    of_both = Board("x", [Panel("y", Query(metrics=[ALPHA, BETA]))])
    of_theirs = Board("x", [Panel("y", Query(metrics=[GAMMA]))])
    of_nothing = Board("x", [Panel("y", Query(metrics=["gone"]))])

    assert app_of((ALPHA, BETA), catalog, catalog) == OURS
    assert app_of((ALPHA, GAMMA), catalog, catalog) == ""
    assert app_of((), ours, catalog) == OURS
    assert app_of((), catalog, catalog) == ""
    assert is_visible(of_both, ours, catalog)
    assert not is_visible(of_both, one, catalog)
    assert not is_visible(of_theirs, ours, catalog)
    assert is_visible(of_nothing, ours, catalog)
    hidden = msgspec.structs.replace(of_nothing, app=THEIRS)
    assert not is_visible(hidden, ours, catalog)
    assert is_visible(hidden, catalog, catalog)


def test_a_chart_shows_the_notes_of_its_metric_its_app_and_of_all(
    store: DocumentStore, catalog: Catalog
) -> None:
    notes = Workspace(store, lambda: NOW, File(1, notes=[Note("2026-09-01", "of all")])).notes
    for note in (
        Note("2026-09-03", "of alpha", metric=ALPHA, app=OURS),
        Note("2026-09-02", "of ours", app=OURS),
        Note("2026-09-04", "of gamma", metric=GAMMA, app=THEIRS),
        Note("2026-09-05", "of gone", metric="gone"),
    ):
        notes.add(note, ADA)

    def on(*metrics: str) -> list[str]:
        return [note.text for note in notes_on(notes.documents(), metrics, catalog)]

    assert on(ALPHA) == ["of all", "of ours", "of alpha"]
    assert on(BETA) == ["of all", "of ours"]
    assert on(GAMMA) == ["of all", "of gamma"]
    assert on("gone") == ["of all"]
    ours = catalog.only(lambda app, _: app == OURS)
    seen = readable(notes.documents(), ours, catalog)
    assert [note.content.text for note in seen] == ["of gone", "of alpha", "of ours", "of all"]
    assert [note.content.text for note in matching(seen, "ALPHA")] == ["of alpha"]


def test_a_note_of_a_day_to_come_is_planned() -> None:
    assert is_planned(Note("2026-09-22", "x"), NOW)
    assert not is_planned(Note("2026-09-21", "x"), NOW)
