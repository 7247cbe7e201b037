"""Tie the life of a child process to ours.  Also the program that does so: imports no package.

Usage: parent_death.py PARENT_PID PROGRAM ARGUMENT…  The process becomes PROGRAM, under its own pid.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # prctl(2): the signal that the kernel sends when the parent ends


def die_with_parent(command: Sequence[str]) -> list[str]:
    """Return *command* so that, on Linux, it ends when the thread that starts it ends."""
    if not sys.platform.startswith("linux"):
        return list(command)
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def end_with_parent() -> None:
    """End this process, on Linux, when the thread that started it ends."""
    if not sys.platform.startswith("linux"):
        return
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def main(arguments: list[str]) -> None:
    """Ask the kernel for the signal, then become the program."""
    parent, program = int(arguments[0]), arguments[1:]
    end_with_parent()
    if os.getppid() == parent:  # otherwise the parent ended before the kernel knew
        os.execvp(program[0], program)  # noqa: S606  # no shell is meant


if __name__ == "__main__":
    main(sys.argv[1:])
