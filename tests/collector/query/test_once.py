"""What a page reads once answers as what is read each time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from collector.core.catalog import Catalog
from collector.core.cells import RELAYED, UNKNOWN, Cell, segment_text
from collector.core.errors import DamagedTallyError
from collector.estimation.tally import merge, merge_cells
from collector.query import Answer, Once, plan, read, run
from collector.storage.values import Index
from tests.support.crowds.uploads import NOON, TODAY, registry
from tests.support.store.memory_storage import MemoryStorage

CATALOG = Catalog([registry()])
PAGE = CATALOG.metric("page")
SIZE = PAGE.mechanism.tally_size
QUESTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"verb": "trend", "dimensions": ["time"]},
    {"verb": "actives", "dimensions": ["time"]},
    {"verb": "trend", "dimensions": ["time:week"]},
    {"dimensions": ["platform"]},
    {"filters": [["is", "platform", ["linux"]]]},
    {"filters": [["is_not", "platform", ["linux"]]]},
    {"dimensions": ["time"], "filters": [["is", "platform", ["linux"]]]},
    {"filters": [["is", "@source", ["relayed"]]]},
    {"filters": [["is_not", "@source", ["relayed"]]]},
    {"date_range": "7d"},
    {"verb": "compare", "against": "previous", "date_range": "7d"},
    {"verb": "compare", "against": "year", "date_range": "7d"},
)


class Counting(MemoryStorage):
    """Tallies on two shards, and how often they were read."""

    reads = 0

    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        self.reads += 1
        for cell, vector in super().vectors(index, width):
            whole = np.frombuffer(vector, dtype=">i8")
            half = whole // 2
            yield cell, half.astype(">i8").tobytes()
            yield cell, (whole - half).astype(">i8").tobytes()


def filled(storage: Counting | None = None) -> Counting:
    storage = storage or Counting()
    chance = np.random.default_rng(1)
    for day in range(40):
        for platform in ("linux", "mac", ""):
            source = frozenset({RELAYED}) if day % 3 else UNKNOWN
            segment = segment_text(PAGE, {"platform": platform} if platform else {}, source)
            tally = chance.multinomial(400, np.full(SIZE, 1 / SIZE))
            pairs = [(0, 400), *enumerate(tally.tolist(), 1)]
            storage.put({Cell(PAGE.digest, TODAY - day, segment): pairs})
    return storage


def answered(storage: Any, fields: dict[str, Any]) -> Answer:
    body = json.dumps({"metrics": ["page"], "date_range": "14d", **fields})
    return run(plan(read(body.encode()), CATALOG, NOON), storage)


def test_answers_of_one_page_are_those_of_questions_asked_alone() -> None:
    storage = filled()
    page = Once(storage)

    together = [answered(page, fields) for fields in QUESTIONS]

    assert together == [answered(storage, fields) for fields in QUESTIONS]
    assert len({answer.meta.n for answer in together}) >= 3


def test_questions_of_the_same_days_read_the_store_once() -> None:
    storage = filled()
    page = Once(storage)

    for fields in QUESTIONS[:10]:
        answered(page, fields)

    assert storage.reads == 1


def test_another_page_sees_what_came_since() -> None:
    storage = filled()
    before = answered(Once(storage), {})

    storage.put({Cell(PAGE.digest, TODAY, segment_text(PAGE, {})): [(0, 7), (1, 7)]})

    assert answered(Once(storage), {}).meta.n == before.meta.n + 7


def test_a_damaged_tally_is_refused_on_a_page_as_elsewhere() -> None:
    class Damaged(Counting):
        def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
            for cell, vector in super().vectors(index, width):
                yield cell, vector + bytes(8 * width)

    with pytest.raises(DamagedTallyError):
        answered(Once(filled(Damaged())), {})


@pytest.mark.parametrize("least", [0, -(2**62)])
def test_shards_of_a_cell_are_added_up_exactly(least: int) -> None:
    """Or not at all, where the sum could leave 64 bits."""
    chance = np.random.default_rng(2)
    cells = [Cell(b"m", epoch, "") for epoch in range(5)]
    vectors: list[tuple[Cell, bytes]] = []
    for cell in cells * 3:
        width = int(chance.integers(2, 5))  # trailing zeros may be missing
        counters = chance.integers(least, 2**62, width) if least else chance.integers(0, 9, width)
        vectors.append((cell, counters.astype(">i8").tobytes()))

    together = merge_cells(vectors, 3)

    if least:
        assert together == vectors
        return
    assert [cell for cell, _ in together] == cells
    for cell, vector in together:
        n, tally = merge([part for other, part in vectors if other == cell], 3)
        assert (n, *tally.tolist()) == tuple(np.frombuffer(vector, dtype=">i8").tolist())


def as_bytes(parts: Iterable[tuple[Cell, bytes]]) -> list[bytes]:
    return [vector for _, vector in parts]


def test_a_vector_that_is_not_whole_is_passed_on() -> None:
    cell = Cell(b"m", 1, "")

    assert as_bytes(merge_cells([(cell, b"123"), (cell, bytes(8))], 3)) == [b"123", bytes(8)]
