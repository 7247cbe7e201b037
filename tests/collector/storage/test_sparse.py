"""A wide tally takes memory for what was reported, and gives the same integers in each form."""

from __future__ import annotations

import random
import secrets
from typing import Final

import pytest

from collector.core.cells import Cell
from collector.core.errors import TallyOverflowError
from collector.estimation.tally import merge
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.tally_reader import PAGE
from collector.worker.fsck import fsck
from tests.support.store.servers import RecordingConnection
from tests.support.store.stored import DAY, METRIC, NOBODY_LEFT_IT, tallies

WIDE: Final = 100_836  # cells: strings of up to twelve characters
CELL: Final = Cell(METRIC, 0, "")


def fold(store: RedisStorage, deltas: dict[int, int], cell: Cell = CELL, width: int = WIDE) -> None:
    """Fold one upload into shard 0 as a worker does: sorted, with the last cell."""
    store.append(bytes(8) + secrets.token_bytes(8), DAY, b"entry", deltas.get(0, 0))
    [claimed] = store.claim(0, "any", 1, NOBODY_LEFT_IT)
    pairs = sorted({width: 0, **deltas}.items())
    assert store.fold(0, [claimed.id], {cell: pairs}) == ()


def form(server: Connection, keys: Keys, cell: Cell = CELL) -> str:
    return str(server.call("TYPE", keys.tally(0, cell)).decode())


def held(store: RedisStorage, width: int = WIDE) -> dict[int, int]:
    n, tally = merge(tallies(store, METRIC, [0]).get(CELL, []), width)
    return {i: v for i, v in enumerate([n, *tally.tolist()]) if v}


def test_a_tally_gives_the_same_integers_in_each_form(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """Negative counts, the first and the last cell, before and after it becomes a string."""
    chance, expected, forms = random.Random(7), dict[int, int](), []
    for filled in (1, 3, 40, 1_500, 40):
        deltas = {1 + chance.randrange(8_192): chance.choice([-1, 5]) for _ in range(filled)}
        deltas |= {0: filled, 8_192: -filled}
        fold(store, deltas, width=8_192)
        for index, delta in deltas.items():
            expected[index] = expected.get(index, 0) + delta
        forms.append(form(server, keys))

        assert held(store, 8_192) == {i: v for i, v in expected.items() if v}

    assert forms == ["hash", "hash", "hash", "string", "string"]
    assert list(fsck(RedisInspection(server, keys), {})) == []


def test_a_narrow_tally_is_a_string_at_once(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    fold(store, {0: 1, 5: 1}, width=100)

    assert form(server, keys) == "string"


def test_an_upload_of_one_report_takes_no_more_memory_than_that(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str
) -> None:
    """116 such uploads took 215 MB."""
    if server_kind == "fake":
        pytest.skip("does not count its memory")
    cells = [Cell(METRIC, epoch, "", lateness) for epoch in range(29) for lateness in range(4)]

    for cell in cells:
        fold(store, {0: 1, WIDE: 1}, cell)

    sizes = [server.call("MEMORY", "USAGE", keys.tally(0, cell)) for cell in cells]
    assert len(cells) == 116
    assert max(sizes) < 400
    assert sum(one.reports for one in RedisInspection(server, keys).sizes()) == 116


def test_a_sparse_counter_near_the_end_of_its_range_refuses_the_whole_fold(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    for _ in range(2):
        fold(store, {0: 1, 70_000: 2**61})
    store.append(bytes(8) + secrets.token_bytes(8), DAY, b"entry", 1)
    [claimed] = store.claim(0, "any", 1, NOBODY_LEFT_IT)
    other = Cell(METRIC, 1, "")

    with pytest.raises(TallyOverflowError):
        store.fold(0, [claimed.id], {other: [(0, 1)], CELL: [(0, 1), (70_000, 1), (WIDE, 0)]})

    assert form(server, keys) == "hash"
    assert held(store) == {0: 2, 70_000: 2**62}
    assert (form(server, keys, other), store.backlog()) == ("none", 1)


def test_sparse_tallies_are_pruned_and_counted(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    fold(store, {0: 2**60 + 1, 70_000: 1})
    desk = RedisInspection(server, keys)
    desk.mark(METRIC, 1)

    deleted = desk.prune(0, METRIC, 0, ["0:"])

    assert (deleted, form(server, keys)) == (1, "none")
    assert store.counters()[0].pruned_reports == 2**60 + 1


def test_wide_tallies_are_read_a_page_at_a_time(server: Connection, keys: Keys) -> None:
    """What waits to be sent counts as the store's memory, and a full store takes no uploads."""
    recording = RecordingConnection(server)
    store = RedisStorage(recording, keys, "volatile")
    store.prepare()
    cells = [Cell(METRIC, epoch, "") for epoch in range(9)]
    for cell in cells:
        server.call("SETRANGE", keys.tally(0, cell), WIDE * 8, bytes(8))
        server.call("SADD", keys.cells(0, METRIC, cell.epoch), "0:")
    index = store.index(METRIC, range(9))
    recording.commands.clear()

    sizes = [len(vector) for _, vector in store.vectors(index, WIDE + 1)]

    asked = [len(command) - 1 for command in recording.commands if command[0] == "MGET"]
    assert (index.tallies, sizes) == (9, [8 * (WIDE + 1)] * 9)
    assert sum(asked) == 9
    assert max(asked) * 8 * (WIDE + 1) <= PAGE
    RedisStorage(server, keys, "volatile").destroy()
