"""Documents of people on every kind of server: replaced only by who has read them, with history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from collector.core.errors import DamagedIndexError, RefusedByStoreError, StorageFullError
from collector.demo.embedded import EmbeddedStore
from collector.storage.access import INGEST, QUERY, USERS, WORKER
from collector.storage.connection import NO_PROOF, Command, Connection, Proof
from collector.storage.documents import (
    DocumentStore,
    Entry,
    ExclusionStore,
    Place,
    Reduction,
    Version,
)
from collector.storage.hashes import MemoryHashes, RedisHashes
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.store.servers import EVERY_STORE, MEMORY, fake_connection, needs_real
from tests.support.store.users import Users

BOARDS, NOTES = "boards", "notes"


@pytest.fixture
def documents(server_kind: str, keys: Keys, request: pytest.FixtureRequest) -> DocumentStore:
    """A store of documents that holds none."""
    if server_kind == MEMORY:
        return DocumentStore(MemoryHashes())
    request.getfixturevalue("store")  # which is prepared, and deleted at the end
    return DocumentStore(RedisHashes(request.getfixturevalue("server"), keys.prefix))


@EVERY_STORE
def test_a_document_is_replaced_only_by_who_has_read_the_one_of_now(
    documents: DocumentStore,
) -> None:
    assert documents.put(BOARDS, "a", b"first")
    assert not documents.put(BOARDS, "a", b"another")

    assert documents.put(BOARDS, "a", b"second", version=2, read=b"first")
    assert not documents.put(BOARDS, "a", b"third", version=2, read=b"first")
    assert not documents.put(BOARDS, "b", b"second", version=2, read=b"first")

    assert documents.record(BOARDS, "a") == b"second"
    assert documents.records(BOARDS) == {"a": b"second"}
    assert documents.records(NOTES) == {}
    assert documents.history(BOARDS, "a") == {1: b"first"}


@EVERY_STORE
def test_what_is_put_twice_is_there_once(documents: DocumentStore) -> None:
    """Law: a command whose answer was lost may be repeated."""
    for _ in range(2):
        assert documents.put(BOARDS, "a", b"first")
    for _ in range(2):
        assert documents.put(BOARDS, "a", b"second", version=2, read=b"first")

    assert len(documents.records(BOARDS)) == 1
    assert documents.history(BOARDS, "a") == {1: b"first"}


PLACE = Place(BOARDS, "a")
FIRST, SECOND, THIRD = (Entry("shop", who, 1, (Version(1, 100, who),)) for who in "abc")


@EVERY_STORE
def test_who_loses_leaves_the_index_as_the_winner_wrote_it(documents: DocumentStore) -> None:
    """Of a new document, of one that was replaced, and of one that is not there."""
    documents.put(BOARDS, "a", b"1", entry=FIRST)
    assert not documents.put(BOARDS, "a", b"other", entry=THIRD)
    assert documents.put(BOARDS, "a", b"2", version=2, read=b"1", entry=SECOND)
    assert not documents.put(BOARDS, "a", b"3", version=2, read=b"1", entry=THIRD)
    assert not documents.put(BOARDS, "gone", b"3", version=2, read=b"1", entry=THIRD)

    assert documents.index() == {Place(BOARDS, "a"): SECOND}


@EVERY_STORE
def test_an_entry_that_cannot_be_read_is_named_not_passed_over(
    documents: DocumentStore,
) -> None:
    documents._hashes.put("documents:index", {"boards:b": b"{"})

    with pytest.raises(DamagedIndexError, match="documents:index=boards:b: cannot be read"):
        documents.index()


def test_what_was_written_since_is_not_removed_to_make_room(documents: DocumentStore) -> None:
    """Whoever makes room has read an older entry."""
    documents.put(BOARDS, "a", b"1", entry=FIRST)
    documents.put(BOARDS, "a", b"2", version=2, read=b"1", entry=SECOND)

    documents.reduce({PLACE: Reduction(FIRST, None)})
    kept = documents.record(BOARDS, "a")
    documents.reduce({PLACE: Reduction(SECOND, None)})

    assert kept == b"2"
    assert documents.record(BOARDS, "a") is None
    assert documents.index() == {}


@EVERY_STORE
def test_what_was_written_since_keeps_its_versions_and_its_entry(documents: DocumentStore) -> None:
    """Whoever drops versions has read an older entry."""
    documents.put(BOARDS, "a", b"1", entry=FIRST)
    documents.put(BOARDS, "a", b"2", version=2, read=b"1", entry=SECOND)

    documents.reduce({PLACE: Reduction(FIRST, THIRD, (1,))})

    assert documents.history(BOARDS, "a") == {1: b"1"}
    assert documents.index() == {Place(BOARDS, "a"): SECOND}


@EVERY_STORE
def test_versions_are_kept_until_they_are_forgotten(documents: DocumentStore) -> None:
    """Of many documents at once, of which one was written since."""
    was, now = (
        Entry("", "ada", 0, tuple(Version(number, 1, "token:ada") for number in numbers))
        for numbers in ((4, 3, 2, 1), (4, 3, 1))
    )
    names = ["a", "b", "c"]
    for name in names:
        documents.put(BOARDS, name, b"1")
        for number in (2, 3, 4):
            read, record = b"%d" % (number - 1), b"%d" % number
            assert documents.put(
                BOARDS, name, record, version=number, read=read, entry=FIRST if name == "b" else was
            )
        assert list(documents.history(BOARDS, name)) == [1, 2, 3]

    documents.reduce({Place(BOARDS, name): Reduction(was, now, (2,)) for name in names})

    left = [list(documents.history(BOARDS, name)) for name in names]
    assert left == [[1, 3], [1, 2, 3], [1, 3]]
    assert [documents.index()[Place(BOARDS, name)] for name in names] == [now, FIRST, now]


@EVERY_STORE
def test_what_is_removed_leaves_nothing(documents: DocumentStore) -> None:
    documents.put(BOARDS, "a", b"1")
    documents.put(BOARDS, "a", b"2", version=2, read=b"1")
    documents.put(BOARDS, "b", b"1")

    documents.remove(BOARDS, "a")
    documents.remove(BOARDS, "a")

    assert documents.record(BOARDS, "a") is None
    assert documents.history(BOARDS, "a") == {}
    assert len(documents.records(BOARDS)) == 1


@EVERY_STORE
def test_a_secret_is_the_first_that_anybody_offered(documents: DocumentStore) -> None:
    assert documents.secret("links", b"one") == b"one"
    assert documents.secret("links", b"two") == b"one"
    assert documents.secret("others", b"two") == b"two"


class DyingConnection(Connection):
    """Passes on so many round trips, and then none."""

    def __init__(self, inner: Connection, left: int) -> None:
        self._inner, self._left = inner, left

    def call_many(self, commands: Sequence[Command], proof: Proof = NO_PROOF) -> list[Any]:
        if self._left == 0:
            raise ConnectionError
        self._left -= 1
        return self._inner.call_many(commands, proof)


@pytest.mark.parametrize("commands", [0, 1])
def test_a_death_between_history_and_document_loses_nothing(
    store: object, server: Connection, keys: Keys, commands: int
) -> None:
    """Law: a record is in the history before another takes its place, and can be replaced after."""
    whole = DocumentStore(RedisHashes(server, keys.prefix))
    whole.put(BOARDS, "a", b"1")

    with pytest.raises(ConnectionError):
        DocumentStore(RedisHashes(DyingConnection(server, commands), keys.prefix)).put(
            BOARDS, "a", b"2", version=2, read=b"1"
        )

    assert whole.record(BOARDS, "a") == b"1"
    assert whole.put(BOARDS, "a", b"3", version=2, read=b"1")
    assert whole.history(BOARDS, "a") == {1: b"1"}


class CountingConnection(Connection):
    """Counts round trips."""

    def __init__(self, inner: Connection) -> None:
        self._inner, self.trips = inner, 0

    def call_many(self, commands: Sequence[Command], proof: Proof = NO_PROOF) -> list[Any]:
        self.trips += 1
        return self._inner.call_many(commands, proof)


def test_room_is_made_in_two_round_trips_however_many_documents_make_it(
    store: object, server: Connection, keys: Keys
) -> None:
    counting = CountingConnection(server)
    documents = DocumentStore(RedisHashes(counting, keys.prefix))
    for number in range(30):
        documents.put(BOARDS, f"b{number}", b"1", entry=FIRST)
    counting.trips = 0

    documents.reduce(
        {
            Place(BOARDS, f"b{number}"): Reduction(FIRST, SECOND if number % 2 else None, (1,))
            for number in range(30)
        }
    )
    trips = counting.trips

    assert trips == 2
    assert documents.index() == {Place(BOARDS, f"b{n}"): SECOND for n in range(1, 30, 2)}


class FullConnection(Connection):
    """Refuses what may not run out of memory, as a store that is full does."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner

    def call_many(self, commands: Sequence[Command], proof: Proof = NO_PROOF) -> list[Any]:
        if any(command[0] == "HSET" for command in commands):
            raise StorageFullError("store: is out of memory")
        return self._inner.call_many(commands, proof)


