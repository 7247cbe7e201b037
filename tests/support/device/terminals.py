"""Programs on a real terminal."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tests.support.patience import PATIENCE
from tests.support.store.processes import until_ended


def on_terminal(
    command: Sequence[str], typed: bytes, environment: Mapping[str, str], *, stderr: bool = True
) -> tuple[str, str]:
    """Return what a program prints, and what its terminal shows, if *typed* is typed.

    Args: stderr: whether its standard error is the terminal.
    """
    import pty  # Windows has none

    ours, theirs = pty.openpty()
    os.write(ours, typed)
    with open(theirs, "rb", closefd=False) as terminal:
        program = subprocess.Popen(
            command,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal if stderr else subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    with until_ended(program, signal.SIGKILL):
        out, _ = program.communicate(timeout=PATIENCE)
    os.set_blocking(ours, False)
    try:
        shown = os.read(ours, 1 << 16)
    except OSError:
        shown = b""
    os.close(ours)
    os.close(theirs)
    assert program.returncode == 0, shown
    return out.decode().strip(), shown.decode()


def shown_on_terminal(command: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """Return what a program writes to its standard output, which is a terminal."""
    import pty  # Windows has none
    import tty

    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # or a terminal writes two letters for the end of a line
    parts = []
    program = subprocess.Popen(command, stdout=theirs, env=environment)
    os.close(theirs)
    with until_ended(program, signal.SIGKILL), suppress(OSError):  # it ends with its program
        while select.select([ours], [], [], PATIENCE)[0] and (part := os.read(ours, 1 << 16)):
            parts.append(part)
    os.close(ours)
    return b"".join(parts)
