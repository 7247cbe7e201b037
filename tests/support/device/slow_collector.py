"""A collector on loopback that takes its time, and remembers what came over which connection."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from client_sdk.testing import answer_of
from tests.support.device.device_transport import reports_in

ACCEPTED: Final = answer_of(202).body


class SlowCollector(http.server.ThreadingHTTPServer):
    """Accepts every upload after a time that may depend on its body."""

    daemon_threads = True

    def __init__(self, delay: Callable[[bytes], float]) -> None:
        """Listen; *delay* says how many seconds the answer to a body takes."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.delay = delay
        self.arrived, self.closing = threading.Event(), threading.Event()
        self.bodies: list[bytes] = []  # in the order of their arrival
        self.paths: list[str] = []
        self.connections: list[tuple[str, int]] = []  # the other end, of each body

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def reports(self) -> int:
        """Return how many reports came, each upload counted once."""
        return sum(reports_in(body) for body in {_id(body): body for body in self.bodies}.values())

    def changed_on_retry(self) -> int:
        """Return how many uploads came in more than one form."""
        return len(set(self.bodies)) - len({_id(body) for body in self.bodies})


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SlowCollector

    def do_POST(self) -> None:  # the name that http.server looks for
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(body)
        self.server.paths.append(self.path)
        self.server.connections.append(self.client_address)
        self.server.arrived.set()
        self.server.closing.wait(self.server.delay(body))
        with suppress(OSError):  # who asked has hung up
            self.send_response_only(202)
            self.send_header("Content-Length", str(len(ACCEPTED)))
            self.end_headers()
            self.wfile.write(ACCEPTED)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def slow_collector(delay: Callable[[bytes], float]) -> Iterator[SlowCollector]:
    """Run a SlowCollector until the block ends."""
    with SlowCollector(delay) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


def _id(body: bytes) -> str:
    return str(json.loads(body)["id"])
