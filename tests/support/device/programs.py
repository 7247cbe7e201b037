"""Programs that live for a moment, as processes, and a collector that notes what they send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final

from client_sdk.core.base64url import from_base64url
from client_sdk.core.limits import NOTES_FILE
from tests.support.device.device import rows
from tests.support.device.loopback import LoopbackServer, running
from tests.support.patience import PATIENCE, wait_for

ROOT: Final = Path(__file__).parents[3]
DATA: Final = "data"
FOLDER: Final = "FOLDER_OF_THE_TEST"  # in the environment: whose children they are
BEGINS: Final = "client_sdk.recording.detached"  # in the arguments of every child

CHARGES: Final = "SELECT count(*) FROM charges WHERE digest <> x''"
RECORDS: Final = "command.record('plain', True)\n"
TELLS: Final = "command._end()\nos.write(1, str(dict(command.counts())).encode())\n"

LIGHT: Final = """
import os, sys
from client_sdk import command
command.configure("{endpoint}", "key-of-the-application", "metrics.toml",
    data_dir="data", consent="{consent}")
command._PATIENCE = {patience}
{body}
"""


def write_registry(folder: Path, *metrics: str) -> Path:
    """Write a registry of *metrics* into *folder*."""
    path = folder / "metrics.toml"
    path.write_text('schema = 1\napp = "demo"\n' + "".join(metrics))
    return path


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment of programs in *folder* in which nobody says no, with *more*."""
    undecided = {
        name: text
        for name, text in os.environ.items()
        if name not in ("DO_NOT_TRACK", "HEARSAY_TELEMETRY")
    }
    return {**undecided, "PYTHONPATH": str(ROOT), FOLDER: str(folder), **more}


def program(
    body: str, *, endpoint: str = "http://127.0.0.1:9", consent: str = "granted"
) -> tuple[str, ...]:
    """Return the command of a program that says where values go, then does *body*."""
    text = LIGHT.format(endpoint=endpoint, consent=consent, patience=PATIENCE, body=body)
    return sys.executable, "-c", text


def run(folder: Path, body: str, *, consent: str = "granted", **more: str) -> str:
    """Run a program in *folder* to its end, and return what it printed."""
    done = subprocess.run(
        program(body, consent=consent),
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def charges(folder: Path) -> int:
    """Return how many reports were charged for."""
    return int(rows(folder / DATA, CHARGES)[0][0])


def children_of(folder: Path, *, with_beginning: bool = False) -> list[int]:
    """Return the children of programs that ``run`` started in *folder* and that still run.

    Args: with_beginning: also what just begins, whose arguments the system does not show yet.
    """
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                arguments = (process / "cmdline").read_bytes()
                variables = (process / "environ").read_bytes()
                (process / "exe").readlink()
            except OSError:  # it has ended, or is of the kernel
                continue
            is_child = BEGINS.encode() in arguments and f"{FOLDER}={folder}\0".encode() in variables
            if is_child or (with_beginning and not arguments):
                found.append(int(process.name))
    return found


def wait_for_notes(folder: Path, *, after: int = 0, data: str = DATA) -> int:
    """Wait until a child has ended its work; return when it did, in nanoseconds of the file."""
    path = folder / data / NOTES_FILE
    wait_for(lambda: path.exists() and path.stat().st_mtime_ns > after)
    return path.stat().st_mtime_ns


def wait_for_no_children(folder: Path, seconds: float = PATIENCE) -> None:
    """Return when no child of programs in *folder* runs any more; fail after so many *seconds*."""
    end = time.monotonic() + seconds
    while left := children_of(folder, with_beginning=True):
        assert time.monotonic() < end, f"{len(left)} children are left"
        time.sleep(0.05)


class Arrivals:
    """What has arrived: each upload's bodies by its id, and its reports, each upload once."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {}
        self._lock = threading.Lock()

    def add(self, body: bytes) -> bool:
        """Take *body*; return whether its id came before."""
        with self._lock:
            bodies = self.bodies.setdefault(json.loads(body)["id"], [])
            bodies.append(body)
            return len(bodies) > 1

    def reports(self) -> Counter[tuple[str, int]]:
        """Return the reports of one byte by metric and epoch, each upload counted once."""
        found: Counter[tuple[str, int]] = Counter()
        for body, *_ in self.bodies.values():
            for column in json.loads(body)["columns"]:
                size = len(from_base64url(column["payloads"]))
                found[column["metric"], column["epoch"]] += size
        return found


@contextmanager
def noting_collector() -> Iterator[tuple[str, Arrivals]]:
    """Yield the address of a collector that accepts everything, and what has arrived there."""
    arrivals = Arrivals()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            duplicate = arrivals.add(body)
            answer = json.dumps({"accepted": 1, "duplicate": duplicate, "rejected": []}).encode()
            self.send_response(202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with running(LoopbackServer(Handler)) as server:
        yield f"http://127.0.0.1:{server.port}", arrivals
