"""The controls of every other test here: an oracle that could not fail would prove nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.core.config import STANDARD
from collector.storage.connect import open_storage
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.crowds.fleet import stored_tallies, tallies_of
from tests.support.faults.folding import append, fold, sealed_of
from tests.support.faults.oracle import Comparison, compared
from tests.support.faults.reports import REGISTRY, upload_of
from tests.support.store.cluster import Node
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

UPLOADS = 20
KEYS = Keys("oracle", 2)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    running = Node(tmp_path, {})
    running.start()
    yield running
    running.stop()


@pytest.fixture
def storage(node: Node) -> RedisStorage:
    """A prepared, empty store."""
    opened = open_storage(f"redis://{node.address}/0", KEYS.prefix, KEYS.shards, STANDARD)
    opened.prepare()
    return opened


def uploads() -> dict[bytes, bytes]:
    chance = random.Random(5)
    return dict(upload_of(serial, chance) for serial in range(UPLOADS))


def comparison(node: Node, storage: RedisStorage, bodies: dict[bytes, bytes]) -> Comparison:
    return compared(storage, RedisInspection(node.connection, KEYS), bodies)


def test_the_oracle_is_content_when_all_is_counted_once(node: Node, storage: RedisStorage) -> None:
    """The tallies are not merely both empty."""
    bodies = uploads()

    append(storage, bodies.values())
    fold(storage)

    assert comparison(node, storage, bodies) == Comparison(UPLOADS, 0, 0, 0, ())
    assert tallies_of(bodies.values(), REGISTRY) == stored_tallies(
        storage, REGISTRY, bodies.values()
    )


def test_the_oracle_notices_an_upload_that_is_lost(node: Node, storage: RedisStorage) -> None:
    """One of them, acknowledged and never appended."""
    bodies = uploads()
    kept = dict(list(bodies.items())[1:])

    append(storage, kept.values())
    fold(storage)

    found = comparison(node, storage, bodies)
    assert (found.lost, found.twice) == (1, 0)
    assert not found.equal


def test_the_oracle_notices_an_upload_that_is_counted_twice(
    node: Node, storage: RedisStorage
) -> None:
    """One of them, under another id: as if its id had been forgotten."""
    bodies = uploads()
    append(storage, bodies.values())
    fold(storage)
    repeated = sealed_of(next(iter(bodies.values())))

    storage.append_many([repeated._replace(upload_id=bytes(16))])
    fold(storage)

    found = comparison(node, storage, bodies)
    assert (found.lost, found.twice) == (0, 1)


def test_the_oracle_notices_half_an_upload(node: Node, storage: RedisStorage) -> None:
    """A tally that is short of one report, while the upload's own cell is right."""
    bodies = uploads()
    append(storage, bodies.values())
    fold(storage)

    scarred = _first_key(node.connection, storage)
    node.connection.call("BITFIELD", scarred, "INCRBY", "i64", "#1", -1)

    found = comparison(node, storage, bodies)
    assert (found.lost, found.twice) == (0, 0)
    assert found.torn >= 1


def _first_key(connection: Connection, storage: RedisStorage) -> str:
    """Return the key of a tally of another metric than the unique one."""
    metric = REGISTRY.metrics["m0"]
    for shard in range(storage.shards):
        pattern = f"{KEYS.prefix}:{{{shard}}}:tally:{metric.digest.hex()}:*"
        for name in connection.call("KEYS", pattern):
            return str(name.decode())
    raise AssertionError("no tally of m0")
