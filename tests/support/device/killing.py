"""Kill a device in the middle of its work: ``python -m tests.support.device.killing``.

Arguments: the folder of the device, the file that its uploads are logged to, and how many kills.
Each child records and uploads over a lossy network until it is killed; the next one goes on.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Final

from client_sdk.core.epoch import HOUR
from client_sdk.core.errors import TransportError
from client_sdk.privacy.caps import Caps
from client_sdk.testing import answer_of
from client_sdk.upload.transport import Answer
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.device import make_client, metric_text, registry_of

METRICS: Final = 5
CAPS: Final = Caps(metric_week="8", week="8")
REGISTRY: Final = registry_of(
    *(metric_text(f"m{i}", epsilon="0.1", every="1h") for i in range(METRICS))
)

END: Final = b"."  # of a body in the log, which a line end begins
_STEP: Final = 12 * HOUR  # seconds of simulated time from one child to the next
_MOST_ROUNDS: Final = 3  # that a child completes before it is killed in the next one


class LoggingTransport:
    """Appends each body that arrives to a file; loses requests and answers.

    A kill tears a write of several pages: only what ends with END has arrived.
    """

    def __init__(self, log: str, chance: random.Random) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._chance = chance

    def send(self, body: bytes, timeout: float) -> Answer:
        fate = self._chance.random()
        if fate < 0.3:
            raise TransportError("the request was lost")
        os.write(self._log, b"\n" + body.hex().encode() + END)
        if fate < 0.6:
            raise TransportError("the answer was lost")
        return answer_of(202)


def work(folder: Path, log: str, child: int, told: int) -> None:
    """Record and upload until killed, an hour of simulated time a round; tell *told* of each."""
    clock = FakeClock(NOON)
    clock.advance(seconds=child * _STEP)
    transport = LoggingTransport(log, random.Random(child))
    client = make_client(folder, registry=REGISTRY, clock=clock, transport=transport, caps=CAPS)
    while True:
        for number in range(METRICS):
            client.record(f"m{number}", True)
        client.flush()
        clock.advance(seconds=HOUR)
        os.write(told, b".")


def main(folder: Path, log: str, kills: int) -> None:
    """Let one child after the other work, each until a moment of some round of it."""
    chance, round_time = random.SystemRandom(), 0.05
    for child in range(kills):
        told, tell = os.pipe()
        process = os.fork()
        if process == 0:
            work(folder, log, child, tell)
        os.close(tell)
        for _ in range(chance.randint(0, _MOST_ROUNDS)):
            began = time.monotonic()
            assert os.read(told, 1), "the child ended by itself"
            round_time = time.monotonic() - began
        time.sleep(round_time * chance.random())
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(told)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
