"""What passes between processes: the bytes of a connection, and the peers of a process."""

from __future__ import annotations

import re
import select
import shutil
import signal
import socket
import socketserver
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.device.loopback import LoopbackServer
from tests.support.patience import wait_for
from tests.support.store.processes import descendants, until_ended

_PART: Final = 65_536  # bytes
NO_STRACE: Final = "no strace, or it may trace nothing"
_PEER: Final = re.compile(r'(accept4?|connect)\(.*?inet_addr\("([\d.]+)"\)')


class Tap(LoopbackServer):
    """Carries connections to *target* and keeps a copy of both directions."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.inward: list[bytearray] = []  # by connection
        self.outward: list[bytearray] = []
        super().__init__(_Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: Tap

    def handle(self) -> None:
        inward, outward = bytearray(), bytearray()
        self.server.inward.append(inward)
        self.server.outward.append(outward)
        with socket.create_connection(("127.0.0.1", self.server.target)) as onward:
            ways = {self.request: (onward, inward), onward: (self.request, outward)}
            while True:
                for source in select.select(list(ways), [], [])[0]:
                    part = source.recv(_PART)
                    if not part:
                        return
                    way, kept = ways[source]
                    kept += part
                    way.sendall(part)


def _can_trace() -> bool:
    """Whether strace is here and may look at processes."""
    strace = shutil.which("strace")
    return strace is not None and not subprocess.call(
        [strace, "-o", "/dev/null", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


needs_strace = pytest.mark.skipif(not _can_trace(), reason=NO_STRACE)


class Peers:
    """The other ends of the sockets of a process, by who has begun."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.connected: set[str] = set()


@contextmanager
def traced(pid: int, folder: Path) -> Iterator[Peers]:
    """Yield the peers of process *pid* and its children, complete when the block has ended."""
    peers, log, told = Peers(), folder / f"{pid}.strace", folder / f"{pid}.attached"
    pids = sorted({pid, *descendants(pid)})
    words = ["strace", "-f", "-e", "trace=accept,accept4,connect", "-o", str(log)]
    with told.open("wb") as errors:
        command = [*words, *(word for pid in pids for word in ("-p", str(pid)))]
        with until_ended(subprocess.Popen(command, stderr=errors), signal.SIGINT):
            wait_for(lambda: told.read_text().count("attached") >= len(pids), told.read_text)
            yield peers
    for call, address in _PEER.findall(log.read_text()):
        (peers.connected if call == "connect" else peers.accepted).add(address)


def has(seen: bytes, facts: Iterable[bytes]) -> bool:
    """Whether one of *facts* is in *seen*, plain or in hexadecimal."""
    lower = seen.lower()
    return any(fact.lower() in lower or fact.hex().encode() in lower for fact in facts)
