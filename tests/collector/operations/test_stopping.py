"""A process that is asked to stop is asked once, and given up on after a time."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading
from collector.operations.processes import on_stop

asked = threading.Event()
stop = on_stop({ask}, lambda: os._exit(7), grace={grace})
print("ready", flush=True)
{rest}
"""


def run(ask: str, grace: float, rest: str, *numbers: int) -> tuple[int, str]:
    """Run a program until it is ready, send it signals, and return its status and output."""
    source = PROGRAM.format(ask=ask, grace=grace, rest=rest)
    with subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for number in numbers:
            process.send_signal(number)
        output = process.stdout.read()
        return process.wait(timeout=20), output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_obeys_ends_by_itself(number: int) -> None:
    """Its own status is kept; nobody gives up on it."""
    status, _ = run("asked.set", 60, "asked.wait(); sys.exit(3)", number)

    assert status == 3


def test_a_process_that_does_not_end_is_given_up_on() -> None:
    """A store that hangs must not hold a container until it is killed."""
    status, _ = run("asked.set", 0.1, "while True: signal.pause()", signal.SIGTERM)

    assert status == 7


def test_a_process_is_asked_once_however_often_it_is_told() -> None:
    """An impatient Ctrl-C does not begin the stopping anew."""
    rest = "asked.wait(); stop(); stop()"
    status, output = run("lambda: (print('asked', flush=True), asked.set())", 60, rest, 15)

    assert (status, output) == (0, "asked\n")
