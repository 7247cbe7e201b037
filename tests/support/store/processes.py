"""The processes below one, as Linux shows them, and their end; no test leaves one behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from tests.support.patience import PATIENCE


def descendants(pid: int) -> set[int]:
    """Return the processes that *pid* started, and those that they started."""
    children: dict[int, set[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(stat)
        if fields:
            children.setdefault(int(fields[1]), set()).add(int(stat.parent.name))
    found: set[int] = set()
    todo = {pid}
    while todo:
        todo = {child for parent in todo for child in children.get(parent, ())} - found
        found |= todo
    return found


def ended(process: Popen[Any], number: int = signal.SIGTERM) -> int:
    """Return the exit status of *process*, asked to end by a signal and killed if it does not.

    What it started is killed if it stays, so no test meets the process of another.
    """
    below = descendants(process.pid) if process.poll() is None else set()
    process.send_signal(number)
    try:
        process.wait(PATIENCE)
    except TimeoutExpired:
        process.kill()
    for pid in survivors(below):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return process.wait()


@contextmanager
def until_ended(process: Popen[Any], number: int = signal.SIGTERM) -> Iterator[Popen[Any]]:
    """Lend *process*, which has ended when the block has, and what it opened is closed."""
    with process:
        try:
            yield process
        finally:
            ended(process, number)


def only_child(pid: int) -> int:
    """Return the one process that *pid* itself started: the lowest number need not be the first."""
    [child] = [one for one in descendants(pid) if _fields(Path(f"/proc/{one}/stat"))[1] == str(pid)]
    return child


def survivors(pids: set[int]) -> set[int]:
    """Return which of *pids* still run when patience ends, or an empty set as soon as none does."""
    deadline = time.monotonic() + PATIENCE
    while (alive := {pid for pid in pids if _runs(pid)}) and time.monotonic() < deadline:
        time.sleep(0.05)
    return alive


def _runs(pid: int) -> bool:
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return bool(fields) and fields[0] != "Z"  # a zombie only waits to be counted


def _fields(stat: Path) -> list[str]:
    """Return the fields after the name: state, parent, …; none if the process has ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def memory_of(pid: int) -> Iterator[bytes]:
    """Yield what the process *pid* has written to its memory, a mapping at a time."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            where, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            start, end = (int(text, 16) for text in where.split("-"))
            memory.seek(start)
            with suppress(OSError):  # a mapping that cannot be read, or has gone
                yield memory.read(end - start)
