"""Who asked for what: only if it is wished, and then counts of a day and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from collector.core.errors import StorageUnavailableError
from collector.operations.questions import MORE, MOST_ROWS, QuestionRow, Questions, question_rows
from tests.support.crowds.uploads import NOON, TODAY
from tests.support.store.memory_credentials import MemoryCredentials


@pytest.fixture
def store() -> MemoryCredentials:
    return MemoryCredentials()


def counter(store: MemoryCredentials, clock: Callable[[], float] = lambda: NOON) -> Questions:
    """Return the counts of one process; each exchange is due at once."""
    ticks: Iterator[int] = count(0, 100)
    return Questions(store, clock, lambda: float(next(ticks)))


def test_processes_add_up_and_an_exchange_that_is_repeated_counts_nothing_twice(
    store: MemoryCredentials,
) -> None:
    first, second = counter(store), counter(store)
    for process in (first, second):
        process.count("ada", "trend", ["page", "theme"])
        process.count("ada", "trend", ["page"])
        process.exchange()
        process.exchange()

    assert list(question_rows(store, [TODAY])) == [
        QuestionRow(TODAY, "ada", "trend", "page", 4),
        QuestionRow(TODAY, "ada", "trend", "theme", 2),
    ]


def test_a_day_is_counted_for_itself(store: MemoryCredentials) -> None:
    now = [NOON]
    questions = counter(store, lambda: now[0])
    questions.count("ada", "trend", ["page"])
    questions.exchange()
    now[0] += 86_400
    questions.count("bob", "trend", ["page"])
    questions.exchange()

    assert [row.who for row in question_rows(store, [TODAY])] == ["ada"]
    assert [row.who for row in question_rows(store, [TODAY + 1])] == ["bob"]
    assert [row.day for row in question_rows(store, range(TODAY, TODAY + 2))] == [TODAY, TODAY + 1]


def test_rows_beyond_the_most_are_counted_in_one_and_none_is_lost(
    store: MemoryCredentials,
) -> None:
    questions = counter(store)
    for place in range(MOST_ROWS + 10):
        questions.count("ada", "trend", [f"m{place}"])
    questions.exchange()

    rows = list(question_rows(store, [TODAY]))
    assert len(rows) == MOST_ROWS + 1
    assert rows[0] == QuestionRow(TODAY, "ada", MORE, MORE, 10)


def test_a_store_that_is_away_is_told_once_and_costs_no_count(
    store: MemoryCredentials, caplog: pytest.LogCaptureFixture
) -> None:
    questions = counter(store)
    questions.count("ada", "trend", ["page"])
    store.failure = StorageUnavailableError("away")
    questions.exchange()
    questions.exchange()
    store.failure = None
    questions.exchange()

    assert len(caplog.records) == 1
    assert [row.times for row in question_rows(store, [TODAY])] == [1]
