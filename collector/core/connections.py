"""Connections: a port to listen at, heads that are read in one way, an end for what we ask.

The timeout of a socket begins anew with each byte, and Python's reader of heads waits for as many
bytes and interim answers as it is given: a peer that trickles holds its thread as long as it likes.
"""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from typing import Any, Final, Self

from .errors import ConfigError, MalformedHeadError

_HOST: Final = re.compile(r"[A-Za-z0-9._~%-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?", re.ASCII)
_OLD: Final = "1"  # HTTP/1.0, in which a health check need not name a host


def require_free(name: str, host: str, port: int) -> None:
    """Return if nobody listens: else the server would share the port, and the requests.

    Raises: ConfigError: about the setting *name*: somebody does, or this user may not.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(name, port, f"cannot be listened on: {error}") from None


def require_plain(scope: Any) -> None:
    """Return if there is one way to read the head of the request *scope*.

    Raises: MalformedHeadError: says which part is not plain, and nothing of what it holds.
    """
    headers = scope.headers
    hosts = headers.get_all("host")
    if len(hosts) != 1 and (hosts or scope.http_version != _OLD):
        raise MalformedHeadError("Host: must be given once")
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise MalformedHeadError("Host: must be a name and perhaps a port")
    if scope.authority is not None and [scope.authority] != hosts:
        raise MalformedHeadError("Host: must be the one that the request names")
    codings = headers.get_all("transfer-encoding")
    if codings and (len(codings) > 1 or codings[0].strip().lower() != "chunked"):
        raise MalformedHeadError("Transfer-Encoding: must be chunked, once, or absent")
    if len(headers.get_all("content-type")) > 1:
        raise MalformedHeadError("Content-Type: must be given at most once")
    if not scope.method.isupper():
        raise MalformedHeadError("method: must be in capital letters")
    if not scope.path.startswith("/") and scope.path != "*":
        raise MalformedHeadError("path: must begin with a slash")


class Deadline:
    """Shuts the socket that it watches when its time is over.  For one thread, in a ``with``.

    What was read before may look like a whole answer that ended: ask whether it is *over*.
    """

    def __init__(self, seconds: float) -> None:
        """Let *seconds* pass from entering on."""
        self.over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        """Begin."""
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the socket."""
        self._timer.cancel()

    def watch(self, connected: socket.socket) -> None:
        """Shut *connected*, in place of an earlier one; at once if the time is over."""
        self._socket = connected
        if self.over:
            self._cut()

    def require(self) -> None:
        """Raise TimeoutError if the time is over."""
        if self.over:
            raise TimeoutError

    def _end(self) -> None:
        self.over = True
        self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # it was closed meanwhile
                # not TLS's own: that one would let the reader go on with the bytes as they are
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
