"""A full, late or absent store takes no more; a key that floods waits, and no other does."""

from __future__ import annotations

import logging

import pytest

from collector.core.cells import MARGIN
from collector.core.errors import (
    CollectorError,
    OverloadedError,
    StorageFullError,
    StorageUnavailableError,
    TooFastError,
    UnsafeStoreError,
)
from collector.intake.backpressure import (
    ALARM_MEMORY,
    BURST_S,
    COST_UNIT,
    SHED_MEMORY,
    Pressure,
    Watch,
)
from tests.support.device.clock import FakeClock
from tests.support.store.memory_storage import MemoryStorage

RATE = 10
NOW = 1_700_000_000.0
KEY, OTHER = b"k" * 32, b"o" * 32


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def pressure(storage: MemoryStorage, clock: FakeClock) -> Pressure:
    return Pressure(storage, max_backlog=2, key_rate=RATE, monotonic=clock, clock=lambda: NOW)


def fill(storage: MemoryStorage, entries: int) -> None:
    storage.entries = {f"1-{i}": b"" for i in range(entries)}


def passes(pressure: Pressure, key: bytes = KEY, size: int = 0) -> bool:
    try:
        pressure.charge(key, size)
    except TooFastError:
        return False
    return True


def test_before_the_first_poll_there_is_room(pressure: Pressure) -> None:
    """A process that was just started is not shut."""
    pressure.require_room()


@pytest.mark.parametrize(("share", "open_"), [(None, True), (0.849, True), (SHED_MEMORY, False)])
def test_a_store_that_uses_most_of_its_memory_takes_no_more(
    pressure: Pressure, storage: MemoryStorage, share: float | None, open_: bool
) -> None:
    """The rest of the memory belongs to the worker, which gives it back."""
    storage.memory_share = share
    pressure.poll()

    if open_:
        pressure.require_room()
    else:
        with pytest.raises(StorageFullError):
            pressure.require_room()


def test_a_store_that_is_far_behind_takes_no_more_until_it_has_caught_up(
    pressure: Pressure, storage: MemoryStorage
) -> None:
    fill(storage, 2)
    pressure.poll()
    with pytest.raises(OverloadedError):
        pressure.require_room()

    fill(storage, 1)
    pressure.poll()

    pressure.require_room()


def test_while_the_store_is_away_uploads_are_refused_without_asking_it(
    pressure: Pressure, storage: MemoryStorage
) -> None:
    """Or each would wait for a time-out."""
    storage.failure = StorageUnavailableError("store: away")
    pressure.poll()
    storage.failure = AssertionError("was asked")

    with pytest.raises(StorageUnavailableError):
        pressure.require_room()


@pytest.mark.parametrize(
    ("faults", "ahead", "safe"),
    [
        ((), 0.0, True),
        (("aof_enabled=0: must be 1",), 0.0, False),
        ((), float(MARGIN), True),
        ((), MARGIN + 1.0, False),
        ((), -MARGIN - 1.0, False),
    ],
)
def test_a_store_that_is_unsafe_or_in_another_time_takes_no_more(
    pressure: Pressure,
    storage: MemoryStorage,
    faults: tuple[str, ...],
    ahead: float,
    safe: bool,
) -> None:
    """It may have been started again with other settings while this process ran on."""
    storage.faults, storage.times = faults, (NOW, NOW + ahead)
    pressure.poll()

    if safe:
        pressure.require_room()
    else:
        with pytest.raises(UnsafeStoreError):
            pressure.require_room()


def test_what_an_operator_was_told_by_a_poll_is_marked_so(
    pressure: Pressure, storage: MemoryStorage
) -> None:
    """Or each of a million refused uploads would log it again."""
    storage.faults = ("aof_enabled=0: must be 1",)
    pressure.poll()

    with pytest.raises(CollectorError) as caught:
        pressure.require_room()

    assert caught.value.is_told
    assert not UnsafeStoreError([]).is_told


def test_a_state_is_told_once_and_not_by_each_poll(
    pressure: Pressure, storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hearsay.pressure"):
        for storage.memory_share in (0.5, ALARM_MEMORY, 0.75, SHED_MEMORY, 0.9):
            pressure.poll()

    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]


def test_a_key_may_send_its_rate_after_a_burst(pressure: Pressure, clock: FakeClock) -> None:
    burst = sum(passes(pressure) for _ in range(100))
    clock.advance(seconds=1.0)

    after = sum(passes(pressure) for _ in range(100))

    assert (burst, after) == (RATE * BURST_S, RATE)


def test_a_key_that_floods_costs_no_other_key_anything(pressure: Pressure) -> None:
    while passes(pressure):
        pass

    assert passes(pressure, OTHER)


def test_a_large_upload_passes_once_and_is_paid_for_afterwards(
    pressure: Pressure, clock: FakeClock
) -> None:
    """Even one that costs more than a full bucket, or it could never be sent."""
    size = 99 * COST_UNIT

    first = passes(pressure, size=size)
    clock.advance(seconds=7.9)
    early = passes(pressure)
    clock.advance(seconds=0.3)
    late = passes(pressure)

    assert (first, early, late) == (True, False, True)


def test_a_look_that_fails_stops_neither_the_others_nor_the_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Law: whatever one look meets, the next is taken; a view that stays old would be believed."""
    looks: list[str] = []

    def fails() -> None:
        looks.append("fails")
        raise KeyError("ours")

    watch = Watch(fails, lambda: looks.append("after"))
    watch.start()
    watch.stop()

    assert looks[:2] == ["fails", "after"]
    assert "a look at the store has failed" in caplog.text
