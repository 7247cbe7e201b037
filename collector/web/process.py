"""A web process as the server starts it, with limits that the system keeps on every connection.

The HTTP server limits no answers.  A connection takes over the options of the socket that it came
in by, so they are set there, once.
"""

from __future__ import annotations

import gc
import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ..core.logs import configure
from ..operations.parent_death import end_with_parent
from ..operations.telemetry.activity import WEB
from .app import create_app
from .ingest.front import Front

UNREAD_S: Final = 10  # seconds without progress after which an answer is given up
SEND_BUFFER: Final = 32 * 1024  # bytes of answers; the system doubles it, and never lets it grow
_OPEN_FILES: Final = "/dev/fd"
_USER_TIMEOUT: Final = getattr(socket, "TCP_USER_TIMEOUT", None)  # of Linux, since 2.6.37

_log = logging.getLogger("hearsay.web")
_ALLOCATIONS: Final = 10_000  # objects between two collections; an upload of ten columns makes 100


def limit_answers() -> None:
    """Let the system end connections of this process' server whose answers nobody takes."""
    listening = 0
    for listener in _listening():
        with listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            if _USER_TIMEOUT is not None:
                listener.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, 1_000 * UNREAD_S)
                listening += 1
    if not listening:
        _log.warning("web: this system does not end connections whose answers nobody takes")


def _listening() -> Iterator[socket.socket]:
    """Yield the sockets on which this process listens, each by a descriptor of its own."""
    for name in os.listdir(_OPEN_FILES):
        with suppress(OSError):  # closed meanwhile
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            listener = socket.socket(fileno=os.dup(int(name)))
            is_tcp = listener.family in (socket.AF_INET, socket.AF_INET6)
            if is_tcp and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield listener
            else:
                listener.close()


def create_process() -> Front:
    """Return the application of a process that ends with the server that started it."""
    end_with_parent()  # otherwise a killed server would leave it answering, under old keys
    configure(WEB)
    front = Front(create_app(), listens=limit_answers)
    gc.collect()
    gc.freeze()  # what is loaded stays: it need not be looked through again and again
    gc.set_threshold(_ALLOCATIONS)
    return front
