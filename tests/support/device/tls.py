"""A collector behind TLS, and a proxy before it, on loopback, that count what reaches them."""

from __future__ import annotations

import select
import socket
import socketserver
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.device.loopback import LoopbackServer

CERTIFICATES: Final = Path(__file__).parents[2] / "data" / "tls"
TRUSTED: Final = CERTIFICATES / "ca.pem"

_ANSWER: Final = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"


class TlsCollector(LoopbackServer):
    """Shows a certificate, and accepts every upload of whoever believes it."""

    def __init__(self, certificate: str) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if certificate == "sha1":
            self.context.set_ciphers("DEFAULT@SECLEVEL=0")  # or OpenSSL would not even show it
        self.context.load_cert_chain(CERTIFICATES / f"{certificate}.pem")
        self.received = b""  # after decryption
        super().__init__(_TlsHandler)


class _TlsHandler(socketserver.BaseRequestHandler):
    server: TlsCollector

    def handle(self) -> None:
        with (
            suppress(ssl.SSLError, OSError),
            self.server.context.wrap_socket(self.request, server_side=True) as tls,
        ):
            while b"\r\n\r\n{" not in self.server.received:
                part = tls.recv(65_536)
                if not part:
                    return
                self.server.received += part
            tls.sendall(_ANSWER)


class Proxy(LoopbackServer):
    """An HTTP proxy that tunnels CONNECT, by TLS or without, and sees only what is in the clear."""

    def __init__(self, *, by_tls: bool = False) -> None:
        self.received = b""  # after decryption, if the way to it is encrypted
        self.context: ssl.SSLContext | None = None
        if by_tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(CERTIFICATES / "good.pem")
        super().__init__(_ProxyHandler)


class _ProxyHandler(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        if self.server.context is None:
            self._carry(self.request)
            return
        with (
            suppress(ssl.SSLError, OSError),
            self.server.context.wrap_socket(self.request, server_side=True) as tls,
        ):
            self._carry(tls)

    def _carry(self, device: socket.socket) -> None:
        first = device.recv(65_536)
        self.server.received += first
        host, _, port = first.split()[1].decode().rpartition(":")
        with socket.create_connection((host, int(port))) as other:
            device.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._tunnel(device, other)

    def _tunnel(self, device: socket.socket, other: socket.socket) -> None:
        ways = {device: other, other: device}
        while True:
            for source in select.select(list(ways), [], [], 10)[0]:
                part = source.recv(65_536)
                if not part:
                    return
                if source is device:
                    self.server.received += part
                ways[source].sendall(part)
