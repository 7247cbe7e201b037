"""A relay as a process, and a gateway that keeps all that reaches it; for tests of both sides."""

from __future__ import annotations

import json
import socket
import socketserver
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import requests

from client_sdk.wire.oblivious import ANSWER_TYPE, REQUEST_TYPE
from collector.operations.parent_death import die_with_parent
from collector.relay.process import Settings
from tests.support.device.loopback import LoopbackServer
from tests.support.faults.proxy import read_message
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.cluster import free_port
from tests.support.store.processes import until_ended

RELAY: Final = ("-m", "collector.relay")

GOOD: Final = f"HTTP/1.1 200 OK\r\nContent-Type: {ANSWER_TYPE}\r\n".encode()


class OpaqueGateway(LoopbackServer):
    """Answers each message with *answer*; it opens none."""

    def __init__(self, answer: bytes = b"sealed answer", head: bytes = b"") -> None:
        """Answer with *head* in place of that of a gateway, if it is given."""
        self.answer = answer
        self.head = head or GOOD
        self.came: list[bytes] = []  # requests, head and all
        self.peers: set[str] = set()
        self.delay = 0.0  # seconds before an answer
        super().__init__(_Handler)

    @property
    def messages(self) -> list[bytes]:
        return [request.partition(b"\r\n\r\n")[2] for request in self.came]


class _Handler(socketserver.BaseRequestHandler):
    server: OpaqueGateway

    def handle(self) -> None:
        self.server.peers.add(self.client_address[0])
        while True:
            try:
                self.server.came.append(read_message(self.request))
            except EOFError:
                return
            time.sleep(self.server.delay)
            length = f"Content-Length: {len(self.server.answer)}\r\n\r\n".encode()
            self.request.sendall(self.server.head + length + self.server.answer)


@dataclass
class Relay:
    """A running relay."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def exchange(
        self, request: bytes, source: str = "127.0.0.1", patience: float = PATIENCE
    ) -> bytes:
        """Return all that comes back to *request*, byte by byte, sent from address *source*."""
        at = ("127.0.0.1", self.port)
        with socket.create_connection(at, patience, (source, 0)) as connection:
            connection.sendall(request)
            return read_message(connection)

    def send(self, message: bytes, source: str = "127.0.0.1", *lines: str) -> bytes:
        """Return the whole answer to *message*, which has further header *lines*."""
        return self.exchange(request_of(message, *lines), source)


def request_of(
    message: bytes, *lines: str, method: str = "POST", kind: str = REQUEST_TYPE
) -> bytes:
    """Return a request as a device sends it."""
    head = (
        f"{method} / HTTP/1.1",
        "Host: relay.example",
        f"Content-Type: {kind}",
        f"Content-Length: {len(message)}",
        *lines,
    )
    return "\r\n".join([*head, "", ""]).encode() + message


def is_alive(port: int, trusted: str = "") -> bool:
    """Whether a relay answers at *port*, by TLS if a certificate is *trusted*."""
    with requests.Session() as session:
        session.trust_env = False
        url = f"https://localhost:{port}" if trusted else f"http://127.0.0.1:{port}"
        try:
            return session.get(f"{url}/livez", timeout=PATIENCE, verify=trusted or True).ok
        except requests.RequestException:
            return False


@contextmanager
def running_relay(
    folder: Path,
    to: str,
    *,
    batch: int = 1,
    within: float = 15.0,
    per_network: int = 1_000,
    behind: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
) -> Iterator[Relay]:
    """Run the process of ``hearsay relay --to`` *to* on loopback until the block ends."""
    port = free_port()
    settings = Settings(to, batch, within, "127.0.0.1", port, per_network, behind, "", "", origins)
    with started([*RELAY, json.dumps(asdict(settings))], port, folder / "relay.log") as relay:
        yield relay


@contextmanager
def started(words: Sequence[str], port: int, log: Path, trusted: str = "") -> Iterator[Relay]:
    """Run the program *words* until the block ends, which is to relay at *port*."""
    with log.open("wb") as file:
        command = die_with_parent([sys.executable, *words])
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    with until_ended(process):
        wait_for(lambda: is_alive(port, trusted), log.read_text, running=(process,))
        assert process.poll() is None, log.read_text()  # else another has the port, and answered
        yield Relay(port, process, log)
