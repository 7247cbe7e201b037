"""Web processes that hang are ended by the one that started them, which starts them anew.

All of them listen on one port, so none can be asked by itself.  Instead the event loop of each,
which answers /livez, touches a file of its own.  No clock is read: a file counts as untouched if
its time is the same at several looks, so a machine that slept ends nothing.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

LOOK_S: Final = 5.0  # seconds between two looks; a loop beats twice a second
MISSES: Final = 4  # looks in a row at which a process has not beaten, before it is ended
STARTING: Final = 60  # such looks without any beat, while a process may still be starting
_log = logging.getLogger("hearsay.serving")
_FOLDER: Final = "_HEARSAY_PULSES"  # of the environment, between the two processes only


def pulse() -> Callable[[], None]:
    """Return what a web process is to call as long as its event loop runs."""
    folder = os.environ.get(_FOLDER)
    path = Path(folder) / str(os.getpid()) if folder else None

    def beat() -> None:
        with suppress(OSError):  # as on a full disk, where Pulses takes all for alive
            if path is not None:
                path.touch()

    return beat


class Pulses:
    """When each process has beaten last, by its file in *folder*."""

    def __init__(self, folder: Path) -> None:
        """Know of none yet."""
        self._folder, self._own = folder, folder / "looks"
        self._last: dict[int, tuple[int, int]] = {}  # time of the file, and looks since it changed

    def silent(self, pids: Collection[int]) -> list[int]:
        """Look once; return which of *pids* have missed MISSES looks.

        One without a file is still starting, for STARTING looks.  Where no file can be touched,
        none is silent.
        """
        before = self._own.stat().st_mtime_ns if self._own.exists() else 0
        with suppress(OSError):
            self._own.touch()
        if not self._own.exists() or self._own.stat().st_mtime_ns == before:
            self._last = {}
            return []
        looks: dict[int, tuple[int, int]] = {}
        for pid in pids:
            touched = 0
            with suppress(OSError):
                touched = (self._folder / str(pid)).stat().st_mtime_ns
            last, missed = self._last.get(pid, (touched - 1, 0))
            looks[pid] = touched, missed + 1 if touched == last else 0
        self._last = looks
        most = {True: MISSES, False: STARTING}
        return [pid for pid, (at, missed) in looks.items() if missed >= most[at > 0]]


@contextmanager
def watched(processes: Callable[[], Sequence[Any]], tell: Callable[[int], None]) -> Iterator[None]:
    """Kill each of the *processes* that hangs, and *tell* its id first.

    Args: processes: returns those of the server that run now.
    """
    try:
        temporary = tempfile.TemporaryDirectory(prefix="hearsay-")
    except OSError:
        _log.warning("a web process that hangs is not noticed: no temporary folder is writable")
        yield
        return
    with temporary as folder:
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