def test_a_change_that_a_full_store_refuses_changes_nothing(server: Connection, keys: Keys) -> None:
    """Law: least of all the index, by which a document that is deleted makes room for others."""
    whole = DocumentStore(RedisHashes(server, keys.prefix))
    whole.put(BOARDS, "a", b"1", entry=FIRST)

    with pytest.raises(StorageFullError):
        DocumentStore(RedisHashes(FullConnection(server), keys.prefix)).put(
            BOARDS, "a", b"2", version=2, read=b"1", entry=SECOND
        )

    assert whole.record(BOARDS, "a") == b"1"
    assert whole.index() == {Place(BOARDS, "a"): FIRST}


def test_names_that_are_not_ours_are_passed_over() -> None:
    server = fake_connection()
    server.call("HSET", "p:documents:boards", b"\xff", "x", "a", "1")

    assert DocumentStore(RedisHashes(server, "p")).records(BOARDS) == {"a": b"1"}


@pytest.mark.real
@needs_real
def test_who_serves_pages_keeps_documents_and_no_other_process_reads_them(
    real_store: EmbeddedStore,
) -> None:
    users = Users(real_store.url)
    try:
        users.storage("init").prepare()
        documents = DocumentStore(RedisHashes(users.connection(INGEST), users.keys.prefix))
        assert documents.put(BOARDS, "a", b"1")
        assert documents.put(BOARDS, "a", b"2", version=2, read=b"1")
        assert documents.secret("links", b"s") == b"s"
        assert len(documents.records(BOARDS)) == len(documents.records(BOARDS)) == 1
        assert documents.put(BOARDS, "a", b"3", version=3, read=b"2", entry=FIRST)
        documents.reduce({PLACE: Reduction(FIRST, SECOND, (1, 2))})
        assert documents.history(BOARDS, "a") == {}
        documents.remove(BOARDS, "a")
        for user in (WORKER, QUERY):
            other = DocumentStore(RedisHashes(users.connection(user), users.keys.prefix))
            with pytest.raises(RefusedByStoreError, match="NOPERM"):
                other.records(BOARDS)
            with pytest.raises(RefusedByStoreError, match="NOPERM"):
                other.secret("links", b"s")
        ingest = users.connection(INGEST)
        credentials = f"{users.keys.prefix}:credentials"
        with pytest.raises(RefusedByStoreError, match="NOPERM"):
            ingest.call("FCALL", "hearsay_replace", 1, credentials, "a", "b", "c")
        assert set(USERS) >= {INGEST, WORKER, QUERY}
    finally:
        users.close()


def test_an_exclusion_is_read_with_the_tallies_and_replaced_by_who_read_it(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    records = ExclusionStore(RedisHashes(server, keys.prefix))

    assert records.put("a", b"1")
    assert records.put("a", b"1")  # a command may be repeated
    assert not records.put("a", b"2")
    assert records.put("a", b"2", read=b"1")
    assert not records.put("a", b"3", read=b"1")
    assert store.exclusions() == {"a": b"2"}
    store.destroy()
    assert store.exclusions() == {}
