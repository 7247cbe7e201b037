"""The thread that writes: every value is handed on once, and nobody waits for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import pytest

from client_sdk.recording.background import GROUP_SIZE, Background
from tests.support.patience import PATIENCE


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


class Queue:
    """Values in memory, and the thread that takes them."""

    def __init__(
        self,
        commit: Callable[[list[int]], None],
        finish: Callable[[], None] = lambda: None,
        idle: float = 3600.0,
        threads: bool = True,
    ) -> None:
        self.waiting: deque[int] = deque()
        self.background = Background(
            self._take, commit, lambda: idle, finish, forbidden=lambda: not threads
        )
        self.drain, self.stop = self.background.drain, self.background.stop

    def put(self, value: int) -> bool:
        self.waiting.append(value)
        return self.background.notify()

    def _take(self, most: int) -> list[int]:
        return [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]


def queue_to(hands: Hands, commit: Callable[[list[int]], None] | None = None) -> Queue:
    return Queue(commit or hands.commit, hands.finished.set)


def threadless(hands: Hands) -> Queue:
    return Queue(hands.commit, hands.finished.set, threads=False)


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
            queue.put(value)
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


def test_a_drain_from_within_a_commit_returns_at_once() -> None:
    """Law: an application that flushes inside a hook does not wait for itself."""
    inner: list[bool] = []
    queue = Queue(lambda group: inner.append(queue.drain(PATIENCE)), threads=False)
    queue.put(1)

    queue.drain(PATIENCE)

    assert inner == [False]


def test_a_value_that_found_no_thread_is_handed_on_by_the_next_drain() -> None:
    """Law: where there is no thread, the caller is told to write, and can."""
    hands = Hands()
    queue = threadless(hands)

    told = queue.put(1)
    drained = queue.drain(PATIENCE)

    assert (told, drained) == (False, True)
    assert (hands.values, hands.threads) == ([1], {threading.get_ident()})


@pytest.mark.parametrize("idle", [-5.0, 0.0, 1e9])
def test_any_idle_time_lets_values_through(idle: float) -> None:
    """Law: whatever the schedule says, a value wakes the thread."""
    hands = Hands()
    queue = Queue(hands.commit, hands.finished.set, idle)

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
    first = queue.background._thread
    assert died.wait(PATIENCE)
    assert first is not None
    first.join(PATIENCE)

    queue.put(2)

    assert hands.enough.wait(PATIENCE)
    assert hands.values == [2]
    queue.stop(PATIENCE)


class StoppedAtOnce(Background[int]):
    """Told to stop before its thread looks for the first time."""

    def _run(self) -> None:
        self._stopping = True
        super()._run()


def test_a_thread_that_is_stopped_before_it_looks_hands_on_what_waits() -> None:
    """Law: a process that ends just after its first value loses nothing."""
    hands, waiting = Hands(), [7]

    def take(most: int) -> list[int]:
        taken, waiting[:] = waiting[:], []
        return taken

    StoppedAtOnce(take, hands.commit, lambda: 3600.0, hands.finished.set).notify()

    assert hands.finished.wait(PATIENCE)
    assert hands.values == [7]


def test_the_first_value_after_a_pause_is_handed_on_before_any_idling() -> None:
    """Law: it waits neither for company nor for what else the thread has to do."""
    hands, order = Hands(), list[str]()

    def commit(group: list[int]) -> None:
        order.append("written")
        hands.commit(group)

    queue = Queue(commit, hands.finished.set)
    queue.background._idle = lambda: order.append("idle") or 3600.0  # type: ignore[func-returns-value]

    queue.put(1)

    assert hands.enough.wait(PATIENCE)
    assert order[0] == "written"
    queue.stop(PATIENCE)


def test_waking_says_whether_anybody_wakes() -> None:
    """Law: without a thread, whoever needs something done does it himself."""
    queue = queue_to(Hands()).background
    size = threading.stack_size(1 << 46)  # bytes; no machine has room for it, so start() fails
    try:
        in_vain = queue.wake()
    finally:
        threading.stack_size(size)

    assert (in_vain, queue.wake()) == (False, True)
    queue.stop(PATIENCE)
