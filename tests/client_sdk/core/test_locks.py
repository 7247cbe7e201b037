"""Locks: what a signal handler, a hook or a fork may meet, and must not wait for."""

from __future__ import annotations

import signal
import threading

import pytest

from client_sdk.core.locks import FORK_WAIT, PerProcess, QuietLock
from client_sdk.core.stats import Reason, Stats
from tests.support.device.device import changed, make_client


def test_a_handler_may_count_while_its_own_thread_counts() -> None:
    """Law: a signal that comes in the middle of a count does not stop the application."""
    stats = Stats()

    with stats._mine()[1]:
        stats.add(Reason.RECORDED)

    assert stats.counts()["recorded"] == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such signals")
def test_a_signal_handler_may_record_while_the_application_records() -> None:
    """Law: whatever line of record a signal interrupts, the handler's record returns."""
    client = make_client(mode="background")
    calls = iter(range(10**9))
    client.record("dark_mode", True)

    def handler(number: int, frame: object) -> None:
        next(calls)
        client.record("theme", "plain")
        client.record("theme", "unregistered")

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        values = 0
        while values < 3_000 or next(calls) < 20:
            client.record("files", "not a number")
            values += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    client.close()
    assert client.stats()["invalid_value"] >= values


def test_a_quiet_lock_knows_its_holder() -> None:
    """Law: a fork waits for other threads, never for the one that forks."""
    lock, seen = QuietLock(), []

    with lock:
        seen.append(lock.is_mine)
        other = threading.Thread(target=lambda: seen.append(lock.is_mine))
        other.start()
        other.join()

    assert (seen, lock.is_mine, lock.acquire(FORK_WAIT)) == ([True, False], False, True)
    lock.release()


def test_a_value_of_a_process_is_made_once_in_it() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    value = PerProcess(make)

    assert [value(), value(), value()] == made * 3


def test_closing_twice_counts_nothing() -> None:
    """Law: a second close finds nothing to do."""
    client = make_client(mode="background")
    client.record("dark_mode", True)
    client.close()

    client.close()

    assert changed(client) == {"recorded": 1, "uploaded": 1}
