"""fsck finds what no step leaves behind; what is set aside is listed, queued again, dropped."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner, Result

from client_sdk.registry.metric import Metric
from collector.cli import main
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import RequestError
from collector.demo.embedded import EmbeddedStore
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.protocols import Inspection
from collector.storage.redis import RedisStorage
from collector.worker.fsck import accept_missing, fsck
from collector.worker.quarantine import drop, listed, name_of, retry
from collector.worker.worker import Worker
from tests.support.crowds.uploads import registry, registry_text
from tests.support.store.ids import buckets
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import DAY, NOBODY_LEFT_IT, pack, quarantined, tallies

Damage: TypeAlias = Callable[[RedisStorage, Connection, Keys], object]

METRICS = dict(registry().by_digest)
PAGE: Metric = registry().metric("page")
BEYOND = DAY * 10  # an epoch far ahead, so that nothing is late


def page_cell(epoch: int = BEYOND) -> Cell:
    return Cell(PAGE.digest, epoch, "platform=mac")


ENTRY = encode([AcceptedColumn(page_cell(3), bytes([0, 1, 2]))])


def put(store: RedisStorage, shard: int, entry: bytes, reports: int) -> None:
    store.append(shard.to_bytes(8, "big") + secrets.token_bytes(8), DAY, entry, reports)


@pytest.fixture
def used(store: RedisStorage) -> RedisStorage:
    """A store with six reports folded, three pending and three set aside on each shard."""
    entry = encode([AcceptedColumn(page_cell(), bytes([0, 1, 2]))])
    mechanisms = {digest: metric.mechanism for digest, metric in METRICS.items()}
    every = {digest: metric.every for digest, metric in METRICS.items()}
    for shard in range(store.shards):
        for _ in range(2):
            put(store, shard, entry, 3)
    Worker(store, mechanisms, every).step()
    for shard in range(store.shards):
        put(store, shard, entry, 3)
        [claimed] = store.claim(shard, "one", 1, NOBODY_LEFT_IT)
        store.quarantine(shard, claimed.id, "why")
        put(store, shard, entry, 3)
    return store


def findings(server: Connection, keys: Keys) -> list[str]:
    inspection: Inspection = RedisInspection(server, keys)
    return [str(one) for one in fsck(inspection, METRICS)]


def test_a_sound_store_has_no_findings(used: RedisStorage, server: Connection, keys: Keys) -> None:
    """Whatever has been folded, set aside, queued again or dropped."""
    sound = findings(server, keys)
    inspection = RedisInspection(server, keys)
    for shard in range(used.shards):
        [aside] = inspection.set_aside(shard)
        (inspection.requeue if shard else inspection.drop)(shard, aside.id)

    assert sound == []
    assert findings(server, keys) == []


def first_id(server: Connection, stream: str) -> str:
    return str(server.call("XRANGE", stream, "-", "+", "COUNT", 1)[0][0].decode())


def put_wrong(store: RedisStorage, entry: bytes, reports: int) -> None:
    put(store, 0, entry, reports)


def delete_bucket(server: Connection, keys: Keys) -> None:
    """Delete a bucket of ids of shard 0, as nobody does."""
    [number, *_] = buckets(server, keys, 0, DAY)
    server.call("DEL", f"{keys.seen(0, DAY)}:{number}")


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a bucket of ids is deleted": (
        lambda store, server, keys: delete_bucket(server, keys),
        "buckets of upload ids are gone",
    ),
    "an entry is deleted": (
        lambda store, server, keys: server.call(
            "XDEL", keys.stream(0), first_id(server, keys.stream(0))
        ),
        "shard=0: holds 0 uploads pending, has counted 1",
    ),
    "an entry set aside is deleted": (
        lambda store, server, keys: server.call(
            "XDEL", keys.quarantine(0), first_id(server, keys.quarantine(0))
        ),
        "shard=0: holds 0 uploads set aside, has counted 1",
    ),
    "an entry says another number of reports": (
        lambda store, server, keys: put_wrong(store, ENTRY, 4),
        "holds 3 reports, says 4",
    ),
    "an entry is damaged": (
        lambda store, server, keys: put_wrong(store, ENTRY[:-1] + b"\xff", 3),
        "entry.checksum: does not match the body",
    ),
    "a folded count is changed": (
        lambda store, server, keys: server.call("HINCRBY", keys.counters(1), "folded.reports", 1),
        "shard=1: holds 6 reports folded, has counted 7",
    ),
    "a bit of a tally is flipped": (
        lambda store, server, keys: server.call("SETBIT", keys.tally(0, page_cell()), 127, 1),
        "lateness=0: tally: entries must be at least 0 and add up to n=6",
    ),
    "the number of reports of a tally is changed": (
        lambda store, server, keys: server.call("SETRANGE", keys.tally(0, page_cell()), 7, "\x07"),
        "shard=0: holds 7 reports folded, has counted 6",
    ),
    "a tally is cut": (
        lambda store, server, keys: server.call("SET", keys.tally(0, page_cell()), pack(6)[:-1]),
        "vector: must be at most 4 counters of 8 bytes",
    ),
    "a tally is deleted": (
        lambda store, server, keys: server.call("DEL", keys.tally(0, page_cell())),
        "its tally is gone, and 6 reports with it; if it was deleted on purpose, hearsay fsck",
    ),
    "a tally is of another type": (
        lambda store, server, keys: (
            server.call("DEL", keys.tally(0, page_cell())),
            server.call("LPUSH", keys.tally(0, page_cell()), "x"),
        ),
        "is indexed, but its tally is not readable",
    ),
    "an index is deleted": (
        lambda store, server, keys: server.call("DEL", keys.cells(0, PAGE.digest, BEYOND)),
        "is not indexed",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found_and_named(
    used: RedisStorage, server: Connection, keys: Keys, name: str
) -> None:
    """With shard, and metric or entry, so that an operator knows where to look."""
    damage, expected = DAMAGES[name]
    damage(used, server, keys)

    found = findings(server, keys)

    assert any(expected in one for one in found), found
    assert all("shard=" in one for one in found)


def test_tallies_of_metrics_that_no_registry_has_any_more_are_counted_and_not_judged(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """A retired metric is no fault."""
    retired = Cell(b"\x09" * 6, 3, "")
    put(store, 0, b"\0", 2)
    [claimed] = store.claim(0, "one", 1, NOBODY_LEFT_IT)
    store.fold(0, [claimed.id], {retired: [(0, 2), (1, 7)]})

    assert findings(server, keys) == []


def test_each_definition_of_a_metric_is_counted_in_an_epoch_that_has_several(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """They have the same name, epoch and segment, as after a change of ε within the epoch."""
    changed: Metric = registry("2.0").metric("page")
    for metric, n in ((PAGE, 2), (changed, 3)):
        put(store, 0, ENTRY, n)
        [claimed] = store.claim(0, "one", 1, NOBODY_LEFT_IT)
        store.fold(0, [claimed.id], {Cell(metric.digest, BEYOND, ""): [(0, n), (1, n)]})
    known = {**METRICS, changed.digest: changed}
    inspection = RedisInspection(server, keys)
    sound = list(fsck(inspection, known))

    server.call("DEL", keys.tally(0, Cell(changed.digest, BEYOND, "")))
    [lost] = fsck(inspection, known)

    assert sound == []
    assert "and 3 reports with it" in str(lost)
    assert f"metric=page@{changed.digest.hex()[:8]} epoch={BEYOND}" in str(lost)


def test_a_tally_deleted_by_hand_is_one_finding_until_its_loss_is_accepted(
    used: RedisStorage, server: Connection, keys: Keys
) -> None:
    """Afterwards the store is sound, and the reports stand in its counts as lost."""
    server.call("DEL", keys.tally(0, page_cell()))
    found = findings(server, keys)

    lost = accept_missing(RedisInspection(server, keys))

    assert len(found) == 1
    assert lost == [6, 0]
    assert findings(server, keys) == []
    assert [one.lost_reports for one in used.counters()] == [6, 0]
    assert tallies(used, PAGE.digest, [BEYOND]).keys() == {page_cell()}


def test_a_tally_that_is_gone_with_its_index_can_be_accepted_too(
    used: RedisStorage, server: Connection, keys: Keys
) -> None:
    server.call("DEL", keys.tally(1, page_cell()))
    server.call("DEL", keys.cells(1, PAGE.digest, BEYOND))
    found = findings(server, keys)

    lost = accept_missing(RedisInspection(server, keys))

    assert found == ["shard=1: holds 0 reports folded, has counted 6"]
    assert (lost, findings(server, keys)) == ([0, 6], [])


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
