"""A question is priced before it reads, and few large ones are read at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from collector.core.cells import Cell
from collector.core.errors import BusyError, QueryError
from collector.query import reading as questions
from collector.query.reading import Gate, require_affordable, require_few_indexes
from collector.storage.values import Index
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.memory_storage import MemoryStorage

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


def test_two_large_questions_are_read_at_once_a_few_wait_and_others_are_refused() -> None:
    """And small ones are answered meanwhile."""
    slow = Slow()
    gate, refused = Gate(slow), list[Exception]()

    def ask() -> None:
        try:
            list(gate.vectors(LARGE, 1))
        except BusyError as error:
            refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(questions.AT_ONCE + questions.QUEUE)]
    for thread in threads:
        thread.start()
    for _ in range(questions.AT_ONCE):
        assert slow.begun.acquire(timeout=PATIENCE)
    wait_for(lambda: gate.waiting == questions.QUEUE)
    with pytest.raises(BusyError, match="ask again later"):
        list(gate.vectors(LARGE, 1))
    small = threading.Thread(target=lambda: list(gate.vectors(SMALL, 1)))
    small.start()
    assert slow.begun.acquire(timeout=PATIENCE)
    slow.go_on.set()
    for thread in (*threads, small):
        thread.join(PATIENCE)

    assert refused == []
    assert slow.most == questions.AT_ONCE + 1
    assert (gate.waiting, slow.reading) == (0, 0)


def test_a_large_question_keeps_its_place_until_it_is_answered_and_takes_no_second() -> None:
    """Its answer costs more than its reading."""
    gate = Gate(MemoryStorage())

    with questions.one_question():
        for _ in range(questions.AT_ONCE + 1):
            list(gate.vectors(LARGE, 1))
        held = gate.reading
    list(gate.vectors(LARGE, 1))

    assert (held, gate.reading) == (1, 0)


def test_who_stops_reading_gives_the_place_back() -> None:
    gate = Gate(Endless())

    for _ in range(3 * questions.AT_ONCE):
        reading = gate.vectors(LARGE, 1)
        next(iter(reading))
        reading.close()

    assert gate.reading == 0


class Endless(MemoryStorage):
    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        while True:
            yield index.cells[0], bytes(8)


def test_too_much_for_one_question_is_said_before_it_is_read() -> None:
    require_affordable(questions.MOST_READ, 1, 1)
    require_few_indexes(8_760, 4)

    with pytest.raises(QueryError, match=r"date_range: would read .*; take a shorter window"):
        require_affordable(questions.MOST_READ, 1, 2)
    with pytest.raises(QueryError, match=r"dimensions: would give .* groups of .* take fewer"):
        require_affordable(1, questions.MOST_HELD, 2)
    with pytest.raises(QueryError, match="leaves 8760 epochs, must be at most 2343 in this store"):
        require_few_indexes(8_760, 128)
