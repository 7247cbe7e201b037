"""What a page reads once answers as what is read each time."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import BEYOND, RELAYED, UNKNOWN, Cell, segment_text
from collector.core.errors import DamagedTallyError, StorageUnavailableError
from collector.core.exclusions import Exclusion, to_json
from collector.core.remarks import Code, remark
from collector.estimation.tally import merge, merge_cells
from collector.query import Answer, Plan, Reader, answer, plan, read, run
from collector.query.cache import Cache, packed
from collector.query.plan import Reading
from collector.storage.values import Index
from tests.support.crowds.uploads import NOON, TODAY, registry, registry_text
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


LATEST = Cell(PAGE.digest, TODAY, segment_text(PAGE, {"platform": "linux"}))
OLD = Cell(PAGE.digest, TODAY - 9, segment_text(PAGE, {"platform": "mac"}))


def one_more(storage: MemoryStorage) -> None:
    storage.put({LATEST: [(0, 1), (1, 1)]})


def one_of_no_value_seen(storage: MemoryStorage) -> None:
    storage.put({LATEST: [(0, 1)]})


def one_after_the_last_class(storage: MemoryStorage) -> None:
    storage.put({OLD._replace(lateness=BEYOND): [(0, 1), (2, 1)]})


def moved_by_refolding(storage: MemoryStorage) -> None:
    storage.tallied[OLD][1] -= 1
    storage.tallied[OLD][2] += 1


def pruned(storage: MemoryStorage) -> None:
    storage.marks[PAGE.digest] = TODAY - 5
    for cell in [cell for cell in storage.tallied if cell.epoch < TODAY - 5]:
        del storage.tallied[cell]


def restored(storage: MemoryStorage) -> None:
    storage.marks.clear()
    storage.put({OLD: [(0, 300), (1, 100), (2, 100), (3, 100)]})


CHANGES: tuple[Callable[[MemoryStorage], None], ...] = (
    one_more,
    one_of_no_value_seen,
    one_after_the_last_class,
    moved_by_refolding,
    pruned,
    restored,
)


class Counting(MemoryStorage):
    """Tallies on two shards, and how often they were read."""

    reads = 0
    marks_read = 0

    def pruned(self, metrics: Sequence[bytes]) -> dict[bytes, int]:
        self.marks_read += 1
        return super().pruned(metrics)

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


def answered(reader: Reader, fields: dict[str, Any], catalog: Catalog = CATALOG) -> Answer:
    body = json.dumps({"metrics": ["page"], "date_range": "14d", **fields})
    return answer(plan(read(body.encode()), catalog, NOON), reader)


def test_answers_of_one_page_are_those_of_questions_asked_alone() -> None:
    storage = filled()
    page = Reader(storage, answers=Cache())

    together = [answered(page, fields) for fields in QUESTIONS]

    assert together == [answered(Reader(storage), fields) for fields in QUESTIONS]
    assert len({each.meta.n for each in together}) >= 3


def test_questions_of_the_same_days_read_the_store_once() -> None:
    """And look for pruned epochs before and after the reading."""
    storage = filled()
    page = Reader(storage, answers=Cache())

    for fields in QUESTIONS[:10]:
        answered(page, fields)

    assert (storage.reads, storage.marks_read) == (1, 2)


@pytest.mark.parametrize("kept", [None, Cache[Any]()])
def test_what_is_pruned_while_a_page_reads_is_never_answered(kept: Cache[Any] | None) -> None:
    """Neither the first time nor where the same tallies were answered before."""

    class Pruning(Counting):
        is_pruning = False

        def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
            yield from super().vectors(index, width)
            if self.is_pruning:
                self.marks[PAGE.digest] = TODAY - 3

    storage = Pruning()
    filled(storage)
    answered(Reader(storage, answers=kept), {})
    storage.is_pruning = True

    with pytest.raises(StorageUnavailableError, match="is being pruned"):
        answered(Reader(storage, answers=kept), {})


@pytest.mark.parametrize("kept", [None, Cache[Any]()])
@pytest.mark.parametrize(("deleted", "is_told"), [(True, True), (False, False)])
def test_a_key_that_is_deleted_while_a_page_reads_is_never_half_in_an_answer(
    kept: Cache[Any] | None, deleted: bool, is_told: bool
) -> None:
    """What is only excluded then is counted in full, by this page."""
    key = Exclusion(
        id="e1",
        by="key",
        name="0123456789ab",
        first="2020-01-01",
        last="2030-01-01",
        author="ops",
        because="hearsay prune --key",
        at=1,
        deleted=deleted,
    )

    class Pruning(Counting):
        is_pruning = False

        def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
            yield from super().vectors(index, width)
            if self.is_pruning:
                self.excluded = {key.id: to_json(key)}

    storage = Pruning()
    filled(storage)
    answered(Reader(storage, answers=kept), {})
    storage.is_pruning = True

    with (
        pytest.raises(StorageUnavailableError, match="is being pruned")
        if is_told
        else nullcontext()
    ):
        answered(Reader(storage, answers=kept), {})


def test_another_page_sees_what_came_since() -> None:
    storage = filled()
    before = answered(Reader(storage, answers=Cache()), {})

    storage.put({Cell(PAGE.digest, TODAY, segment_text(PAGE, {})): [(0, 7), (1, 7)]})

    assert answered(Reader(storage, answers=Cache()), {}).meta.n == before.meta.n + 7


def test_a_damaged_tally_is_refused_on_a_page_as_elsewhere() -> None:
    class Damaged(Counting):
        def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
            for cell, vector in super().vectors(index, width):
                yield cell, vector + bytes(8 * width)

    with pytest.raises(DamagedTallyError):
        answered(Reader(filled(Damaged())), {})


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


class BlindToCounts(Reader):
    """A planted bug: answers are kept by which tallies there are, not by what is in them."""

    def _contents_of(self, plan: Plan, reading: Reading, metric: Metric) -> bytes | None:
        index = self.index(metric.digest, reading.epochs, reading.version)
        return packed(index.cells)


class BlindToCells(Reader):
    """Another: by the sum of all tallies, wherever they are."""

    def _contents_of(self, plan: Plan, reading: Reading, metric: Metric) -> bytes | None:
        index = self.index(metric.digest, reading.epochs, reading.version)
        vectors = self.vectors(index, SIZE + 1)
        return packed(merge([vector for _, vector in vectors], SIZE)[1].tolist())


def is_fresh(make: type[Reader], fields: dict[str, Any]) -> bool:
    """Return whether a page that keeps answers says what the store says, after each change."""
    storage, kept = filled(), Cache[Any]()
    for change in CHANGES:
        answered(make(storage, answers=kept), fields)
        change(storage)
        if answered(make(storage, answers=kept), fields) != answered(Reader(storage), fields):
            return False
    return True


@pytest.mark.parametrize("fields", QUESTIONS)
def test_a_kept_answer_is_that_of_the_tallies_as_they_are_now(fields: dict[str, Any]) -> None:
    assert is_fresh(Reader, fields)


@pytest.mark.parametrize("planted", [BlindToCounts, BlindToCells])
def test_an_answer_that_is_kept_by_less_than_its_tallies_is_caught(planted: type[Reader]) -> None:
    assert not is_fresh(planted, {})


def test_a_question_asked_again_of_the_same_tallies_is_answered_without_work() -> None:
    """The store is read all the same: nobody else knows that they are the same."""
    storage, kept = filled(), Cache[Any]()
    storage.marks[PAGE.digest] = TODAY - 10

    first, second = (
        [answered(Reader(storage, answers=kept), q) for q in QUESTIONS] for _ in range(2)
    )

    assert all(again is before for again, before in zip(second, first, strict=True))
    assert storage.reads == 2 * len(QUESTIONS)


def test_what_one_page_keeps_answers_no_other_question_days_or_check() -> None:
    storage, kept = filled(), Cache[Any]()
    several = [*QUESTIONS, {"alpha": 0.1}, {"date_range": "7d"}]

    for _ in range(2):
        for fields in several:
            assert answered(Reader(storage, answers=kept), fields) == answered(
                Reader(storage), fields
            )
    resolved = plan(read(b'{"metrics":["page"]}'), CATALOG, NOON)
    checked, unchecked = (
        answer(resolved, Reader(storage, answers=kept), is_checked=c) for c in (True, False)
    )

    assert checked is not unchecked


def test_whatever_a_plan_says_makes_another_answer() -> None:
    """Also what is not in its question: a part of the plan, or a fact that it learnt."""
    storage, kept = filled(), Cache[Any]()
    usual = plan(read(b'{"metrics":["page"]}'), CATALOG, NOON)
    relayed = replace(usual, sources=((True, frozenset({RELAYED})),))
    noted = replace(usual, notes=(remark(Code.NOTE, text="something is missing"),))

    answers = [answer(each, Reader(storage, answers=kept)) for each in (usual, relayed, noted)]

    assert answers == [run(each, storage) for each in (usual, relayed, noted)]
    assert answers[1].meta.n < answers[0].meta.n
    assert noted.notes[0] in answers[2].meta.warnings


def test_metrics_of_one_name_in_two_apps_share_no_answer() -> None:
    separate = 'app = { name = "other", separate = true }'
    other = Registry.from_text(registry_text().replace('app = "test"', separate))
    catalog, storage, kept = Catalog([registry(), other]), filled(), Cache[Any]()
    for cell, counts in list(storage.tallied.items()):
        storage.put({cell._replace(metric=other.metric("page").digest): list(counts.items())})

    mine, its = (
        answered(Reader(storage, answers=kept), {"metrics": [name]}, catalog)
        for name in ("test/page", "other/page")
    )

    assert mine.meta.n == its.meta.n > 0
    assert [mine.meta.metrics[0].name, its.meta.metrics[0].name] == ["test/page", "other/page"]
    assert mine.meta.metrics[0].digest != its.meta.metrics[0].digest


def test_what_a_registry_says_beside_the_digest_of_a_metric_is_heeded() -> None:
    storage, kept = filled(), Cache[Any]()
    strict = Catalog([registry(min_reports=10**6)])

    plenty = answered(Reader(storage, answers=kept), {})
    refused = answered(Reader(storage, answers=kept), {}, strict)

    assert strict.metric("page").digest == PAGE.digest
    assert plenty.rows[0].value is not None
    assert refused.rows[0].value is None


def test_a_question_with_a_number_that_cannot_be_told_is_answered_and_not_kept() -> None:
    storage, kept = filled(), Cache[Any]()
    odd = {"verb": "trend", "dimensions": ["time"], "order_by": [["n", "asc"]]}
    resolved = plan(read(json.dumps({"metrics": ["page"], **odd}).encode()), CATALOG, NOON)

    assert [packed(value) for value in (10**30, "\ud800", object(), lambda: 0)] == [None] * 4
    assert answer(replace(resolved, notes=(10**30,)), Reader(storage, answers=kept)).rows  # type: ignore[arg-type]
    assert kept.size == 0


@pytest.mark.parametrize("fields", QUESTIONS)
def test_an_answer_takes_no_more_memory_than_it_is_counted_with(fields: dict[str, Any]) -> None:
    storage, kept = filled(), Cache[Any]()
    answered(Reader(storage, answers=kept), fields)
    counted = kept.size
    answered(Reader(storage), fields)  # what is worked out once for all answers is no part
    sizes = []
    for _ in range(3):  # other threads, and caches of the interpreter, can only add to one
        tracemalloc.start()
        reply = answered(Reader(storage), fields)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert reply.meta.warnings or reply.rows

    assert 1_000 < min(sizes) <= counted


def test_however_many_questions_are_asked_no_more_is_kept_than_the_limit() -> None:
    """As one token alone may ask them, each with another level."""
    storage, kept = filled(), Cache[Any](most=100_000)
    sizes = []

    for number in range(1, 40):
        answered(Reader(storage, answers=kept), {"alpha": number / 1_000})
        sizes.append(kept.size)

    assert max(sizes) <= 100_000
    assert sizes[-1] > 50_000
