"""A real reverse proxy on loopback, before a collector."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from tests.support.device.tls import TRUSTED
from tests.support.patience import PATIENCE
from tests.support.sites.raw_requests import exchange


class ReverseProxy:
    """A running proxy: with TLS as ``localhost``, or plain."""

    def __init__(self, folder: Path, port: int, *, tls: bool = True) -> None:
        self.folder, self.port, self.tls = folder, port, tls
        self.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"

    def connect(
        self, sender: str = "127.0.0.1", patience: float = PATIENCE, name: str = "localhost"
    ) -> socket.socket:
        """Return a connection from the address *sender* of this machine to the site *name*.

        Args: patience: seconds that a read may take; for the handshake a busy machine has more.
        """
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE, (sender, 0))
        if self.tls:
            context = ssl.create_default_context(cafile=str(TRUSTED))
            context.check_hostname = name == "localhost"  # whose certificate it is
            connection = context.wrap_socket(connection, server_hostname=name)
        connection.settimeout(patience)
        return connection

    def send(self, *parts: bytes, sender: str = "127.0.0.1", patience: float = PATIENCE) -> bytes:
        """Return all that comes back to *parts* until the other side closes or is quiet."""
        return exchange(self.connect(sender, patience), *parts)

    def log(self) -> str:
        """Return all that it has written down."""
        return "".join(path.read_text(encoding="utf-8") for path in self.folder.glob("*log"))
