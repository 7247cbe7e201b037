"""A store that dies while its disk stalls keeps what was acknowledged."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from collector.core.config import STANDARD, VOLATILE
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.patience import wait_for
from tests.support.sites.watching import needs_strace
from tests.support.store.cluster import Node
from tests.support.store.processes import until_ended

pytestmark = [pytest.mark.whole, needs_strace]

_STALL_US: Final = 1_500_000  # of each sync: longer than it is until the next is due


@contextmanager
def stalling(node: Node, folder: Path) -> Iterator[None]:
    """Make each sync of the server's log take longer, until the block ends."""
    pid = int(of_server(node, "process_id", section="server"))
    told = folder / "attached"
    command = [
        *(str(shutil.which("strace")), "-f", "-p", str(pid), "-o", "/dev/null"),
        *("-e", "trace=fdatasync,fsync"),
        *("-e", f"inject=fdatasync,fsync:delay_enter={_STALL_US}"),
    ]
    with told.open("wb") as said:
        tracer = subprocess.Popen(command, stdout=said, stderr=said)
    with until_ended(tracer):
        wait_for(lambda: b"attached" in told.read_bytes(), told.read_text, running=(tracer,))
        yield


def of_server(node: Node, name: str, section: str = "persistence") -> str:
    """Return what the server says of itself."""
    info: str = node.connection.call("INFO", section).decode()
    return dict(line.split(":", 1) for line in info.split() if ":" in line)[name]


def id_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_a_store_that_is_prepared_while_its_disk_stalls_stays_prepared(tmp_path: Path) -> None:
    node = Node(tmp_path, {"appendfsync": "everysec"})
    node.start()
    try:
        storage = RedisStorage(node.connection, Keys("stalled", 4), STANDARD)
        with stalling(node, tmp_path):
            node.connection.call("SET", "other", 0)
            wait_for(lambda: of_server(node, "aof_pending_bio_fsync") == "1")
            storage.prepare()
            node.signal(signal.SIGKILL)
            node.stop()
        node.start()
        groups = [
            node.connection.call("EXISTS", Keys("stalled", 4).stream(shard)) for shard in range(4)
        ]
    finally:
        node.stop()
        node.connection.close()

    assert groups == [1, 1, 1, 1]


@pytest.mark.parametrize(("profile", "is_kept"), [(STANDARD, True), (VOLATILE, False)])
def test_what_is_acknowledged_while_the_disk_stalls_outlives_the_store(
    tmp_path: Path, profile: str, is_kept: bool
) -> None:
    """Law: with a log synced every second, too; who does not ask for the log loses uploads."""
    day = int(time.time() // 86_400)
    node = Node(tmp_path, {"appendfsync": "everysec"})
    node.start()
    try:
        storage = RedisStorage(node.connection, Keys("stalled", 1), profile)
        RedisStorage(node.connection, Keys("stalled", 1), STANDARD).prepare()
        storage.prepare()
        with stalling(node, tmp_path):
            for number in range(4):
                node.connection.call("SET", "other", number)
                wait_for(lambda: of_server(node, "aof_pending_bio_fsync") == "1")
                assert storage.append(id_of(number), day, b"entry", 1)
            node.signal(signal.SIGKILL)
            node.stop()
        node.start()
        known = [not storage.append(id_of(number), day, b"entry", 1) for number in range(4)]
    finally:
        node.stop()
        node.connection.close()

    assert all(known) == is_kept
