"""A full, late or absent store, or a key that floods: who waits, and that no other does."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.epoch import DAY, day_of
from collector.core.cells import MARGIN
from collector.core.errors import (
    CollectorError,
    OverloadedError,
    QuotaExhaustedError,
    ReplacedStoreError,
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
from collector.intake.day_counts import EXCHANGE_S
from collector.intake.memory_quota import (
    BURST_DAYS,
    BYTES_PER_ID,
    LEVEL_MEMORY,
    PAST_S,
    SHARE,
    IdQuota,
    daily_uploads,
    keys_over_share,
)
from collector.storage.records import BYTES_BEGUN
from collector.storage.redis import SEEN_DAYS
from collector.storage.values import Health
from tests.support.device.clock import NOON, FakeClock
from tests.support.known import known
from tests.support.store.memory_credentials import MemoryCredentials
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


def test_a_look_that_finds_no_upload_waiting_is_told_with_the_time_before_it(
    storage: MemoryStorage, clock: FakeClock
) -> None:
    """Law: nothing is told while one waits, or while a shard cannot be asked."""
    told: list[float] = []
    pressure = Pressure(storage, 2, RATE, clock, clock, tell_empty=told.append)
    fill(storage, 1)
    pressure.poll()
    fill(storage, 0)
    storage.failure = StorageUnavailableError("store: does not answer")
    pressure.poll()
    storage.failure = None
    assert told == []

    pressure.poll()

    assert told == [clock()]


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


class OfServers(MemoryStorage):
    """Three shards, of which some take nothing: their server is away."""

    shards = 3

    def __init__(self) -> None:
        super().__init__()
        self.away: dict[int, CollectorError] = {}

    def refusing(self) -> dict[int, CollectorError]:
        return self.away

    def shard_of(self, upload_id: bytes) -> int:
        return upload_id[0]


def is_taken(pressure: Pressure, shard: int) -> bool:
    try:
        pressure.require_room()
        pressure.require_shard(bytes([shard]))
    except CollectorError:
        return False
    return True


@pytest.mark.parametrize("away", [(), (1,), (0, 2), (0, 1, 2)])
def test_a_shard_that_is_away_refuses_its_uploads_and_all_shards_all(
    clock: FakeClock, away: Sequence[int], caplog: pytest.LogCaptureFixture
) -> None:
    """By what the last poll has seen: nobody waits for a time-out."""
    storage = OfServers()
    pressure = Pressure(storage, 2, RATE, clock, lambda: NOW)
    storage.away = {shard: StorageUnavailableError(f"store: {shard}") for shard in away}
    pressure.poll()
    pressure.poll()

    taken = [is_taken(pressure, shard) for shard in range(3)]
    storage.away = {}
    unchanged = [is_taken(pressure, shard) for shard in range(3)]
    pressure.poll()
    after = [is_taken(pressure, shard) for shard in range(3)]

    assert taken == unchanged == [shard not in away for shard in range(3)]
    assert after == [True] * 3
    levels = [record.levelname for record in caplog.records]
    assert levels == (["ERROR", "WARNING"] if away else [])  # once each
    assert pressure.load.refusing == {}


def test_readiness_names_the_shards_that_take_nothing_and_fails_if_all_do(
    clock: FakeClock,
) -> None:
    storage = OfServers()
    pressure = Pressure(storage, 2, RATE, clock, lambda: NOW)
    whole = pressure.ready()
    storage.away = {1: StorageFullError("store: full")}
    part = pressure.ready()
    storage.away = {shard: StorageUnavailableError("store: away") for shard in range(3)}

    with pytest.raises(StorageUnavailableError):
        pressure.ready()

    assert (whole["refusing"], part["refusing"]) == ([], [1])


def test_a_shard_that_was_emptied_shuts_its_uploads_and_every_question(clock: FakeClock) -> None:
    """A question would be answered by fewer reports than were counted."""
    storage = OfServers()
    pressure = Pressure(storage, 2, RATE, clock, lambda: NOW)
    storage.away = {0: StorageUnavailableError("store: away"), 2: ReplacedStoreError()}
    pressure.poll()

    with pytest.raises(ReplacedStoreError):
        pressure.require_contents()

    assert pressure.is_replaced
    assert [is_taken(pressure, shard) for shard in range(3)] == [False, True, False]


class Counting(MemoryStorage):
    """Tells how many uploads each shard has accepted."""

    accepted: tuple[int | None, ...] = ()

    def health(self) -> Health:
        return replace(super().health(), accepted=self.accepted)


@pytest.mark.parametrize(
    ("looks", "lost"),
    [
        ([(5, 5), (5, 6), (9, 6)], []),
        ([(5, 5), (3, 5)], [2]),
        ([(5, 5), (3, 9)], [2]),
        ([(5, 5), (0, 0)], [10]),
        ([(5, 5), (3, 5), (3, 5), (4, 5), (1, 5)], [2, 3]),
        ([(5, 5), (), (3, 5)], [2]),
        ([(5, 5), None, (3, 5)], [2]),
        ([(5, 5), (None, 6), (None, 7), (3, 7)], [2]),
        ([(None, 5), (3, 5)], []),
    ],
    ids=[
        *("more", "fewer", "beside more", "none", "twice", "not told", "away"),
        *("one away", "one away at first"),
    ],
)
def test_a_shard_that_holds_fewer_uploads_than_it_held_is_told_by_number(
    clock: FakeClock, looks: Sequence[tuple[int | None, ...] | None], lost: Sequence[int]
) -> None:
    storage, told = Counting(), list[int]()
    pressure = Pressure(storage, 2, RATE, clock, lambda: NOW, told.append)
    for look in looks:
        storage.failure = StorageUnavailableError("away") if look is None else None
        storage.accepted = look or ()
        pressure.poll()

    assert told == lost
    assert pressure.lost == sum(lost)
    pressure.require_room()


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


FLOODED, QUIET, THIRD = b"f" * 32, b"q" * 32, b"o" * 32
SMALL = Health(memory=0.1, memory_limit=1 << 17)  # of 128 KiB
FULL = Health(memory=LEVEL_MEMORY - 0.01, memory_limit=1 << 17)


class Process:
    """A web process among others of the same store."""

    def __init__(self, store: MemoryCredentials, wall: FakeClock) -> None:
        self.ran = FakeClock(0)
        self.shares = IdQuota(store, wall, self.ran)

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
    most = known(daily_uploads(SMALL.memory_limit))

    taken = process.send(FLOODED, 10 * most), process.send(QUIET, 5)
    wall.advance(days=1)

    assert taken == (most, 5)
    assert process.send(FLOODED, 1) == 1


def test_floods_of_many_days_stay_within_the_share_of_the_key() -> None:
    """Twice the mean of the days on which ids are kept, so a fleet that returns is no flood."""
    limit = 768 << 20
    most = known(daily_uploads(limit))

    assert most * BYTES_PER_ID * SEEN_DAYS == pytest.approx(BURST_DAYS * SHARE * limit, rel=0.01)
    assert most > 1_700_000  # uploads a day, for which such a store is said to be enough


def test_processes_count_together(store: MemoryCredentials, wall: FakeClock) -> None:
    first, second = Process(store, wall), Process(store, wall)
    most = daily_uploads(SMALL.memory_limit) or 0
    first.send(FLOODED, most)
    first.exchange()
    second.exchange()

    assert second.send(FLOODED, 1) == 0
    assert second.send(QUIET, 1) == 1


def test_a_quota_that_an_operator_gave_takes_the_place_of_the_daily_share(
    process: Process,
) -> None:
    most = daily_uploads(SMALL.memory_limit) or 0

    assert process.send(FLOODED, most + 5, quota=True) == most + 5


def test_a_store_without_a_limit_has_no_shares(process: Process) -> None:
    assert daily_uploads(0) is None
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
    assert keys_over_share({FLOODED: 10**9, QUIET: 0}, 0) == frozenset()


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=9), st.integers(0, 10**9))
def test_those_that_are_not_refused_fill_the_room_and_no_more(sizes: list[int], room: int) -> None:
    """They share it alike: each may grow to the level of those that are refused, and not beyond."""
    held = {bytes([number]): size for number, size in enumerate(sizes)}

    refused = keys_over_share(held, room)
    going_on = [size for key, size in held.items() if key not in refused]

    level = (sum(going_on) + room) / len(going_on)
    assert max(going_on) <= level + 1e-6
    assert all(held[key] >= level - 1e-6 for key in refused)
    assert min(held.values()) in going_on


class Store:
    """A store of *limit* bytes with the ids of its keys' last days, and a process before it."""

    def __init__(self, limit: int) -> None:
        self.wall, self.limit = FakeClock(NOON), limit
        self.process = Process(MemoryCredentials(), self.wall)
        self.sent: Counter[tuple[bytes, int]] = Counter()

    def day(self, sending: dict[bytes, int], quotas: Collection[bytes]) -> Counter[bytes]:
        """Let each key send so many uploads in a day; return how many of them are refused."""
        refused: Counter[bytes] = Counter()
        today = day_of(self.wall())
        for _ in range(4):
            for key, uploads in sending.items():
                taken = self.process.send(key, uploads // 4, self.health(today), key in quotas)
                self.sent[key, today] += taken
                refused[key] += uploads // 4 - taken
                self.process.exchange(PAST_S)
        self.wall.advance(days=1)
        return refused

    def health(self, today: int) -> Health:
        kept = sum(n for (_, day), n in self.sent.items() if day > today - SEEN_DAYS)
        return Health(memory=kept * BYTES_PER_ID / self.limit, memory_limit=self.limit)


@pytest.mark.parametrize("quota", [True, False])
def test_a_large_key_with_a_quota_goes_on_whoever_else_fills_the_store(quota: bool) -> None:
    """Law: beside a tiny key and one that sends all it may, for two months.

    Without a quota it is refused, being the one that holds most: who is honest cannot be seen.
    """
    store, refused = Store(SEEN_DAYS * 80 * BYTES_PER_ID), Counter[bytes]()
    quotas = {FLOODED} if quota else frozenset[bytes]()
    for day in range(SEEN_DAYS + 60):
        flood = 400 if day > SEEN_DAYS else 0
        refused += store.day({QUIET: flood, FLOODED: 40, THIRD: 4}, quotas)

    assert refused[QUIET] > refused[THIRD] == 0
    assert (refused[FLOODED] == 0) is quota


def test_a_key_of_few_wide_uploads_is_the_one_that_fills(
    store: MemoryCredentials, wall: FakeClock, process: Process
) -> None:
    """Its bytes count, those of the tallies that it began, and not how often it sends."""
    process.send(QUIET, 100, FULL)
    process.send(FLOODED, 1, FULL)
    store.share(BYTES_BEGUN, day_of(wall()), "elsewhere", {FLOODED: 100_000})

    process.exchange()

    assert (process.send(FLOODED, 1, FULL), process.send(QUIET, 1, FULL)) == (0, 1)


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
    most = daily_uploads(SMALL.memory_limit) or 0
    with caplog.at_level(logging.WARNING, "hearsay.shares"):
        process.send(FLOODED, most)
        for _ in range(20):
            process.send(FLOODED, 1)

    assert len(caplog.records) == 1
    assert FLOODED.hex() not in caplog.text
