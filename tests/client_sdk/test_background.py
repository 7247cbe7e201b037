"""The queue in memory and its thread: every value is handed on once, and nobody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from client_sdk.background import GROUP_SIZE, QUEUE_SIZE, Background

PATIENCE = 20.0  # seconds; a machine this busy runs no tests


class Hands:
    """Takes what a queue hands on."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.threads: set[int] = set()
        self.finished = threading.Event()
        self.enough = threading.Event()
        self.wanted = 1

    @property
    def values(self) -> list[int]:
        return [value for group in self.groups for value in group]

    def commit(self, group: list[int]) -> None:
        self.groups.append(group)
        self.threads.add(threading.get_ident())
        if len(self.values) >= self.wanted:
            self.enough.set()


def queue_to(hands: Hands, commit: Callable[[list[int]], None] | None = None) -> Background[int]:
    return Background(commit or hands.commit, lambda: 3600.0, hands.finished.set)


class Threadless(Background[int]):
    """A queue in a process that can start no thread."""

    def _start(self, mine: object) -> None:
        pass


def threadless(hands: Hands) -> Background[int]:
    return Threadless(hands.commit, lambda: 3600.0, hands.finished.set)


def test_a_value_is_handed_on_by_another_thread() -> None:
    """Law: the caller of put commits nothing himself, and the value is committed soon."""
    hands = Hands()
    queue = queue_to(hands)

    queue.put(7)

    assert hands.enough.wait(PATIENCE)
    assert (hands.values, threading.get_ident() in hands.threads) == ([7], False)
    queue.stop(PATIENCE)


def test_no_thread_is_begun_before_the_first_value() -> None:
    """Law: an application that records nothing pays for no thread."""
    before = threading.active_count()

    queue = queue_to(Hands())

    assert (threading.active_count(), queue.stop(0.0)) == (before, False)


def test_values_of_many_threads_are_each_handed_on_once() -> None:
    """Law: no value is lost or doubled between putters, the thread and those who drain."""
    hands = Hands()
    queue = queue_to(hands)

    def put(first: int) -> None:
        for value in range(first, first + 200):
            assert queue.put(value)
        queue.drain(PATIENCE)

    putters = [threading.Thread(target=put, args=(200 * i,)) for i in range(4)]
    for putter in putters:
        putter.start()
    for putter in putters:
        putter.join()
    queue.stop(PATIENCE)

    assert sorted(hands.values) == list(range(800))


def test_groups_are_bounded() -> None:
    """Law: a transaction never holds more than GROUP_SIZE values."""
    hands = Hands()
    queue = threadless(hands)
    for value in range(2 * GROUP_SIZE + 1):
        queue.put(value)

    queue.drain(PATIENCE)

    assert [len(group) for group in hands.groups] == [GROUP_SIZE, GROUP_SIZE, 1]


def test_a_full_queue_takes_nothing_and_keeps_the_oldest() -> None:
    """Law: the queue is bounded, and what it refuses is the newest."""
    hands = Hands()
    queue = threadless(hands)

    taken = [queue.put(value) for value in range(QUEUE_SIZE + 2)]

    queue.drain(PATIENCE)
    assert (taken.count(True), taken[-2:]) == (QUEUE_SIZE, [False, False])
    assert hands.values == list(range(QUEUE_SIZE))


def test_stopping_hands_on_what_waits_before_it_finishes() -> None:
    """Law: when stop returns, all values are committed and finish was called after them."""
    hands = Hands()
    queue = queue_to(hands)
    for value in range(250):
        queue.put(value)

    queue.stop(PATIENCE)

    assert (hands.values, hands.finished.is_set()) == (list(range(250)), True)


def test_a_stop_waits_no_longer_than_it_is_told() -> None:
    """Law: a commit that hangs holds the thread, never the one who stops it."""
    hands, release = Hands(), threading.Event()

    def hang(group: list[int]) -> None:
        hands.enough.set()
        release.wait(PATIENCE)

    queue = queue_to(hands, hang)
    queue.put(1)
    hands.enough.wait(PATIENCE)

    stopped = queue.stop(0.01)

    assert (stopped, hands.finished.is_set()) == (True, False)
    release.set()
    assert hands.finished.wait(PATIENCE)


def test_clearing_forgets_and_counts_what_waits() -> None:
    """Law: a cleared value is never handed on."""
    hands = Hands()
    queue = threadless(hands)
    for value in range(3):
        queue.put(value)

    cleared = queue.clear()

    queue.drain(PATIENCE)
    assert (cleared, hands.values, len(queue)) == (3, [], 0)


def test_a_drain_from_within_a_commit_returns_at_once() -> None:
    """Law: an application that flushes inside a hook does not wait for itself."""
    inner: list[bool] = []
    queue: Background[int] = Threadless(
        lambda group: inner.append(queue.drain(PATIENCE)), lambda: 3600.0, lambda: None
    )
    queue.put(1)

    queue.drain(PATIENCE)

    assert inner == [False]


def test_a_value_that_found_no_thread_is_handed_on_by_the_next_drain() -> None:
    """Law: where no thread can be started, values wait for whoever empties the queue."""
    hands = Hands()
    queue = threadless(hands)
    queue.put(1)

    drained = queue.drain(PATIENCE)

    assert (drained, hands.values, hands.threads) == (True, [1], {threading.get_ident()})


@pytest.mark.parametrize("idle", [-5.0, 0.0, 1e9])
def test_any_idle_time_lets_values_through(idle: float) -> None:
    """Law: whatever the schedule says, a value wakes the thread."""
    hands = Hands()
    queue = Background(hands.commit, lambda: idle, hands.finished.set)

    queue.put(1)

    assert hands.enough.wait(PATIENCE)
    queue.stop(PATIENCE)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # is meant
def test_a_thread_that_died_is_begun_anew() -> None:
    """Law: whatever killed it, the next value is handed on like any other."""
    hands = Hands()
    died = threading.Event()

    def commit(group: list[int]) -> None:
        if not died.is_set():
            died.set()
            raise SystemExit
        hands.commit(group)

    queue = queue_to(hands, commit)
    queue.put(1)
    first = queue._mine().thread
    assert died.wait(PATIENCE)
    assert first is not None
    first.join(PATIENCE)

    queue.put(2)

    assert hands.enough.wait(PATIENCE)
    assert hands.values == [2]
    queue.stop(PATIENCE)


class StoppedAtOnce(Background[int]):
    """A queue that is told to stop before its thread looks for the first time."""

    def _run(self, mine: Any) -> None:
        mine.stopping = True
        super()._run(mine)


def test_a_thread_that_is_stopped_before_it_looks_hands_on_what_waits() -> None:
    """Law: a process that ends just after its first value loses nothing."""
    hands = Hands()
    queue = StoppedAtOnce(hands.commit, lambda: 3600.0, hands.finished.set)

    queue.put(7)

    assert hands.finished.wait(PATIENCE)
    assert hands.values == [7]


def test_waking_says_whether_anybody_wakes() -> None:
    """Law: without a thread, whoever needs something done does it himself."""
    queue = queue_to(Hands())
    size = threading.stack_size(1 << 46)  # bytes; no machine has room for it, so start() fails
    try:
        in_vain = queue.wake()
    finally:
        threading.stack_size(size)

    assert (in_vain, queue.wake()) == (False, True)
    queue.stop(PATIENCE)
