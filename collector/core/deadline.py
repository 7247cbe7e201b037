"""An end for what is asked of another server, whatever that server does.

The timeout of a socket begins anew with each byte, and Python's reader of heads waits for as many
bytes and interim answers as it is given: a peer that trickles holds its thread as long as it likes.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


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
