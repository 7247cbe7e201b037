"""The store in memory hands out entries as Redis does."""

from __future__ import annotations

from collector.core.cells import Cell
from collector.testing.memory_storage import MemoryStorage


def test_an_entry_is_handed_on_once_it_was_left_for_so_long() -> None:
    """A clock that was set back has left it for no time."""
    store = MemoryStorage()
    store.append(b"upload", 1, b"entry", 1)
    store.claim(0, "first", 1, 0)

    assert store.claim(0, "second", 1, 1) == []
    store.clock = 1
    assert [entry.deliveries for entry in store.claim(0, "second", 1, 1_000)] == [2]
    store.clock = 0
    assert [entry.deliveries for entry in store.claim(0, "third", 1, 0)] == [3]


def test_a_fold_of_an_entry_that_is_gone_or_of_none_adds_nothing() -> None:
    store = MemoryStorage()
    increments = {Cell(b"digest", 1, ""): [(0, 1)]}

    assert store.fold(0, ["1-1"], increments) == ("1-1",)
    assert store.fold(0, [], increments) == ()
    assert store.tallied == {}
