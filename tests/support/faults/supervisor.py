"""Keeps processes running as an init system does: whoever ends is started again at once."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from collector.operations.parent_death import die_with_parent
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.processes import descendants

POLL: Final = 0.05  # seconds until an ended process is noticed
WHOLE: Final = "whole"  # a process and its children: their machine has ended
FIRST: Final = "first"  # the process that was started
CHILDREN: Final = "children"  # those that it started; it starts others, or ends by itself
PARTS: Final = (WHOLE, FIRST, CHILDREN)


class Supervised:
    """One process, under a number that changes with each start."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.command, self.environment = list(command), dict(environment)
        self.keep = True  # whether it is started again when it ends
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None

    def kill(self, part: str = WHOLE) -> None:
        """Kill the process, what it started, or both; return when these have ended."""
        process = self.process
        if process is None:
            return
        children = descendants(process.pid) if part == CHILDREN else set()
        with suppress(ProcessLookupError):
            if part == WHOLE:
                os.killpg(process.pid, signal.SIGKILL)
            for pid in children or {process.pid}:
                os.kill(pid, signal.SIGKILL)
        if not children:
            process.wait(PATIENCE)
        wait_for(lambda: not children & descendants(process.pid))


class Supervisor:
    """A thread that starts and restarts processes; they end when it does."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._new: SimpleQueue[Supervised] = SimpleQueue()
        self._all: list[Supervised] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def run(self, process: Supervised) -> Supervised:
        """Start *process* and keep it running."""
        self._new.put(process)
        wait_for(lambda: process.process)
        return process

    def end(self, process: Supervised) -> None:
        """Ask a process to end, for good, and return when it has."""
        process.keep = False
        assert process.process is not None
        process.process.terminate()
        process.process.wait(PATIENCE)

    def stop(self) -> None:
        """Kill all processes and return."""
        self._stopped.set()
        self._thread.join()
        for process in self._all:
            process.kill()

    def _run(self) -> None:
        while not self._stopped.wait(POLL):
            with suppress(Empty):
                while True:
                    self._all.append(self._new.get_nowait())
            for process in self._all:
                if process.keep and (process.process is None or process.process.poll() is not None):
                    self._start(process)

    def _start(self, process: Supervised) -> None:
        with self._log.open("ab") as log:
            process.process = subprocess.Popen(
                die_with_parent(process.command),
                env=process.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        process.starts += 1
