"""Flip bits, in bytes and on a wire."""

from __future__ import annotations

import random
import select
import socket
import socketserver
from typing import Final

from tests.support.device.loopback import LoopbackServer

from .fleet import TIMEOUT

_PART: Final = 65_536  # bytes
_REACH: Final = 1_100  # bytes of a connection of which one is hit: hello, and the upload after it


def flipped(data: bytes, chance: random.Random) -> bytes:
    """Return *data* with one bit of it turned."""
    at = chance.randrange(8 * len(data))
    changed = bytearray(data)
    changed[at // 8] ^= 1 << (at % 8)
    return bytes(changed)


class Flipping(LoopbackServer):
    """Carries connections to *target* and turns one bit of what each client sends."""

    def __init__(self, target: int, chance: random.Random) -> None:
        self.target, self.chance = target, chance
        super().__init__(_Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: Flipping

    def handle(self) -> None:
        left = self.server.chance.randrange(_REACH)  # bytes until the one that is hit
        with socket.create_connection(("127.0.0.1", self.server.target), TIMEOUT) as onward:
            ways = {self.request: onward, onward: self.request}
            while ready := select.select(list(ways), [], [], TIMEOUT)[0]:
                for source in ready:
                    part = source.recv(_PART)
                    if not part:
                        return
                    if source is self.request:
                        if 0 <= left < len(part):
                            hit = flipped(part[left : left + 1], self.server.chance)
                            part = part[:left] + hit + part[left + 1 :]
                        left -= len(part)
                    ways[source].sendall(part)
