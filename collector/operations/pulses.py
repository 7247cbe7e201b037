"""Web processes that hang are ended by the one that started them, which starts them anew.

All of them listen on one port, so none can be asked by itself.  Instead the event loop of each,
which answers /livez, touches a file of its own.  No clock is read: a file counts as untouched if
its time is the same at several looks, so a machine that slept ends nothing.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

LOOK_S: Final = 5.0  # seconds between two looks; a loop beats twice a second
MISSES: Final = 4  # looks in a row at which a process has not beaten, before it is ended
_FOLDER: Final = "_HEARSAY_PULSES"  # of the environment, between the two processes only


def pulse() -> Callable[[], None]:
    """Return what a web process is to call as long as its event loop runs."""
    folder = os.environ.get(_FOLDER)
    path = Path(folder) / str(os.getpid()) if folder else None

    def beat() -> None:
        with suppress(OSError):  # a full disk: then all are taken for alive, see Pulses
            if path is not None:
                path.touch()

    return beat


class Pulses:
    """When each process has beaten last, by its file in *folder*."""

    def __init__(self, folder: Path) -> None:
        """Know of none yet."""
        self._folder = folder
        self._last: dict[int, tuple[int, int]] = {}  # time of the file, and looks since it changed

    def silent(self, pids: Collection[int]) -> list[int]:
        """Look once; return which of *pids* have missed MISSES looks.

        One without a file is still starting.
        """
        looks: dict[int, tuple[int, int]] = {}
        for pid in pids:
            with suppress(OSError):
                touched = (self._folder / str(pid)).stat().st_mtime_ns
                before, missed = self._last.get(pid, (0, 0))
                looks[pid] = touched, missed + 1 if touched == before else 0
        self._last = looks
        return [pid for pid, (_, missed) in looks.items() if missed >= MISSES]


@contextmanager
def watched(processes: Callable[[], Sequence[Any]], tell: Callable[[int], None]) -> Iterator[None]:
    """Kill each of the *processes* that hangs, and *tell* its id first.

    Args: processes: returns those of the server that run now.
    """
    with tempfile.TemporaryDirectory(prefix="hearsay-") as folder:
        os.environ[_FOLDER] = folder
        ended = threading.Event()

        def watch() -> None:
            pulses = Pulses(Path(folder))
            while not ended.wait(LOOK_S):
                running = {process.inner.pid: process for process in list(processes())}
                for pid in pulses.silent(running.keys() - {None}):
                    tell(pid)
                    running[pid].inner.kill()  # that of the server would start none anew

        threading.Thread(target=watch, name="pulses", daemon=True).start()
        try:
            yield
        finally:
            ended.set()
