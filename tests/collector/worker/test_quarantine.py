"""What is set aside can be listed, queued again and dropped, by name or all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from collector.cli import main
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import RequestError
from collector.demo.embedded import EmbeddedStore
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.worker.quarantine import drop, listed, name_of, retry
from tests.support.crowds.uploads import registry, registry_text
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import DAY, NOBODY_LEFT_IT, quarantined

CELL = Cell(registry().metric("page").digest, 3, "")
ENTRIES = [encode([AcceptedColumn(CELL, bytes(number + 1))]) for number in range(3)]


@pytest.fixture
def inspection(store: RedisStorage, server: Connection, keys: Keys) -> RedisInspection:
    """A store with three uploads set aside."""
    set_aside(store)
    return RedisInspection(server, keys)


def set_aside(store: RedisStorage) -> None:
    for number in range(3):
        shard = number % store.shards
        upload_id = shard.to_bytes(8, "big") + number.to_bytes(8, "big")
        store.append(upload_id, DAY, ENTRIES[number], number + 1)
        [claimed] = store.claim(shard, "one", 1, NOBODY_LEFT_IT)
        store.quarantine(shard, claimed.id, f"reason {number}")


def test_each_entry_is_listed_with_its_reports_and_reason(inspection: RedisInspection) -> None:
    """And with a name by which it is queued again or dropped."""
    found = {(one.reports, one.reason, one.entry) for one in listed(inspection)}

    assert found == {(i + 1, f"reason {i}", entry) for i, entry in enumerate(ENTRIES)}


def test_entries_are_moved_by_name_once(store: RedisStorage, inspection: RedisInspection) -> None:
    """A second try of the same name moves nothing."""
    first, second, _ = [name_of(one) for one in listed(inspection)]

    moved = [
        retry(inspection, [first, first]),
        drop(inspection, [second]),
        retry(inspection, [second]),
    ]

    assert moved == [1, 1, 0]
    assert (store.backlog(), quarantined(store)) == (1, 1)


@pytest.mark.parametrize("move", [retry, drop])
def test_all_that_is_there_can_be_moved(
    store: RedisStorage,
    inspection: RedisInspection,
    move: Callable[[RedisInspection, list[str]], int],
) -> None:
    """However many shards it is in."""
    assert move(inspection, ["all"]) == 3
    assert quarantined(store) == 0
    assert sum(one.drift for one in store.counters()) == 0


@pytest.mark.parametrize(
    "name", ["", "7", "0/", "0/7", "x/1-1", "0/1-1-1", "9/1-1", "0/$", "-1/1-1"]
)
def test_a_name_that_is_none_is_refused(inspection: RedisInspection, name: str) -> None:
    """Before it reaches the store."""
    with pytest.raises(RequestError, match="entry: "):
        drop(inspection, [name])


@pytest.fixture
def prefix(real_store: EmbeddedStore) -> str:
    """A prepared store of its own with three uploads set aside."""
    keys = own_keys(shards=4)
    connection = Connection.open(real_store.url)
    storage = RedisStorage(connection, keys)
    storage.prepare()
    set_aside(storage)
    connection.close()
    return keys.prefix


@needs_real
@pytest.mark.real
def test_the_commands_do_what_the_functions_do(
    real_store: EmbeddedStore, prefix: str, tmp_path: Path
) -> None:
    """fsck exits with 0 on a sound store, and with 1 and the reason on a damaged one."""
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    environment = {
        "HEARSAY_REGISTRY": str(path),
        "HEARSAY_PREFIX": prefix,
        "REDIS_URL": real_store.url,
    }

    def hearsay(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments, env=environment)

    lines = hearsay("quarantine", "list").output.splitlines()
    queued = hearsay("quarantine", "retry", lines[0].split()[0])
    dropped = hearsay("quarantine", "drop", "--yes", "all")
    refused = hearsay("quarantine", "drop", "all")
    sound = hearsay("fsck")
    connection = Connection.open(real_store.url)
    connection.call("HINCRBY", Keys(prefix, 4).counters(0), "accepted.uploads", 1)
    connection.close()
    damaged = hearsay("fsck")

    assert len(lines) == 3
    assert queued.output == "1 queued again\n"
    assert dropped.output == "2 dropped\n"
    assert refused.exit_code == 1
    assert "1 pending" in sound.output
    assert sound.exit_code == 0
    assert damaged.exit_code == 1
    assert "shard=0: holds" in damaged.output
