"""A server that gives one answer to every command, or hangs up instead of answering."""

from __future__ import annotations

import socketserver
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from tests.support.device.loopback import LoopbackServer, running

ECHO: Final = "echo"  # the answer that repeats the last word of the command
LATE: Final = b"late"  # the last word that is repeated after a time only
TOO_LATE: Final = 0.05  # seconds


class ScriptedServer(LoopbackServer):
    """Speaks just enough RESP to be asked.  Keeps the commands it was sent."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer  # the text of an error, or None to hang up
        self.commands: list[list[bytes]] = []
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


class _Handler(socketserver.StreamRequestHandler):
    server: ScriptedServer

    def handle(self) -> None:
        while command := self._read():
            if command[0] == b"CLIENT":  # the client introduces itself
                self.wfile.write(b"+OK\r\n")
                continue
            self.server.commands.append(command)
            if self.server.answer is None:
                return
            if self.server.answer == ECHO:
                self._echo(command[-1])
                continue
            self.wfile.write(f"-{self.server.answer}\r\n".encode())

    def _echo(self, text: bytes) -> None:
        if text == LATE:
            time.sleep(2 * TOO_LATE)
        with suppress(OSError):  # who asked has hung up
            self.wfile.write(b"+" + text + b"\r\n")

    def _read(self) -> list[bytes]:
        count = self.rfile.readline()
        return [self._read_part() for _ in range(int(count[1:]))] if count else []

    def _read_part(self) -> bytes:
        size = int(self.rfile.readline()[1:])
        return self.rfile.read(size + 2)[:-2]


@contextmanager
def scripted_server(answer: str | None) -> Iterator[ScriptedServer]:
    """Run a ScriptedServer until the block ends."""
    with running(ScriptedServer(answer)) as server:
        yield server
