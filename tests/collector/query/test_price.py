"""A question is priced before it reads, and few large ones are read at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, Final

import pytest

from client_sdk.registry.contract import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.errors import BusyError, QueryError, StorageUnavailableError
from collector.query import gate as questions
from collector.query import plan, run
from collector.query.gate import Gate, price_of, require_affordable, require_few_indexes
from collector.query.reader import Reader
from collector.query.request import read
from collector.storage.values import Index
from tests.support.crowds.uploads import NOON, TODAY
from tests.support.device.registries import STRING, file_with
from tests.support.enumeration.populations import reported
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.memory_storage import MemoryStorage

CATALOG: Final = Catalog([Registry.from_text(file_with(STRING, epsilon='"4"', every='"1d"'))])
TEXT: Final = CATALOG.metric("m")
WINDOW: Final = [(date(1970, 1, 1) + timedelta(TODAY - ago)).isoformat() for ago in (14, 1)]
LARGE = Index((Cell(bytes(6), 0, ""),), questions.LARGE, {})
SMALL = Index((Cell(bytes(6), 0, ""),), 1, {})


class Slow(MemoryStorage):
    """Yields nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.reading, self.most = 0, 0
        self.go_on = threading.Event()
        self.begun = threading.Semaphore(0)
        self._lock = threading.Lock()

    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        with self._lock:
            self.reading += 1
            self.most = max(self.most, self.reading)
        self.begun.release()
        self.go_on.wait(PATIENCE)
        with self._lock:
            self.reading -= 1
        yield from ()


def read_one(storage: MemoryStorage, gate: Gate, index: Index = LARGE) -> None:
    reader = Reader(storage, gate)
    with reader.question():
        list(reader.vectors(index, 1))


def test_two_large_questions_are_read_at_once_a_few_wait_and_others_are_refused() -> None:
    """And small ones are answered meanwhile."""
    slow = Slow()
    gate, refused = Gate(), list[Exception]()

    def ask() -> None:
        try:
            read_one(slow, gate)
        except BusyError as error:
            refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(questions.AT_ONCE + questions.QUEUE)]
    for thread in threads:
        thread.start()
    for _ in range(questions.AT_ONCE):
        assert slow.begun.acquire(timeout=PATIENCE)
    wait_for(lambda: gate.waiting == questions.QUEUE)
    with pytest.raises(BusyError, match="ask again later"):
        read_one(slow, gate)
    small = threading.Thread(target=lambda: read_one(slow, gate, SMALL))
    small.start()
    assert slow.begun.acquire(timeout=PATIENCE)
    slow.go_on.set()
    for thread in (*threads, small):
        thread.join(PATIENCE)

    assert refused == []
    assert slow.most == questions.AT_ONCE + 1
    assert (gate.waiting, gate.reading, slow.reading) == (0, 0, 0)


def test_a_large_question_keeps_its_place_until_it_is_answered_and_takes_no_second() -> None:
    """Its answer costs more than its reading."""
    gate = Gate()
    reader = Reader(MemoryStorage(), gate)

    with reader.question():
        for _ in range(questions.AT_ONCE + 1):
            list(reader.vectors(LARGE, 1))
        held = gate.reading
    read_one(MemoryStorage(), gate)

    assert (held, gate.reading) == (1, 0)


def test_a_question_that_fails_gives_its_place_back() -> None:
    gate = Gate()

    for _ in range(3 * questions.AT_ONCE):
        with pytest.raises(StorageUnavailableError):
            read_one(Away(), gate)

    assert gate.reading == 0


class Away(MemoryStorage):
    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        yield index.cells[0], bytes(8)
        raise StorageUnavailableError("store: away")


def test_too_much_for_one_question_is_said_before_it_is_read() -> None:
    require_affordable(questions.MOST_READ, 1, 1)
    require_few_indexes(8_760, 4)

    with pytest.raises(QueryError, match=r"date_range: would read .*; take a shorter window"):
        require_affordable(questions.MOST_READ, 1, 2)
    with pytest.raises(QueryError, match=r"dimensions: would give .* groups of .* take fewer"):
        require_affordable(1, questions.MOST_HELD, 2)
    with pytest.raises(QueryError, match="leaves 8760 epochs, must be at most 2343 in this store"):
        require_few_indexes(8_760, 128)


def test_a_question_whose_verb_works_for_long_holds_a_place_however_little_it_reads() -> None:
    """The price is what is read, and for each group what is worked through."""
    gate, held = Gate(), list[int]()

    def ask(price: int) -> None:
        reader = Reader(MemoryStorage(), gate)
        with reader.question():
            reader.hold(price)
            reader.hold(price)
            held.append(gate.reading)

    ask(questions.LARGE - 1)
    ask(questions.LARGE)

    assert held == [0, 1]
    assert gate.reading == 0


@pytest.mark.parametrize(
    ("body", "is_large"),
    [
        ({"verb": "heavy_hitters"}, True),
        ({"verb": "heavy_hitters", "options": {"candidates": ["crash"]}}, False),
        ({"verb": "actives"}, False),
    ],
)
def test_the_price_of_strings_is_that_of_a_search_in_each_group(
    body: dict[str, Any], is_large: bool
) -> None:
    """Named strings are read from their cells, and counts from no cell at all."""

    def priced(**more: Any) -> int:
        asked = {"metrics": ["m"], "date_range": WINDOW, **body, **more}
        return price_of(plan(read(json.dumps(asked).encode()), CATALOG, NOON))

    one = priced()

    assert (one >= questions.LARGE) == is_large
    assert priced(dimensions=["time:day"]) == 14 * one


class Worked:
    """A processor that has worked a second more whenever somebody looks."""

    def __init__(self, most: int) -> None:
        self.seconds, self.most = 0, most

    def __call__(self) -> float:
        self.seconds = min(self.seconds + 1, self.most)
        return self.seconds


def test_an_answer_that_takes_too_long_is_refused_with_what_to_ask_instead() -> None:
    """Between groups and between levels of a search; one that ends in time is answered."""
    storage, tally = MemoryStorage(), reported(TEXT, ["crash"] * 3_000, "time")
    for day in range(3):
        vector = [tally[1], *tally[0].tolist()]
        storage.put({Cell(TEXT.digest, TODAY - 1 - day, ""): list(enumerate(vector))})
    asked = {
        "metrics": ["m"],
        "verb": "heavy_hitters",
        "date_range": WINDOW,
        "dimensions": ["time:day"],
        "options": {"alphabet": "acdhrs"},
    }
    by_day = plan(read(json.dumps(asked).encode()), CATALOG, NOON)

    answer = run(by_day, storage, clock=Worked(10))
    with pytest.raises(QueryError, match=r"10 seconds .* fewer groups, .* or for fewer days"):
        run(by_day, storage, clock=Worked(12))

    assert [row.item for row in answer.rows] == ["crash"] * 3
