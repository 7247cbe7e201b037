"""Servers on loopback, each at a free port and with a thread a connection, until a block ends."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import TypeVar


class LoopbackServer(socketserver.ThreadingTCPServer):
    """Takes connections at a port of this machine, and hands each to a handler."""

    daemon_threads = True
    request_queue_size = 512  # a fleet connects at once

    def __init__(self, handler: Callable[..., socketserver.BaseRequestHandler]) -> None:
        """Listen, so that who connects before ``running`` only waits."""
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: connections that break are what is tested."""


class _Files(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")  # for frames without an origin
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def serving_files(folder: Path) -> AbstractContextManager[LoopbackServer]:
    """Serve the files of *folder*, such as pages for a browser, until the block ends."""
    return running(LoopbackServer(partial(_Files, directory=str(folder))))


S = TypeVar("S", bound=LoopbackServer)


@contextmanager
def running(server: S) -> Iterator[S]:
    """Run *server* until the block ends."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
