"""A running collector to be attacked: raw bytes go in, and all that it keeps can be searched."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from client_sdk.core.epoch import day_of
from collector.demo.embedded import PATH, WHEEL, launch
from collector.operations.parent_death import die_with_parent
from collector.storage.connection import Connection
from tests.support.crowds.uploads import (
    ADMIN_TOKEN,
    GATEWAY_KEY,
    READ_TOKEN,
    WRITE_KEY,
    bearer,
    registry_text,
)
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.raw_requests import exchange
from tests.support.store.cluster import free_port
from tests.support.store.processes import descendants, until_ended

_PROBLEM: Final = {"type", "title", "status", "detail"}
NO_HEADERS: Final[Mapping[str, str]] = {}
_OWN: Final = (414, 431)  # what the HTTP server refuses itself, without a word


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        """The problem document, which this must be."""
        assert self.headers["content-type"] == "application/problem+json"
        document: dict[str, Any] = json.loads(self.body)
        assert set(document) - {"errors"} == _PROBLEM
        assert document["status"] == self.status
        return document

    def require_sound(self) -> Answer:
        """Return this if it is an answer of the collector in good order."""
        assert self.status < 500, (self.status, self.body)
        if self.status >= 400 and not (self.status in _OWN and not self.body):
            assert self.problem
        return self


class AttackedSite:
    """A collector on loopback with its store, its log and its processes in sight."""

    def __init__(self, folder: Path, port: int, store: str) -> None:
        self.folder, self.port, self.store = folder, port, store
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "collector.log"
        self._kept: http.client.HTTPConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | None = None,
    ) -> Answer:
        """Return the answer to a well-formed request, over a connection that is kept.

        Raises: TimeoutError: it hangs.
        """
        for last in (False, True):
            connection = self._kept or http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=PATIENCE
            )
            try:
                connection.request(method, path, body, dict(headers))
                # A connection that ends with its answer leaves the socket to the answer.
                with connection.getresponse() as found:
                    read = found.read()
            except (ConnectionError, http.client.BadStatusLine):
                connection.close()
                self._kept = None
                if last:
                    raise
                continue
            self._kept = connection
            told = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, told, read)
        raise AssertionError("unreachable")

    def report(self, body: bytes, kind: str = "application/json", encoding: str = "") -> Answer:
        """Return the answer to an upload of a device."""
        said = {"Content-Type": kind, **bearer(WRITE_KEY)}
        if encoding:
            said["Content-Encoding"] = encoding
        return self.ask("POST", "/v1/reports", said, body)

    def send(self, *parts: bytes, patience: float = PATIENCE) -> bytes:
        """Return all that comes back to *parts*, sent as they are, until the other side closes.

        One that is quiet for *patience* seconds instead gives what it has said so far.
        """
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=patience)
        return exchange(connection, *parts)

    def close(self) -> None:
        """Give up the connection that is kept; the next request makes another."""
        if self._kept:
            self._kept.close()
        self._kept = None

    def is_well(self) -> bool:
        """Return whether an honest request is answered as ever."""
        return self.ask("GET", "/readyz").status == 200

    def memory(self) -> int:
        """Return the bytes of memory that the web processes have in use."""
        return sum(_resident(pid) for pid in {self.serve, *descendants(self.serve)})

    def work(self) -> float:
        """Return the seconds for which the web processes have had a processor."""
        return sum(_worked(pid) for pid in {self.serve, *descendants(self.serve)})

    def kept(self) -> bytes:
        """Return all that is at rest or has been told: the store, its files, logs and metrics."""
        connection = Connection.open(self.store)
        try:
            keys = connection.call("KEYS", "*")
            held = [connection.call("DUMP", key) or b"" for key in keys]
        finally:
            connection.close()
        files = [path.read_bytes() for path in self.folder.rglob("*") if path.is_file()]
        told = self.ask("GET", "/metrics", bearer(ADMIN_TOKEN)).body
        return b"\n".join((*keys, *held, *files, told))

    serve: int  # the process that has the web processes as children


@contextmanager
def attacked_site(
    folder: Path,
    registry: str | None = None,
    *,
    settings: Mapping[str, str] = NO_HEADERS,
    processes: int = 1,
) -> Iterator[AttackedSite]:
    """Run a collector of so many web *processes* and a worker on a real store until the end.

    Args: settings: variables beside those that every site needs.
    """
    path = folder / "metrics.toml"
    path.write_text(registry or registry_text(expires="2999-12-31"), encoding="utf-8")
    data = folder / "store"
    data.mkdir()
    with launch(None, data, kinds=(PATH, WHEEL)) as store:
        site = AttackedSite(folder, free_port(), store.url)
        environment = {
            **os.environ,
            "HEARSAY_REGISTRY": str(path),
            "REDIS_URL": store.url,
            "HEARSAY_PORT": str(site.port),
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "HEARSAY_GATEWAY_KEY": GATEWAY_KEY,
            "HEARSAY_READ_TOKEN": READ_TOKEN,
            "HEARSAY_ADMIN_TOKEN": ADMIN_TOKEN,
            "HEARSAY_KEY_RATE": "1000000",  # a test is not to be slowed down
            **settings,
        }
        commands = (("serve", "--workers", str(processes)), ("worker",))
        with site.log.open("wb") as log, ExitStack() as stack:
            running = [
                stack.enter_context(until_ended(_start(command, environment, log)))
                for command in commands
            ]
            stack.callback(site.close)
            site.serve = running[0].pid
            wait_for(site.is_well, site.log.read_text, running=tuple(running), despite=(OSError,))
            yield site


def today() -> int:
    """Return the epoch day of the running collector."""
    return day_of(time.time())


def _start(
    command: Sequence[str], environment: Mapping[str, str], log: Any
) -> subprocess.Popen[bytes]:
    words = die_with_parent([sys.executable, "-m", "collector", *command])
    return subprocess.Popen(words, env=dict(environment), stdout=log, stderr=log)


def _worked(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")
