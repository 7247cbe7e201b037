"""Key names: one step touches one slot, and no other deployment's keys."""

from __future__ import annotations

import hashlib
import re
import secrets

import pytest

from collector.core.cells import Cell
from collector.core.errors import ConfigError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.store.servers import RecordingConnection, profile_of

METRIC = b"\x01\x02\x03\x04\x05\x06"


def tag_of(key: object) -> str:
    """Return what Redis Cluster hashes of *key*: the text between the first braces."""
    found = re.search(r"\{([^}]+)\}", str(key))
    assert found, key
    return found[1]


def test_keys_of_one_step_share_a_tag_and_carry_the_prefix(
    server: Connection, keys: Keys, server_kind: str
) -> None:
    recording = RecordingConnection(server)
    store = RedisStorage(recording, keys, profile_of(server_kind))
    store.prepare()
    cells = [Cell(METRIC, e, s) for e in (1, 2) for s in ("", "odd={9}")]
    for _ in range(12):
        store.append(secrets.token_bytes(16), 30_000, b"entry", 1)
    for shard in range(store.shards):
        first, *others = store.claim(shard, "one", 20, 3_600_000)
        store.quarantine(shard, first.id, "why")
        store.fold(shard, [one.id for one in others], {cell: [(0, 1)] for cell in cells})
        store.now(shard)
        store.forget_ids(shard, store.now(shard))
    store.ping()
    store.retire("one")
    store.sweep(0)
    store.destroy()

    steps = [c for c in recording.commands if c[0] == "FCALL" and c[2]]
    declared = {command[1]: command[3 : 3 + int(command[2])] for command in steps}
    assert set(declared) == {
        f"hearsay_{step}"
        for step in (
            *("append_checked", "claim", "fold_sparse", "quarantine_counted"),
            *("retire", "sweep", "now", "confirm_day", "forget_ids", "ready_checked", "establish"),
        )
    }
    for command in steps:
        names = command[3 : 3 + int(command[2])]
        if names == (keys.generation,):  # of no shard, and alone
            continue
        assert len({tag_of(name) for name in names}) == 1
        assert all(str(name).startswith(f"{keys.prefix}:{{") for name in names)


def test_keys_of_a_fold_tell_cells_apart() -> None:
    keys = Keys("hearsay", 4)
    cells = [Cell(m, e, s) for m in (METRIC, METRIC[::-1]) for e in (1, 11) for s in ("", "1", "a")]

    assert len({keys.tally(2, cell) for cell in cells}) == len(cells)


def test_shards_of_random_ids_are_even() -> None:
    keys = Keys("hearsay", 4)
    counts = [0] * 4
    for i in range(4_000):
        counts[keys.shard_of(hashlib.sha256(b"%d" % i).digest()[:16])] += 1

    assert min(counts) > 900


@pytest.mark.parametrize("prefix", ["", "a{b", "a}b", "a*", "a b", "a[1]", "ä", "x" * 65])
def test_keys_refuse_a_prefix_that_could_move_a_tag_or_match_others(prefix: str) -> None:
    with pytest.raises(ConfigError, match="prefix="):
        Keys(prefix, 4)


def test_keys_refuse_no_shards() -> None:
    with pytest.raises(ConfigError, match="shards=0"):
        Keys("hearsay", 0)


@pytest.mark.parametrize("segment", ["", "a=b", "odd={9}:x=* y\n", "land=Österreich", ":", "0:"])
def test_the_key_of_a_tally_tells_its_shard_and_cell(segment: str) -> None:
    """So that a scan of the keys knows what it has found; other keys are none of its business."""
    keys = Keys("hearsay", 4)
    cell = Cell(METRIC, -7, segment, 3)

    assert keys.place_of(keys.tally(2, cell)) == (2, cell)
    assert keys.index_of(keys.cells(2, METRIC, -7)) == (2, METRIC, -7)
    assert keys.place_of(keys.cells(2, METRIC, -7)) is None
    assert keys.index_of(keys.tally(2, cell)) is None
    assert keys.place_of(keys.stream(0)) is None
