"""A server whose answers never end: each byte comes before the patience for one is over."""

from __future__ import annotations

import socketserver
import threading
from typing import Final

from ..device.loopback import LoopbackServer

PAUSE_S: Final = 0.02
_MOST: Final = 150  # pieces; then it gives up, and whoever listened so long fails the test

ENDLESS: Final = {
    "head": (b"HTTP/1.1 200 OK\r\nA: ", b"x"),
    "interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Type: message/ohttp-res\r\n\r\n", b"x"),
}


class Trickler(LoopbackServer):
    """Answers with *first*, and then *piece* again and again; notes when nobody listens more."""

    def __init__(self, first: bytes, piece: bytes) -> None:
        self.first, self.piece = first, piece
        self.left = threading.Event()
        super().__init__(_Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: Trickler

    def handle(self) -> None:
        try:
            self.request.recv(65_536)
            self.request.sendall(self.server.first)
            for _ in range(_MOST):
                self.request.sendall(self.server.piece)
                threading.Event().wait(PAUSE_S)
        except OSError:
            self.server.left.set()
