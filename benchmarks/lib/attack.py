"""Send hostile requests to a collector at a steady rate, in a process whose cost is its own.

Run by the benchmark of hostile input: ``python -m benchmarks.lib.attack`` with an Attack as JSON on
stdin; ends after its seconds.
"""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import Final

_PATIENCE: Final = 5.0  # seconds for an answer


@dataclass(frozen=True)
class Attack:
    """The same raw *request*, *rate* times a second over *connections*."""

    port: int
    request: bytes
    rate: float
    connections: int
    seconds: float


def start(attack: Attack) -> subprocess.Popen[bytes]:
    """Begin *attack* in a process of its own."""
    table = {**asdict(attack), "request": base64.b64encode(attack.request).decode()}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.lib.attack"], stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(table).encode())
    process.stdin.close()
    return process


def _run(attack: Attack) -> None:
    threads = [
        threading.Thread(target=_send, args=(attack, number))
        for number in range(attack.connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send(attack: Attack, number: int) -> None:
    pause = attack.connections / attack.rate
    due = time.perf_counter() + pause * number / attack.connections
    end = time.perf_counter() + attack.seconds
    connection: socket.socket | None = None
    while due < end:
        time.sleep(max(0.0, due - time.perf_counter()))
        due += pause
        try:
            if connection is None:
                address = ("127.0.0.1", attack.port)
                connection = socket.create_connection(address, timeout=_PATIENCE)
            connection.sendall(attack.request)
            if not connection.recv(65_536):
                raise ConnectionError
        except OSError:
            if connection is not None:
                connection.close()
            connection = None


if __name__ == "__main__":
    given = json.load(sys.stdin)
    _run(Attack(**{**given, "request": base64.b64decode(given["request"])}))
