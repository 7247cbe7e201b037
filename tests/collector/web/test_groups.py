"""Uploads are appended in groups, and each gets its own answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

import pytest

from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn
from collector.core.errors import (
    ManyTalliesError,
    RefusedByStoreError,
    StorageFullError,
    StorageUnavailableError,
)
from collector.intake.tally_quota import Beginning
from collector.storage.values import SealedUpload
from collector.web.ingest.groups import MAX_ASKED, MAX_GROUP_SIZE, Groups, ServerGroups, store
from tests.support.patience import PATIENCE
from tests.support.store.memory_storage import MemoryStorage


def sealed(number: int, size: int = 1) -> SealedUpload:
    return SealedUpload(number.to_bytes(16, "big"), 20_000, bytes(size), 1)


class Slow(MemoryStorage):
    """Notes the groups, and holds the first until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[int] = []
        self.go = threading.Event()

    def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
        self.groups.append(len(uploads))
        assert self.go.wait(PATIENCE)
        return super().append_many(uploads)


class OneBadShard(MemoryStorage):
    """Refuses a group that holds upload 1, with *error*."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error, self.calls = error, 0

    def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
        self.calls += 1
        if any(upload.upload_id == sealed(1).upload_id for upload in uploads):
            raise self.error
        return super().append_many(uploads)


class Failing(MemoryStorage):
    """Fails call by call as *errors* say; beyond them it stores."""

    def __init__(self, *errors: Exception | None) -> None:
        super().__init__()
        self.errors, self.calls = errors, 0

    def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
        self.calls += 1
        error = dict(enumerate(self.errors, start=1)).get(self.calls)
        if error:
            raise error
        return super().append_many(uploads)


async def append_all(
    storage: Slow, uploads: Sequence[SealedUpload], largest: int = 256
) -> list[bool | BaseException]:
    """Append the first upload, and the others once that is on its way."""
    groups = Groups(storage, asyncio.get_running_loop(), largest)
    waiting = [asyncio.ensure_future(groups.append(upload)) for upload in uploads[:1]]
    while not storage.groups:
        await asyncio.sleep(0)
    waiting += [asyncio.ensure_future(groups.append(upload)) for upload in uploads[1:]]
    await asyncio.sleep(0)
    storage.go.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    groups.close()
    return found


@pytest.mark.parametrize(
    ("sizes", "largest", "groups"),
    [
        ([1] * 9, 256, [1, 8]),
        ([1] * 9, 3, [1, 3, 3, 2]),
        ([1, MAX_GROUP_SIZE, MAX_GROUP_SIZE], 256, [1, 1, 1]),
    ],
    ids=["all that come", "at most so many", "at most so many bytes"],
)
def test_uploads_that_come_while_one_is_stored_go_together(
    sizes: list[int], largest: int, groups: list[int]
) -> None:
    storage, uploads = Slow(), [sealed(i, size) for i, size in enumerate(sizes)]

    found = asyncio.run(append_all(storage, uploads, largest))

    assert found == [True] * len(uploads)
    assert storage.groups == groups


def test_each_upload_of_a_group_is_first_or_duplicate_on_its_own() -> None:
    found = asyncio.run(append_all(Slow(), [sealed(i) for i in (0, 1, 2, 1, 0)]))

    assert found == [True, True, True, False, False]


def test_a_count_that_fails_costs_no_upload_its_answer_and_no_other_its_count() -> None:
    def broken(first: bool) -> None:
        raise ValueError

    async def append(storage: Slow) -> tuple[list[bool], list[object]]:
        loop, errors = asyncio.get_running_loop(), list[object]()
        loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
        groups = Groups(storage, loop)
        found = await asyncio.gather(*(groups.append(sealed(i), None, broken) for i in range(3)))
        groups.close()
        return found, errors

    storage = Slow()
    storage.go.set()
    found, errors = asyncio.run(append(storage))

    assert found == [True] * 3
    assert [type(error) for error in errors] == [ValueError] * 3  # and no other its own


def test_a_store_that_is_away_refuses_a_whole_group_after_one_try() -> None:
    storage = OneBadShard(StorageUnavailableError("store: away"))

    found = store(storage, [sealed(i) for i in range(3)])

    assert found == [storage.error] * 3
    assert storage.calls == 1


def test_all_that_wait_for_a_store_that_hangs_fail_with_the_first_group() -> None:
    """Or the next group would begin to wait when the patience of the first has ended."""
    error = StorageUnavailableError("store: no answer")

    class Hanging(Slow):
        def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
            super().append_many(uploads)
            raise error

    storage = Hanging()

    found = asyncio.run(append_all(storage, [sealed(i) for i in range(9)], largest=2))

    assert found == [error] * 9
    assert storage.groups == [1]


def test_a_store_that_goes_away_while_uploads_are_tried_alone_is_asked_no_more() -> None:
    away = StorageUnavailableError("store: away")
    storage = Failing(StorageFullError("store: full"), None, *[away] * 8)

    found = store(storage, [sealed(i) for i in range(9)])

    assert found == [True, *[away] * 8]
    assert storage.calls == 3


@pytest.mark.parametrize("error", [StorageFullError("store: full"), RefusedByStoreError("ERR")])
def test_an_upload_that_is_refused_does_not_refuse_its_neighbours(error: Exception) -> None:
    storage = OneBadShard(error)

    found = store(storage, [sealed(i) for i in range(3)])

    assert found == [True, error, True]


def test_a_failure_that_nobody_expected_is_told_and_the_next_upload_is_stored() -> None:
    """Law: the thread that appends outlives every failure; without it all would wait for ever."""
    storage = Failing(KeyError("ours"))

    async def ask() -> list[bool | BaseException]:
        groups = Groups(storage, asyncio.get_running_loop())
        first = await asyncio.gather(groups.append(sealed(1)), return_exceptions=True)
        second = await asyncio.wait_for(groups.append(sealed(2)), PATIENCE)
        groups.close()
        return [*first, second]

    failure, stored = asyncio.run(ask())

    assert isinstance(failure, KeyError)
    assert stored is True


@pytest.mark.parametrize("hangs", ["tallies", "append"])
def test_all_that_waited_beyond_the_deadline_are_refused_at_once(hangs: str) -> None:
    """Those of the group on its way, and those that wait for it; what comes later is stored.

    What is stored after all is counted.
    """
    storage, go, counted = Slow(), threading.Event(), list[bool]()
    beginning = Beginning(b"key", bytes(16), []) if hangs == "tallies" else None
    asked: list[int] = []

    def refusals(beginnings: Sequence[Beginning]) -> list[None]:
        asked.append(len(beginnings))
        assert go.wait(PATIENCE)
        return [None] * len(beginnings)

    async def ask() -> tuple[list[bool | BaseException], bool]:
        loop = asyncio.get_running_loop()
        groups = Groups(storage, loop, largest=2, refusals=refusals)
        waiting = [
            asyncio.ensure_future(groups.append(sealed(i), beginning, counted.append))
            for i in range(5)
        ]
        while not (asked or storage.groups):
            await asyncio.sleep(0)
        groups.give_up(loop.time() + 1)
        early = await asyncio.gather(*waiting, return_exceptions=True)
        go.set()
        storage.go.set()
        late = await groups.append(sealed(9))
        groups.close()
        return early, late

    early, late = asyncio.run(ask())

    assert [type(outcome) for outcome in early] == [StorageUnavailableError] * 5
    assert late is True
    assert storage.groups == ([1] if hangs == "tallies" else [2, 1])
    assert counted == ([] if hangs == "tallies" else [True] * 2)


class OfServers(Slow):
    """Keeps each upload on the server of its number; server 1 hangs until it is told to go on."""

    def server_of(self, upload_id: bytes) -> str:
        return str(upload_id[15])

    def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
        if self.server_of(uploads[0].upload_id) != "1":
            return MemoryStorage.append_many(self, uploads)
        return super().append_many(uploads)


def test_a_server_that_hangs_holds_up_no_uploads_of_another() -> None:
    """Each has groups of its own; those that wait for it are given up alone."""
    storage = OfServers()

    async def ask() -> list[bool | BaseException]:
        loop = asyncio.get_running_loop()
        groups = ServerGroups(storage, loop, lambda beginnings: [None] * len(beginnings))
        hanging = asyncio.ensure_future(groups.append(sealed(1), None, lambda first: None))
        while not storage.groups:
            await asyncio.sleep(0)
        stored = await asyncio.wait_for(
            groups.append(sealed(2), None, lambda first: None), PATIENCE
        )
        groups.give_up(loop.time() + 1)
        [given_up] = await asyncio.gather(hanging, return_exceptions=True)
        storage.go.set()
        groups.close()
        return [stored, given_up]

    stored, given_up = asyncio.run(ask())

    assert stored is True
    assert isinstance(given_up, StorageUnavailableError)


@pytest.mark.parametrize(
    ("numbers", "ended"),
    [
        ([256 * i + server for i in range(10) for server in (10, 11, 12)], 0),  # one after another
        (range(10, 100), 25),  # addresses that it no longer has
    ],
)
def test_the_latest_servers_alone_keep_their_threads(numbers: Sequence[int], ended: int) -> None:
    storage = OfServers()
    storage.go.set()
    earlier = {*threading.enumerate()}

    async def ask() -> list[bool]:
        loop = asyncio.get_running_loop()
        groups = ServerGroups(storage, loop, lambda beginnings: [None] * len(beginnings))
        begun: list[threading.Thread] = []
        for number in numbers:
            assert await groups.append(sealed(number), None, lambda first: None)
            begun += {*threading.enumerate()} - earlier - {*begun}
        limit = time.monotonic() + PATIENCE
        for thread in begun[:ended]:
            thread.join(max(0.0, limit - time.monotonic()))
        alive = [thread.is_alive() for thread in begun]
        groups.close()
        return alive

    alive = asyncio.run(ask())

    assert alive == [
        *[False] * ended,
        *[True] * (len({number % 256 for number in numbers}) - ended),
    ]


def test_what_many_uploads_begin_is_asked_for_at_once_and_each_is_refused_on_its_own() -> None:
    storage, batches = Slow(), []

    def refusals(beginnings: Sequence[Beginning]) -> list[Exception | None]:
        batches.append(len(beginnings))
        return [ManyTalliesError("no") if one.key == b"many" else None for one in beginnings]

    async def ask() -> list[bool | BaseException]:
        groups = Groups(storage, asyncio.get_running_loop(), refusals=refusals)
        storage.go.set()
        keys = None, b"few", b"many", b"few", None
        uploads = [
            groups.append(sealed(i), Beginning(key, bytes(16), []) if key else None)
            for i, key in enumerate(keys)
        ]
        found = await asyncio.gather(*uploads, return_exceptions=True)
        groups.close()
        return found

    found = asyncio.run(ask())

    assert batches == [3]
    assert [type(outcome) for outcome in found] == [bool, bool, ManyTalliesError, bool, bool]
    assert storage.groups == [4]


def test_uploads_that_begin_many_tallies_hold_up_no_others() -> None:
    """One key that is refused again and again would make all wait for what it asks."""
    column = AcceptedColumn(Cell(b"metric", 1, ""), b"a")
    asked: list[int] = []

    def refusals(beginnings: Sequence[Beginning]) -> list[ManyTalliesError | None]:
        asked.append(sum(len(beginning.columns) for beginning in beginnings))
        return [None] * len(beginnings)

    async def act() -> list[bool]:
        groups = Groups(MemoryStorage(), asyncio.get_running_loop(), refusals=refusals)
        columns = [column] * (MAX_ASKED // 2)
        tasks = [
            groups.append(
                sealed(n), Beginning(b"k", sealed(n).upload_id, columns) if n % 2 else None
            )
            for n in range(20)
        ]
        firsts = await asyncio.gather(*tasks)
        groups.close()
        return firsts

    assert asyncio.run(act()) == [True] * 20
    assert asked == [MAX_ASKED] * 5
