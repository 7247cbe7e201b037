"""Kill workers and drains again and again: ``python -m tests.support.store.archive_killing``.

Arguments: address and prefix of the store, folder of the archive, number of kills.  Uploads come
in while the children work; the children that are not killed finish what is left.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Final

from collector.core.config import STANDARD
from collector.core.errors import ArchiveError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.worker.worker import Pace, Worker
from tests.support.store.archives import EVERY, MECHANISMS, Desk

UPLOADS: Final = 60  # a kill
_WORKING: Final = 0.03  # seconds that a child has on average


def _desk(url: str, prefix: str, path: str) -> Desk:
    return Desk(Connection.open(url), Keys(prefix, 2), STANDARD, Path(path))


def _work(desk: Desk) -> None:
    worker = Worker(desk.storage, MECHANISMS, EVERY, pace=Pace(min_idle_ms=0, most_entries=5))
    while True:
        worker.step()


def _drain(desk: Desk) -> None:
    while True:
        try:
            desk.drain(size=300)
        except ArchiveError:  # a killed one is not yet gone, and still has the lock
            time.sleep(0.001)


def main(url: str, prefix: str, path: str, kills: int) -> None:
    """Let children work, kill each at a moment nobody chose, then finish."""
    chance = random.SystemRandom()
    desk = _desk(url, prefix, path)
    for number in range(kills):
        desk.upload(random.Random(number), UPLOADS)
        children = []
        for role in (_work, _drain):
            child = os.fork()
            if child == 0:
                role(_desk(url, prefix, path))
            children.append(child)
        time.sleep(2 * _WORKING * chance.random())
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    desk.work()
    desk.drain()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
