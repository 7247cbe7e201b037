"""The store in memory hands out entries as Redis does."""

from __future__ import annotations

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
