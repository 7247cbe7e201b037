"""Ids are forgotten a day at a time, and no day is taken again whose ids are forgotten."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import pytest

from client_sdk.core.epoch import DAY, day_of
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from collector.core.catalog import Catalog
from collector.core.errors import ExpiredUploadError, ForgottenUploadError, FutureUploadError
from collector.intake.validation import judge
from collector.intake.wire import Upload
from collector.storage.connection import Command, Connection
from collector.storage.keys import Keys
from collector.storage.redis import SEEN_DAYS, RedisStorage
from tests.support.crowds.uploads import registry
from tests.support.store.servers import EVERY_STORE, profile_of
from tests.support.store.stored import Store

CATALOG = Catalog([registry()])


@EVERY_STORE
@pytest.mark.parametrize("skew", range(-MAX_CLOCK_SKEW, MAX_CLOCK_SKEW + 1))
@pytest.mark.parametrize("age", [-2, -1, 0, 1, 13, 14, 15, 16, 17, 30])
def test_a_repeat_is_recognised_or_refused_on_every_day(store: Store, age: int, skew: int) -> None:
    """Also by a web process whose clock is a day off that of the store.

    The store's clock is real, so it is the day of sealing that moves: before, at and after the day
    on which its ids are forgotten.
    """
    today = day_of(store.now(0))
    upload = Upload(secrets.token_bytes(16), today - age, {}, ())
    try:
        judge(upload, CATALOG, today + skew)
    except (ExpiredUploadError, FutureUploadError):
        return

    firsts = [store.append(upload.id, upload.sealed, b"entry", 1) for _ in range(3)]

    assert firsts == [True, False, False]


def test_the_intake_ends_before_the_memory_does() -> None:
    """Even when its clock is as far behind the store's as any may be."""
    last_taken = MAX_REPORT_AGE + MAX_CLOCK_SKEW  # days after that of sealing, by the store's clock

    assert last_taken < SEEN_DAYS


@EVERY_STORE
def test_an_upload_whose_id_is_forgotten_is_refused_by_the_store_itself(
    store: Store,
) -> None:
    """Also where a web process with a wrong clock would take it; of a day later it is taken."""
    sealed = day_of(store.now(0)) - SEEN_DAYS

    with pytest.raises(ForgottenUploadError):
        store.append(b"a" * 16, sealed, b"entry", 1)

    assert (sealed + SEEN_DAYS) * DAY <= store.now(0)
    assert store.append(b"a" * 16, sealed + 1, b"entry", 1)
    assert not store.append(b"a" * 16, sealed + 1, b"entry", 1)


ID = b"\0" * 16  # of shard 0
HOUR = 3_600


@pytest.fixture
def now(store: RedisStorage) -> int:
    """The clock of the store, which is real."""
    return store.now(0)


@pytest.fixture
def old(now: int) -> int:
    """The newest day whose ids may be forgotten today."""
    return day_of(now) - SEEN_DAYS


def put(server: Connection, keys: Keys, *days: int) -> None:
    """Begin each of *days*, as an append did at its time."""
    for day in days:
        server.call("HSET", keys.seen(0, day), "first", 16, "levels", 1)


def days_kept(server: Connection, keys: Keys, *days: int) -> list[int]:
    return [day for day in days if server.call("EXISTS", keys.seen(0, day))]


def set_floor(server: Connection, keys: Keys, floor: int, moved: int) -> None:
    server.call("HSET", keys.state(0), "floor", floor, "moved", moved)


def floor_of(server: Connection, keys: Keys) -> int:
    return int(server.call("HGET", keys.state(0), "floor") or -1)


def another(server: Connection, keys: Keys, server_kind: str) -> RedisStorage:
    """Return the storage of a process that has just been started."""
    return RedisStorage(server, keys, profile_of(server_kind))


def test_ids_are_deleted_when_no_upload_of_their_day_is_taken_any_more(
    store: RedisStorage, server: Connection, keys: Keys, now: int, old: int
) -> None:
    put(server, keys, old - 40, old - 1, old, old + 1, old + 15)

    deleted = store.forget_ids(0, now)

    assert deleted == 3
    assert days_kept(server, keys, old - 40, old - 1, old, old + 1, old + 15) == [old + 1, old + 15]
    assert store.forget_ids(0, now) == 0


