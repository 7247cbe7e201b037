"""A collector behind TLS, and a proxy before it, on loopback, that count what reaches them."""

from __future__ import annotations

import select
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

CERTIFICATES: Final = Path(__file__).parent.parent / "data" / "tls"
TRUSTED: Final = CERTIFICATES / "ca.pem"

_ANSWER: Final = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.received = b""  # after decryption, if there is any
        super().__init__(("127.0.0.1", 0), self.handler)

    handler: type[socketserver.BaseRequestHandler]

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class TlsCollector(_Server):
    """Shows a certificate, and accepts every upload of whoever believes it."""

    def __init__(self, certificate: str) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if certificate == "sha1":
            self.context.set_ciphers("DEFAULT@SECLEVEL=0")  # or OpenSSL would not even show it
        self.context.load_cert_chain(CERTIFICATES / f"{certificate}.pem")
        super().__init__()

    class handler(socketserver.BaseRequestHandler):  # noqa: N801 - fills the slot of that name
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


class Proxy(_Server):
    """An HTTP proxy that tunnels CONNECT, and sees only what is said in clear text."""

    class handler(socketserver.BaseRequestHandler):  # noqa: N801 - fills the slot of that name
        server: Proxy

        def handle(self) -> None:
            first = self.request.recv(65_536)
            self.server.received += first
            host, _, port = first.split()[1].decode().rpartition(":")
            with socket.create_connection((host, int(port))) as other:
                self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self._tunnel(other)

        def _tunnel(self, other: socket.socket) -> None:
            ways = {self.request: other, other: self.request}
            while True:
                for source in select.select(list(ways), [], [], 10)[0]:
                    part = source.recv(65_536)
                    if not part:
                        return
                    if source is self.request:
                        self.server.received += part
                    ways[source].sendall(part)


@contextmanager
def serving(server: _Server) -> Iterator[None]:
    """Run *server* until the block ends."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
