"""Ids in buckets: any life against a set of them, growth, size, and what faults must be caught."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Sequence

import pytest

from client_sdk.core.epoch import day_of
from collector.core.config import STANDARD
from collector.core.errors import ForgottenUploadError, ReplacedStoreError, StorageUnavailableError
from collector.storage.connection import Connection
from collector.storage.diagnosis import Diagnosis
from collector.storage.keys import Keys
from collector.storage.preparation import generation_of
from collector.storage.redis import SEEN_DAYS, RedisStorage
from collector.storage.values import SealedUpload
from tests.support.store.cluster import running
from tests.support.store.ids import (
    LIBRARY,
    SMALL,
    Law,
    buckets,
    changed_store,
    day_of_ids,
    member_of,
    remembered,
    secret_of,
    traces,
)
from tests.support.store.servers import REAL, SHARDS, needs_real, own_keys
from tests.support.store.stored import DAY

ID = bytes(16)  # of shard 0, as are all
KNOWN = [bytes(8) + number.to_bytes(8, "big") for number in range(40)]
BYTES = 12  # that an id may take, its part of every key included


def new_id() -> bytes:
    """Return an id of shard 0."""
    return bytes(8) + secrets.token_bytes(8)


def put(store: RedisStorage, ids: Sequence[bytes], day: int = DAY) -> list[bool]:
    return store.append_many([SealedUpload(upload, day, b"e", 1) for upload in ids])


def kept_exactly(store: RedisStorage, server: Connection, keys: Keys) -> None:
    """Law: an id is kept as its member in its bucket and nowhere else.

    Place and member are the first 32 and the next 64 bits of SHA-1 of secret and id.
    """
    ids = [new_id() for _ in range(40)]
    put(store, ids)
    secret, expected = secret_of(server, keys), dict[int, set[int]]()
    first = day_of_ids(server, keys, 0, DAY)["first"]
    for upload in ids:
        place, member = traces(secret, upload)
        expected.setdefault(place % first, set()).add(member)

    assert buckets(server, keys, 0, DAY) == expected


def test_an_id_is_kept_as_its_member_in_its_bucket_and_nowhere_else(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    kept_exactly(store, server, keys)


EDGES = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 10**6 - 1, 10**6, 2**53, 2**53 + 1]
EDGES += [2**63 - 1, 2**63, 2**63 + 1, 2**64 - 10**6, 2**64 - 2, 2**64 - 1]
EDGES += [random.Random(1).getrandbits(bits) for bits in range(1, 65) for _ in range(20)]


@pytest.mark.parametrize("server_kind", ["fake", REAL], indirect=True)
def test_a_member_is_the_text_of_a_64_bit_integer_without_a_bit_lost(server: Connection) -> None:
    """Lua's numbers are exact to 53 bits; another text than the shortest makes a set ten times."""
    [code] = re.findall(r"local function traces_of.*?\nend\n", LIBRARY, re.DOTALL)
    code = code.replace("redis.sha1hex(secret .. id)", "id")
    server.call(
        *("FUNCTION", "LOAD", "REPLACE"),
        f"#!lua name=edges\n{code}redis.register_function('edges', function(_, args)\n"
        "local all = {}\nfor i, digest in ipairs(args) do\n"
        "local place, member = traces_of('', digest)\nall[i] = place .. ' ' .. member\nend\n"
        "return all\nend)",
    )

    members = server.call("FCALL", "edges", 0, *(f"{7:08x}{edge:016x}{0:016x}" for edge in EDGES))

    assert members == [f"7 {member_of(edge)}".encode() for edge in EDGES]
    server.call("FUNCTION", "DELETE", "edges")


def live(store: RedisStorage, steps: int, seed: int = 1, days: int = 3, batch: int = 1) -> None:
    """Append new ids and repeats over a few days; hold each answer against sets of ids."""
    chance, known = random.Random(seed), [dict[bytes, None]() for _ in range(days)]
    for _ in range(steps):
        day = chance.randrange(days)
        ids = [new_id() for _ in range(batch)]
        ids += chance.choices(list(known[day]), k=batch) if known[day] else []
        chance.shuffle(ids)
        for upload, first in zip(ids, put(store, ids, DAY + day), strict=True):
            assert first == (upload not in known[day])
            known[day][upload] = None
    for day in range(days):
        assert not any(put(store, list(known[day]), DAY + day))


def test_an_id_is_first_once_and_a_repeat_ever_after_in_any_life(store: RedisStorage) -> None:
    """Law: as a set of ids of each day."""
    live(store, 60, batch=2)