def test_an_upload_of_a_day_whose_ids_are_deleted_is_refused_whatever_any_clock_says(
    store: RedisStorage, server: Connection, keys: Keys, now: int
) -> None:
    """So a day that was deleted too early costs a delay, and counts nothing twice."""
    today = day_of(now)
    assert store.append(ID, today, b"entry", 1)
    set_floor(server, keys, today + SEEN_DAYS, now)

    deleted = store.forget_ids(0, now)

    assert deleted == 1
    for day in (today, today - 3):
        with pytest.raises(ForgottenUploadError):
            store.append(ID, day, b"entry", 1)
    assert store.append(ID, today + 1, b"entry", 1)


@pytest.mark.parametrize("ahead", [2 * HOUR, DAY, 20 * DAY, -2 * HOUR, -DAY, -20 * DAY])
def test_clocks_that_do_not_agree_confirm_no_day(
    store: RedisStorage, server: Connection, keys: Keys, now: int, old: int, ahead: int
) -> None:
    """Whichever of the two is wrong."""
    put(server, keys, old - 20, old, old + 1)

    assert store.forget_ids(0, now + ahead) == 0
    assert floor_of(server, keys) == -1

    store.forget_ids(0, now)
    assert store.forget_ids(0, now + ahead) == 0
    assert days_kept(server, keys, old + 1) == [old + 1]
    assert floor_of(server, keys) == day_of(now)


@pytest.mark.parametrize("floor", [None, 100], ids=["fresh", "long ago"])
def test_no_more_days_are_looked_for_once_the_clocks_agree_than_by_who_just_started(
    server: Connection,
    keys: Keys,
    server_kind: str,
    store: RedisStorage,
    now: int,
    monkeypatch: pytest.MonkeyPatch,
    floor: int | None,
) -> None:
    """Some 64, and not each since 1970, whatever was confirmed when the clocks did not agree."""
    sent: list[Any] = []
    send = server.call_many

    def noted(commands: Sequence[Command], *more: Any) -> list[Any]:
        sent.extend(command for command in commands if "hearsay_forget_ids" in command)
        return send(commands, *more)

    monkeypatch.setattr(server, "call_many", noted)
    worker = another(server, keys, server_kind)
    if floor is not None:
        set_floor(server, keys, floor, now)
    assert worker.forget_ids(0, now + 2 * HOUR) == 0
    if floor is not None:
        set_floor(server, keys, day_of(now), now)
    sent.clear()

    worker.forget_ids(0, now)

    assert floor_of(server, keys) == day_of(now)
    assert 0 < len(sent) <= 64


def test_two_clocks_that_are_wrong_together_move_the_floor_by_one_day_at_most(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str, now: int, old: int
) -> None:
    """By the floor, the real days are those to come: both clocks are twenty days ahead of it."""
    put(server, keys, *range(old - 20, old + 1))
    set_floor(server, keys, day_of(now) - 20, now - 10 * DAY)

    deleted = [store.forget_ids(0, now + second) for second in range(3)]
    restarted = another(server, keys, server_kind).forget_ids(0, now)

    assert (deleted, restarted) == ([2, 0, 0], 0)  # up to the floor that was, and one day more
    assert floor_of(server, keys) == day_of(now) - 19


def test_the_floor_waits_most_of_a_day_between_two_moves(
    store: RedisStorage, server: Connection, keys: Keys, now: int
) -> None:
    today = day_of(now)
    found = []
    for hours in (19, 21):
        set_floor(server, keys, today - 1, now - hours * HOUR)
        store.forget_ids(0, now)
        found.append(floor_of(server, keys))

    assert found == [today - 1, today]


def test_a_floor_that_a_clock_ahead_has_moved_does_not_move_on_when_it_is_set_right(
    store: RedisStorage, server: Connection, keys: Keys, now: int
) -> None:
    """Its last move lies in what is now the future, so the wait begins anew."""
    today = day_of(now)
    set_floor(server, keys, today - 1, now + 20 * DAY)

    store.forget_ids(0, now)
    moved = int(server.call("HGET", keys.state(0), "moved"))

    assert floor_of(server, keys) == today - 1
    assert abs(moved - now) < 60
