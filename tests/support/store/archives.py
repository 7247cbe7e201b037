"""A store with an archive, on a real server, and the pieces that fill and compare it."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from collector.core.cells import RELAYED, Cell, segment_text
from collector.core.entry import AcceptedColumn, encode
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.archive.drain import drain
from collector.worker.archive.files import Folder
from collector.worker.archive.refold import Comparison, Engine, add, compare, tally_file
from collector.worker.worker import Pace, Worker
from tests.support.crowds.uploads import TODAY, registry

METRICS: Final = {metric.digest: metric for metric in registry()}
MECHANISMS: Final = {digest: metric.mechanism for digest, metric in METRICS.items()}
EVERY: Final = {digest: metric.every for digest, metric in METRICS.items()}
PAGE: Final = registry().metric("page")
OPTED_IN: Final = registry().metric("opted_in")
SEALED: Final = 30_000  # in 2052, so that no server forgets its ids


class Desk:
    """One deployment with an archive in *path*."""

    def __init__(self, server: Connection, keys: Keys, profile: str, path: Path) -> None:
        self.storage = RedisStorage(server, keys, profile, archived=True)
        self.plain = RedisStorage(server, keys, profile)
        self.queue = RedisArchiveQueue(server, keys)
        self.inspection = RedisInspection(server, keys)
        self.path, self.server, self.keys = path, server, keys

    def upload(self, chance: random.Random, uploads: int) -> None:
        """Append uploads of two metrics, in two segments, several epochs, and of two sources."""
        sealed = []
        for _ in range(uploads):
            columns = [
                AcceptedColumn(_cell(chance), bytes([chance.randrange(3)])),
                AcceptedColumn(Cell(OPTED_IN.digest, 0, ""), bytes(chance.choices([0, 1], k=2))),
            ]
            sealed.append(SealedUpload(secrets.token_bytes(16), SEALED, encode(columns), 3))
        self.storage.append_many(sealed)

    def work(self, storage: RedisStorage | None = None) -> None:
        """Fold whatever there is."""
        pace = Pace(min_idle_ms=0, most_entries=7)
        worker = Worker(storage or self.storage, MECHANISMS, EVERY, pace=pace)
        while self.storage.backlog():
            worker.step()

    def drain(self, size: int = 2_000) -> int:
        """Write what waits to files."""
        return drain(self.queue, Folder(self.path), MECHANISMS, lambda: None, size)

    def compare(self, engine: Engine | None = None, since: int | None = None) -> Comparison:
        """Refold without an engine of its own, and compare."""
        today = self.storage.now(0) // 86_400
        return compare(
            self.queue,
            self.inspection,
            Folder(self.path),
            METRICS,
            engine or in_this_process,
            today=today,
            since=since,
        )


def in_this_process(files: Sequence[Path], mechanisms: object) -> dict[tuple[int, Cell], bytes]:
    """Refold one file after the other."""
    return add([tally_file(path, MECHANISMS) for path in files], MECHANISMS)


def _cell(chance: random.Random) -> Cell:
    segments = "", "linux", "mac", segment_text(PAGE, {"platform": "mac"}, frozenset({RELAYED}))
    return Cell(PAGE.digest, TODAY + chance.randrange(4), chance.choice(segments))
