"""A key that floods fills its own share of the memory of ids, and nothing of anybody else's."""

from __future__ import annotations

import logging

import pytest

from client_sdk.core.epoch import DAY
from collector.core.errors import QuotaExhaustedError, StorageFullError
from collector.intake.backpressure import ALARM_MEMORY
from collector.intake.memory_quota import (
    BURST_DAYS,
    BYTES_PER_ID,
    EXCHANGE_S,
    PAST_S,
    SHARE,
    Shares,
    daily,
    filling,
)
from collector.storage.redis import SEEN_DAYS
from collector.storage.values import Health
from tests.support.device.clock import NOON, FakeClock
from tests.support.store.memory_credentials import MemoryCredentials

FLOODED, QUIET, OTHER = b"f" * 32, b"q" * 32, b"o" * 32
SMALL = Health(memory=0.1, memory_limit=1 << 20)  # of a mebibyte
FULL = Health(memory=ALARM_MEMORY, memory_limit=1 << 40)


class Process:
    """A web process among others of the same store."""

    def __init__(self, store: MemoryCredentials, wall: FakeClock) -> None:
        self.ran = FakeClock(0)
        self.shares = Shares(store, wall, self.ran)

    def exchange(self, seconds: float = EXCHANGE_S) -> None:
        self.ran.advance(seconds=seconds)
        self.shares.exchange()

    def send(self, key: bytes, uploads: int, health: Health = SMALL, quota: bool = False) -> int:
        """Send so many uploads; return how many of them are taken."""
        taken = 0
        for _ in range(uploads):
            try:
                self.shares.require(key, health, quota)
            except QuotaExhaustedError:
                break
            self.shares.count(key)
            taken += 1
        return taken


@pytest.fixture
def wall() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
def store() -> MemoryCredentials:
    return MemoryCredentials()


@pytest.fixture
def process(store: MemoryCredentials, wall: FakeClock) -> Process:
    return Process(store, wall)


def test_a_flood_ends_at_the_daily_share_and_other_keys_go_on(
    process: Process, wall: FakeClock
) -> None:
    most = daily(SMALL.memory_limit)
    assert most is not None

    taken = process.send(FLOODED, 10 * most), process.send(QUIET, 5)
    wall.advance(days=1)

    assert taken == (most, 5)
    assert process.send(FLOODED, 1) == 1


def test_floods_of_many_days_stay_within_the_share_of_the_key() -> None:
    """Twice the mean of the days on which ids are kept, so a fleet that returns is no flood."""
    limit = 768 << 20
    most = daily(limit)
    assert most is not None

    assert most * BYTES_PER_ID * SEEN_DAYS == pytest.approx(BURST_DAYS * SHARE * limit, rel=0.01)
    assert most > 300_000  # uploads a day, for which such a store is said to be enough


def test_processes_count_together(store: MemoryCredentials, wall: FakeClock) -> None:
    first, second = Process(store, wall), Process(store, wall)
    most = daily(SMALL.memory_limit) or 0
    first.send(FLOODED, most)
    first.exchange()
    second.exchange()

    assert second.send(FLOODED, 1) == 0
    assert second.send(QUIET, 1) == 1


def test_a_quota_that_an_operator_gave_takes_the_place_of_the_daily_share(
    process: Process,
) -> None:
    most = daily(SMALL.memory_limit) or 0

    assert process.send(FLOODED, most + 5, quota=True) == most + 5


def test_a_store_without_a_limit_has_no_shares(process: Process) -> None:
    assert daily(0) is None
    assert process.send(FLOODED, 5_000, Health()) == 5_000


def test_a_store_that_fills_up_refuses_the_key_that_fills_it_first(
    store: MemoryCredentials, wall: FakeClock, process: Process
) -> None:
    """By all the days whose ids are kept, whichever process has counted them."""
    for _ in range(SEEN_DAYS - 1):
        Process(store, wall).send(QUIET, 3, FULL)
        flooding = Process(store, wall)
        flooding.send(FLOODED, 50, FULL)
        flooding.exchange()
        wall.advance(days=1)
    process.send(QUIET, 100, FULL)
    process.exchange(PAST_S)

    assert (process.send(FLOODED, 1, FULL), process.send(QUIET, 1, FULL)) == (0, 1)
    assert process.send(FLOODED, 1, Health(memory=ALARM_MEMORY - 0.01)) == 1


def test_what_is_forgotten_counts_for_nothing(
    store: MemoryCredentials, wall: FakeClock, process: Process
) -> None:
    process.send(FLOODED, 500, FULL)
    process.exchange()
    wall.advance(seconds=(SEEN_DAYS + 2) * DAY)
    process.send(FLOODED, 1, FULL)
    process.send(QUIET, 5, FULL)
    process.exchange(PAST_S)

    assert process.send(FLOODED, 1, FULL) == 1


def test_the_only_key_is_never_the_one_that_fills() -> None:
    """Nobody would gain if it were refused before the store is full."""
    assert filling({FLOODED: 10**9, QUIET: 0}) == frozenset()
    assert filling({FLOODED: 9, QUIET: 3, OTHER: 3}) == {FLOODED}
    assert filling({FLOODED: 5, QUIET: 5}) == frozenset()


def test_a_store_that_is_away_or_full_changes_no_decision(
    store: MemoryCredentials, process: Process
) -> None:
    store.refusal = StorageFullError("store: is out of memory")
    process.send(QUIET, 3)

    process.exchange()

    assert process.send(QUIET, 3) == 3


def test_a_key_that_is_refused_is_logged_once(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    most = daily(SMALL.memory_limit) or 0
    with caplog.at_level(logging.WARNING, "hearsay.shares"):
        process.send(FLOODED, most)
        for _ in range(20):
            process.send(FLOODED, 1)

    assert len(caplog.records) == 1
    assert FLOODED.hex() not in caplog.text
