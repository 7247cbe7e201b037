"""A store whose memory is full: workers can start and fold, which is what makes room again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collector.config import STANDARD
from collector.errors import StorageFullError
from collector.storage.connect import open_storage
from collector.storage.redis import RedisStorage
from tests.support.cluster import Node, running
from tests.support.fold_model import CELL
from tests.support.servers import needs_real
from tests.support.stored import DAY, NOBODY_LEFT_IT

pytestmark = [pytest.mark.real, needs_real]


@pytest.fixture
def node() -> Iterator[Node]:
    with running(1, [{}]) as [alone]:
        yield alone


def storage_at(node: Node) -> RedisStorage:
    return open_storage(f"redis://{node.address}/0", "full", 1, STANDARD)


def fill(node: Node) -> None:
    node.connection.call("CONFIG", "SET", "maxmemory", 1)


def test_a_worker_that_starts_while_memory_is_full_folds(node: Node) -> None:
    """A restart must not need the room that only the worker can make."""
    before = storage_at(node)
    before.prepare()
    before.append(bytes(16), DAY, b"entry", 1)
    fill(node)

    after = storage_at(node)
    after.prepare()
    [claimed] = after.claim(0, "one", 9, NOBODY_LEFT_IT)

    assert after.fold(0, [claimed.id], {CELL: [(0, 1)]}) == ()
    assert after.backlog() == 0


def test_a_store_that_was_never_prepared_cannot_be_while_memory_is_full(node: Node) -> None:
    """That it can start then must not mean that it starts without its library."""
    fill(node)

    with pytest.raises(StorageFullError):
        storage_at(node).prepare()