def grows(store: RedisStorage, server: Connection, keys: Keys) -> None:
    """Law of a day on which many more ids come than were planned: as a set, through all levels."""
    live(store, 60, days=1, batch=2)

    assert remembered(server, keys, 0, DAY) == 120
    assert day_of_ids(server, keys, 0, DAY)["levels"] == 3  # 2, 8 and 32 buckets in all


def test_a_day_grows_by_levels_and_knows_every_id_of_each() -> None:
    grows(*changed_store(SMALL))


PAIR = "tonumber(digest:sub(9, 16), 16), tonumber(digest:sub(17, 24), 16)"
BUGS: dict[str, tuple[Law, tuple[str, str]]] = {
    "half of the bits": (kept_exactly, (PAIR, PAIR.replace("digest:sub(9, 16)", "'0'"))),
    "6 digits of 20": (kept_exactly, ("('%s%d%06d'):format(sign, millions, rest)", "sign .. rest")),
    "half of the id": (kept_exactly, ("secret .. id", "secret .. id:sub(1, 8)")),
    "no secret": (kept_exactly, ("secret .. id", "id")),
    "8 bits": (grows, (PAIR, "0, tonumber(digest:sub(17, 18), 16)")),
    "last level only": (
        grows,
        ("for _ = 1, is_full", "below, size = most / 4, most * 3 / 4 for _ = levels, is_full"),
    ),
    "not remembered": (grows, ("  redis.call('SADD', spot.bucket, spot.member)\n", "")),
    "no new level": (grows, ("seen, 'levels', 1)", "seen, 'levels', spot.first and 1 or 0)")),
    "nothing counted": (grows, ("seen, 'samples', 1)", "seen, 'samples', 0)")),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_day_that_forgets_or_mistakes_an_id_is_caught(bug: str) -> None:
    """The control: the laws above, on libraries with a planted bug."""
    law, change = BUGS[bug]

    with pytest.raises(AssertionError):
        law(*changed_store(SMALL, change))


def test_an_id_takes_twelve_bytes_at_most_and_no_bucket_is_unpacked(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str
) -> None:
    """Also just after a day has grown, when most of its buckets are nearly empty."""
    if server_kind != "real":
        pytest.skip("only a server of its own says what a key takes")
    ids = [new_id() for _ in range(7_000)]
    for first in range(0, len(ids), 500):
        put(store, ids[first : first + 500])

    day = keys.seen(0, DAY)
    names = [f"{day}:{number}" for number in buckets(server, keys, 0, DAY)]
    sizes = [server.call("MEMORY", "USAGE", name, "SAMPLES", 0) for name in (day, *names)]
    table = 16 * len(sizes)  # of the server: a pointer a key, in one that is half full

    assert day_of_ids(server, keys, 0, DAY)["levels"] == 2
    assert {server.call("OBJECT", "ENCODING", name) for name in names} == {b"intset"}
    assert (sum(sizes) + table) / len(ids) <= BYTES
    assert not any(put(store, ids[:500] + ids[-500:]))


@pytest.mark.real
@needs_real
def test_a_server_that_packs_smaller_sets_only_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """At the start and by the doctor; one with its default is not."""
    found = []
    for settings in ({"set-max-intset-entries": "128"}, {}):
        with running(1, [settings]) as [node]:
            caplog.clear()
            storage = RedisStorage(node.connection, own_keys(1), STANDARD)
            storage.prepare()
            [server] = Diagnosis(node.connection, own_keys(1)).servers()
            found.append((server.packed, "set-max-intset-entries=128" in caplog.text))

    assert found == [(128, True), (512, False)]


@pytest.mark.parametrize(
    ("before", "planned"),
    [
        ({}, 16),
        ({7: 288_000, 14: 576_000}, 1_000),
        ({7: 28_800_000, 14: 288_000, 1: 16}, 1_000),
        ({7: 288_000, 1: 576_000, 2: 288_000}, 2_000),
        ({1: 160}, 16),
    ],
    ids=["a first day", "grows", "one flood", "a new fleet", "few"],
)
def test_a_day_begins_with_buckets_for_the_ids_of_days_before(
    store: RedisStorage,
    server: Connection,
    keys: Keys,
    before: dict[int, int],
    planned: int,
) -> None:
    """The lower of the same day of two weeks; without it, the higher of two days."""
    for days, ids in before.items():
        server.call("HSET", keys.seen(0, DAY - days), "samples", ids // 16)

    put(store, [new_id()])

    assert day_of_ids(server, keys, 0, DAY)["first"] == planned


def test_a_shard_that_has_lost_its_secret_takes_nothing(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """Its ids cannot be found: refused, rather than counted twice."""
    put(store, [ID])
    server.call("HDEL", keys.state(0), "secret")

    for upload in (ID, new_id()):
        with pytest.raises(ReplacedStoreError):
            put(store, [upload])


def test_each_shard_has_a_secret_of_its_own_for_good(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """Neither a preparation nor the renewal of another shard changes it."""
    before = [secret_of(server, keys, shard) for shard in range(SHARDS)]
    store.prepare()
    server.call("DEL", keys.state(1))
    store.prepare(renew=True)
    after = [secret_of(server, keys, shard) for shard in range(SHARDS)]

    assert {len(secret) for secret in before + after} == {32}
    assert len(set(before)) == SHARDS
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)
    assert generation_of(server, keys).id


@pytest.mark.parametrize("server_kind", ["fake", REAL], indirect=True)
def test_ids_of_a_bucket_that_is_lost_are_refused_and_not_counted_again(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """As is what is new and would be looked for there; all others go on."""
    ids, secret = [new_id() for _ in range(64)], secret_of(server, keys)
    put(store, ids)
    lost = traces(secret, ids[0])[0] % 16
    server.call("DEL", f"{keys.seen(0, DAY)}:{lost}")
    news = [new_id() for _ in range(64)]

    taken: list[bool | None] = []
    for upload in [*ids, *news]:
        try:
            taken += put(store, [upload])
        except StorageUnavailableError:
            taken.append(None)

    here = [traces(secret, upload)[0] % 16 != lost for upload in [*ids, *news]]
    firsts = [False] * 64 + [True] * 64
    assert taken == [
        first if is_here else None for first, is_here in zip(firsts, here, strict=True)
    ]
    assert taken[0] is None

    server.call("HDEL", keys.seen(0, DAY), str(lost))  # as an operator who gives them up

    assert put(store, [ids[0]]) == [True]


@pytest.fixture
def over(server: Connection, keys: Keys, store: RedisStorage) -> int:
    """A day of buckets that is over, with 1,500 of them; 40 ids are in some."""
    now = store.now(0)
    day = day_of(now) - SEEN_DAYS + 1
    for days in (7, 14):
        server.call("HSET", keys.seen(0, day - days), "samples", 288 * 1_500 // 16)
    put(store, KNOWN, day)
    server.call("HSET", keys.state(0), "floor", day + SEEN_DAYS, "moved", now)
    for days in (7, 14):
        server.call("DEL", keys.seen(0, day - days))
    return day


def left(server: Connection, keys: Keys, day: int) -> int:
    """Return how many of the first 1,500 buckets there are, and one more for the day itself."""
    names = [keys.seen(0, day), *(f"{keys.seen(0, day)}:{n}" for n in range(1_500))]
    return int(server.call("EXISTS", *names))


def test_a_day_of_buckets_is_deleted_whole_and_a_part_a_step(
    store: RedisStorage, server: Connection, keys: Keys, over: int
) -> None:
    """A step deletes 1,000 of them; the next worker goes on where one was killed between two."""
    state, day = keys.state(0), keys.seen(0, over)
    kept = left(server, keys, over)
    step = server.call("FCALL", "hearsay_forget_ids", 2, state, day, over, SEEN_DAYS)
    between = left(server, keys, over)

    with pytest.raises(ForgottenUploadError):
        put(store, [new_id()], over)
    refused = 0
    for upload in KNOWN:  # as a repeat, where its bucket is still there
        try:
            assert put(store, [upload], over) == [False]
        except ForgottenUploadError:
            refused += 1
    deleted = store.forget_ids(0, store.now(0))

    assert (step, deleted) == (2, 1)
    assert refused > 0
    assert kept > between > left(server, keys, over) == 0
    assert store.forget_ids(0, store.now(0)) == 0
    with pytest.raises(ForgottenUploadError):
        put(store, [ID], over)


def test_a_day_of_buckets_that_is_not_over_is_kept(
    store: RedisStorage, server: Connection, keys: Keys, over: int
) -> None:
    server.call("HSET", keys.state(0), "floor", over + SEEN_DAYS - 1)
    before = left(server, keys, over)

    assert store.forget_ids(0, store.now(0)) == 0
    assert left(server, keys, over) == before
    assert put(store, [ID], over) == [False]


def test_a_live_day_that_is_deleted_is_caught() -> None:
    """The control: a step that does not ask for the floor."""
    check = "if not state[1] or tonumber(state[1]) < day + tonumber(args[2]) then return 0 end"
    store, _, keys = changed_store((check, ""))
    day = day_of(store.now(0)) - 3
    put(store, [ID], day)

    store._call("FCALL", "hearsay_forget_ids", 2, keys.state(0), keys.seen(0, day), day, SEEN_DAYS)

    with pytest.raises(ForgottenUploadError):
        put(store, [ID], day)
