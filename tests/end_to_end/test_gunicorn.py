"""The SDK below gunicorn, which forks its workers before or after the application is made."""

from __future__ import annotations

import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.device.device import metric_text, rows
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.cluster import free_port
from tests.support.store.processes import until_ended

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

VALUES: Final = 24  # recorded, each of a metric of its own
OF_A_WORKER: Final = 5  # requests after which gunicorn replaces a worker
WORKERS: Final = 2
UNDECIDED: Final = {
    n: t for n, t in os.environ.items() if n not in ("DO_NOT_TRACK", "HEARSAY_TELEMETRY")
}

# Every request records the same value of another metric and says which process did.
_APPLICATION: Final = """
import os
from client_sdk import Client
from client_sdk.core.randomness import ByteRandomness
buffer = iter([os.urandom(16) for _ in range(999)])
planted = ByteRandomness(lambda count: next(buffer)[:count].ljust(count, b"."))
client = Client(
    "https://127.0.0.1:9", "key", "metrics.toml", consent="granted", data_dir="data",
    randomness={randomness},
)
def application(environ, start_response):
    client.record(environ["PATH_INFO"].strip("/"), "item 5")
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""
_ITEMS: Final = ", ".join(f'"item {i}"' for i in range(128))
_WIDE: Final = f'type = "category"\nmechanism = "sue"\nvalues = [{_ITEMS}]'


class Run(NamedTuple):
    """What a server left: the process that answered each request, and the payloads on disk."""

    processes: list[str]
    payloads: list[bytes]


def serve(folder: Path, *options: str, randomness: str = "None") -> Run:
    """Serve VALUES requests, end the server by SIGTERM at once, and look at the disk."""
    metrics = (metric_text(f"m{i}", _WIDE, epsilon="0.001") for i in range(VALUES))
    (folder / "metrics.toml").write_text('schema = 1\napp = "demo"\n' + "".join(metrics))
    (folder / "program.py").write_text(_APPLICATION.format(randomness=randomness))
    port = free_port()
    command = [
        *(sys.executable, "-m", "gunicorn", "program:application", f"--bind=127.0.0.1:{port}"),
        *(f"--workers={WORKERS}", f"--max-requests={OF_A_WORKER}", "--log-level=error"),
    ]
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(folder)])
    server = subprocess.Popen(
        [*command, *options],
        cwd=folder,
        env={**UNDECIDED, "PYTHONPATH": path, "XDG_RUNTIME_DIR": str(folder)},
    )
    with until_ended(server):
        processes = [_answer(port, f"/m{i}") for i in range(VALUES)]
    stored = rows(folder / "data", "SELECT payload FROM reports")
    return Run(processes, [bytes(payload) for (payload,) in stored])


def _answer(port: int, path: str) -> str:
    """Return what the server says; a refused connection was not served and may be repeated."""

    def ask() -> str:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            with connection.getresponse() as response:
                return response.read().decode()
        finally:
            connection.close()

    return wait_for(ask, despite=(ConnectionError,))


@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["fork-first", "preload"])
def test_gunicorn_loses_no_value_and_repeats_no_draw(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Law: whatever was recorded before TERM is on the disk, and noise is drawn in each worker.

    Each report has 128 bits, each 1 with a chance near 0.5: two are equal with a chance below
    0.51^128, so any of the 276 pairs with one below 1e-34.
    """
    run = serve(tmp_path, *options)

    assert len(set(run.processes)) > WORKERS, "workers were replaced"
    assert len(run.payloads) == VALUES
    assert len(set(run.payloads)) == VALUES


def test_a_buffer_of_randomness_made_before_the_fork_is_caught(tmp_path: Path) -> None:
    """Law: the test above sees the bug that it is there for: workers that share their noise."""
    run = serve(tmp_path, "--preload", randomness="planted")

    assert len(run.payloads) == VALUES
    assert len(set(run.payloads)) < VALUES
