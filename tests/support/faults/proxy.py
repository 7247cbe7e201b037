"""A proxy for one HTTP request a connection that loses, repeats, delays and so reorders."""

from __future__ import annotations

import random
import socket
import socketserver
import ssl
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from tests.support.device.loopback import LoopbackServer

from .fleet import TIMEOUT

_PART: Final = 65_536  # bytes


@dataclass
class Weather:
    """What happens on the way, each by its own chance.  May change while the proxy runs."""

    lose_request: float = 0.0
    lose_answer: float = 0.0
    repeat: float = 0.0  # the request arrives twice
    hold: float = 0.0  # the request arrives late, so after later ones
    held_s: float = 0.0  # a request is late by up to so many seconds
    dark: threading.Event = field(default_factory=threading.Event)  # set: requests vanish, slowly
    mute: threading.Event = field(default_factory=threading.Event)  # set: answers do


class Proxy(LoopbackServer):
    """Carries requests to *target*, a port of this machine; counts what became of them."""

    def __init__(self, target: int, weather: Weather, seed: int) -> None:
        self.target, self.weather = target, weather
        self.chance = random.Random(f"{seed} weather")
        self.counts: Counter[str] = Counter()
        super().__init__(_Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        weather, chance, counts = self.server.weather, self.server.chance, self.server.counts
        request = read_message(self.request)
        counts["requests"] += 1
        if weather.dark.is_set():
            counts["dark"] += 1
            time.sleep(0.5)  # half open: the device waits for an answer that never comes
            return
        if chance.random() < weather.lose_request:
            counts["requests lost"] += 1
            return
        if chance.random() < weather.hold:
            counts["held"] += 1
            time.sleep(weather.held_s * chance.random())
        if chance.random() < weather.repeat:
            counts["repeated"] += 1
            self._exchange(request)
        answer = self._exchange(request)
        if weather.mute.is_set() or chance.random() < weather.lose_answer:
            counts["answers lost"] += 1
            return
        with suppress(OSError):
            self.request.sendall(answer)

    def _exchange(self, request: bytes) -> bytes:
        """Send *request* over a connection of its own and return all that comes back."""
        with socket.create_connection(("127.0.0.1", self.server.target), TIMEOUT) as onward:
            onward.sendall(request)
            parts = []
            with suppress(OSError):
                while part := onward.recv(_PART):
                    parts.append(part)
            return b"".join(parts)


class TlsEnd(LoopbackServer):
    """The end of TLS before a collector: what is not intact goes no further."""

    def __init__(self, target: int, certificate: str) -> None:
        self.target = target
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.refused = 0  # connections whose bytes were not what was sent
        super().__init__(_TlsHandler)


class _TlsHandler(socketserver.BaseRequestHandler):
    server: TlsEnd

    def handle(self) -> None:
        self.request.settimeout(TIMEOUT)
        try:
            with self.server.context.wrap_socket(self.request, server_side=True) as tls:
                request = read_message(tls)
                with socket.create_connection(("127.0.0.1", self.server.target)) as onward:
                    onward.sendall(request)
                    while part := onward.recv(_PART):
                        tls.sendall(part)
        except (OSError, EOFError):
            self.server.refused += 1


def read_message(connection: socket.socket) -> bytes:
    """Return one whole HTTP request.  Raises EOFError: it ends before its body does."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += _receive(connection)
    head, _, body = read.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += _receive(connection)
    return head + b"\r\n\r\n" + body


def _receive(connection: socket.socket) -> bytes:
    part = connection.recv(_PART)
    if not part:
        raise EOFError
    return part
