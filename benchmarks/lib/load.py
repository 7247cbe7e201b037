"""Send requests to a collector and tell how it went: in a process whose cost is its own.

Benchmarks run ``python -m benchmarks.lib.load`` with a Plan as JSON on stdin and read
an Outcome as JSON from stdout.
"""

from __future__ import annotations

import base64
import json
import os
import random
import selectors
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import cycle
from typing import Final

_NO_ID: Final = bytes(16)
_PATIENCE: Final = 10.0  # seconds after the end for answers that are still to come


@dataclass(frozen=True)
class Plan:
    """The same raw *request*, over *connections* that stay open unless it is sent *alone*.

    Where it holds the id of zeros, as bytes or as JSON writes it, each has an id of its own.
    """

    port: int
    request: bytes
    connections: int
    seconds: float
    rate: float | None = None  # requests a second, at random moments; None: as fast as answered
    alone: bool = False
    # A file of requests that are sent in turn, each after its length in four bytes; then those
    # that are answered 200 are accepted.
    corpus: str = ""


@dataclass(frozen=True)
class Outcome:
    """What was answered within the time, and how long it took."""

    statuses: dict[str, int] = field(default_factory=dict)
    median: float = 0.0  # milliseconds, of those accepted
    p99: float = 0.0

    @property
    def accepted(self) -> int:
        """Uploads that were answered 202."""
        return self.statuses.get("202", 0)


def send(plan: Plan) -> Outcome:
    """Carry out *plan* in a process of its own."""
    return finish(start(plan))


def start(plan: Plan) -> subprocess.Popen[bytes]:
    """Begin *plan* in a process of its own."""
    text = json.dumps({**asdict(plan), "request": base64.b64encode(plan.request).decode()})
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.lib.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.close()
    return process


def finish(process: subprocess.Popen[bytes]) -> Outcome:
    """Wait for what was begun."""
    assert process.stdout is not None
    text = process.stdout.read()
    process.wait()
    return Outcome(**json.loads(text))


class _Sender:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._form = next(
            (form for form in (bytes, _as_json) if form(_NO_ID) in plan.request), None
        )
        self._before, self._after = plan.request, b""
        if self._form:
            self._before, self._after = plan.request.split(self._form(_NO_ID), 1)
        self._corpus = cycle(_requests_in(plan.corpus)) if plan.corpus else None
        self._selector = selectors.DefaultSelector()
        self._idle: deque[socket.socket] = deque()
        self._sent: dict[socket.socket, float] = {}  # when it was to be sent
        self._statuses: Counter[str] = Counter()
        self._times: list[float] = []

    def run(self) -> Outcome:
        plan = self._plan
        for _ in range(plan.connections):
            self._connect()
        now = time.perf_counter()
        due, end = now, now + plan.seconds
        waiting: deque[float] = deque()
        while now < end or (self._sent and plan.rate and now < end + _PATIENCE):
            while plan.rate and due <= now and due < end:
                waiting.append(due)
                due += random.expovariate(plan.rate)
            while self._idle and (waiting or not plan.rate) and now < end:
                self._send(waiting.popleft() if waiting else now)
            pause = max(0.0, min(due, end) - now) if plan.rate and now < end else 0.05
            for key, _ in self._selector.select(pause):
                self._receive(key.fileobj)  # type: ignore[arg-type]  # all are sockets
            now = time.perf_counter()
        if waiting:
            self._statuses["not sent"] = len(waiting)
        times = sorted(self._times) or [0.0]
        return Outcome(
            dict(self._statuses),
            times[len(times) // 2] * 1e3,
            times[len(times) * 99 // 100] * 1e3,
        )

    def _connect(self) -> None:
        connection = socket.create_connection(("127.0.0.1", self._plan.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connection, selectors.EVENT_READ)
        self._idle.append(connection)

    def _send(self, due: float) -> None:
        connection = self._idle.popleft()
        self._sent[connection] = due
        own = self._form(os.urandom(len(_NO_ID))) if self._form else b""
        if self._corpus is None:
            whole = self._before + own + self._after
        else:
            whole = next(self._corpus)
            if self._form:
                whole = whole.replace(self._form(_NO_ID), own, 1)
        with suppress(ConnectionError):  # it is closed, which the next look at it says
            connection.sendall(whole)

    def _receive(self, connection: socket.socket) -> None:
        try:
            answer = connection.recv(65_536)
        except ConnectionError:
            answer = b""
        due = self._sent.pop(connection, None)
        if due is not None:
            status = answer[9:12].decode() or "closed"
            self._statuses[status] += 1
            if status == "202":
                self._times.append(time.perf_counter() - due)
        elif connection in self._idle:
            self._idle.remove(connection)
        if answer and not self._plan.alone:
            self._idle.append(connection)
            return
        self._selector.unregister(connection)
        connection.close()
        self._connect()


def _requests_in(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while size := file.read(4):
            yield file.read(int.from_bytes(size, "big"))


def _as_json(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


if __name__ == "__main__":
    table = json.load(sys.stdin)
    table["request"] = base64.b64decode(table["request"])
    json.dump(asdict(_Sender(Plan(**table)).run()), sys.stdout)
