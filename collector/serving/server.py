"""The HTTP server of a process: one set of limits and logs, whichever process it is."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Any, Final

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from ..core.errors import ConfigError
from ..core.logs import server_config
from .application import Application
from .stopping import GRACE_S, SIGNALS

_log = logging.getLogger("hearsay.server")
_QUEUE: Final = 1_024  # connections that the system keeps waiting
_HEADERS_MS: Final = 5_000  # milliseconds in which the headers of a request must have arrived
_HEADERS_SIZE: Final = 16 * 1024  # bytes of headers, and of a body at a time


def require_free(name: str, host: str, port: int) -> None:
    """Check that no process listens there: the server would share the port, and the requests.

    Raises: ConfigError: about the setting *name*: the port is taken, or this user may not use it.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(name, port, f"cannot be listened on: {error}") from None


def settings_of(role: str, host: str, port: int, connections: int) -> dict[str, Any]:
    """Return what the server of a process of *role* is given, of many processes or of one.

    Args: connections: that it holds at once.
    """
    return {
        "address": host,
        "port": port,
        "interface": Interfaces.RSGI,
        "backlog": _QUEUE,
        "backpressure": connections,
        "http": HTTPModes.http1,
        "http1_settings": HTTP1Settings(
            header_read_timeout=_HEADERS_MS, max_buffer_size=_HEADERS_SIZE
        ),
        "log_dictconfig": server_config(role),
        "log_access": False,  # an access log would hold addresses
        "websockets": False,
    }


async def serve_application(
    app: Application, given: dict[str, Any], stop: Callable[[], None] = lambda: None
) -> None:
    """Answer by *app* in this process, with the settings *given*, until SIGTERM or SIGINT.

    What is begun then is finished, but not for longer than GRACE_S.

    Args: stop: called first, then: answers what waits for others.
    """
    # of warnings it has one: that one process is all there is
    server = Server(app, log_level=LogLevels.error, **given)
    loop = asyncio.get_running_loop()

    def give_up() -> None:
        _log.warning("something does not end, perhaps a device or a callback: ending it now")
        logging.shutdown()
        os._exit(0)  # what is on its way is sent again by its device

    def end() -> None:
        stop()
        server.stop()  # type: ignore[no-untyped-call]  # the server has no types here
        loop.call_later(GRACE_S, give_up)

    for number in SIGNALS:
        loop.add_signal_handler(number, end)
    await server.serve()
