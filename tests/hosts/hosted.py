"""An application in a folder of its own, run by a host in another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.support.device.device import metric_text, rows
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.cluster import free_port
from tests.support.store.processes import until_ended

ROOT: Final = Path(__file__).parents[2]
BIN: Final = Path(sys.executable).parent

REGISTRY: Final = (
    'schema = 1\napp = "demo"\n'
    + "".join(metric_text(f"m{i}", epsilon="0.001") for i in range(24))
    + metric_text(
        "runs",
        'type = "count"\nmin = 0\nmax = 1000\nstep = 1\nunit = "runs"\n'
        'aggregate = "sum"\notherwise = 0',
        epsilon="0.01",
    )
)

CLIENT: Final = """
import logging
from client_sdk import Client
logging.basicConfig()
client = Client(
    "https://127.0.0.1:9", "key", {registry!r}, consent="granted", data_dir={data!r},
)
client._engine.close_timeout = {patience}
"""


def needs(package: str) -> pytest.MarkDecorator:
    """Skip a test of a host that no version of this Python has, or this system."""
    return pytest.mark.skipif(find_spec(package) is None, reason=f"no {package} for this Python")


def environment(folder: Path, *more: Path) -> dict[str, str]:
    """Return an environment in which nobody says no and *folder* can be imported from."""
    undecided = {
        n: t for n, t in os.environ.items() if n not in ("DO_NOT_TRACK", "HEARSAY_TELEMETRY")
    }
    path = os.pathsep.join(map(str, (folder, *more, ROOT)))
    return {**undecided, "PYTHONPATH": path, "XDG_RUNTIME_DIR": str(folder)}


def application(folder: Path, rest: str) -> None:
    """Write program.py: it makes a client, then does *rest*."""
    (folder / "metrics.toml").write_text(REGISTRY)
    client = CLIENT.format(
        registry=str(folder / "metrics.toml"), data=str(folder / "data"), patience=PATIENCE
    )
    (folder / "program.py").write_text(client + rest)


WSGI: Final = """
import os, threading
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    name = environ["PATH_INFO"].strip("/")
    if name == "process":
        return [str(os.getpid()).encode()]
    client.record(*(("runs", 1) if name == "runs" else (name, True)))
    return [str([thread.name for thread in threading.enumerate()]).encode()]
"""


@contextmanager
def serving(folder: Path, *command: str) -> Iterator[int]:
    """Run *command*, in which PORT is a port, until the block ends; then send SIGTERM and wait."""
    port = free_port()
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [part.replace("PORT", str(port)) for part in command],
            cwd=folder,
            env=environment(folder),
            stdout=log,
            stderr=log,
        )
    with until_ended(server):
        yield port
    assert server.returncode != -signal.SIGKILL, (folder / "log").read_text()


def get(port: int, path: str) -> str:
    """Return what the server says as soon as it does; a refused connection is tried again."""

    def ask() -> str:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            with connection.getresponse() as response:
                assert response.status == 200
                return response.read().decode()
        finally:
            connection.close()

    return eventually(ask)


def eventually(ask: Callable[[], str]) -> str:
    """Return what *ask* returns once nothing is in its way any more."""
    return wait_for(ask, despite=(ConnectionError, HTTPException))


def run(folder: Path, *command: str) -> str:
    """Run *command* in *folder* to its end; return what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def reports(folder: Path) -> int:
    """Return how many reports lie on the disk."""
    return int(rows(folder / "data", "SELECT count(*) FROM reports")[0][0])


def runs(folder: Path) -> str:
    """Return what the open window of the sum holds, in words, as the user may see it."""
    shown = run(
        folder,
        *(sys.executable, "-m", "client_sdk", "show", "--data-dir", "data"),
        *("--registry", "metrics.toml"),
    )
    return next(line.split(": ")[1] for line in shown.splitlines() if "true so far" in line)
