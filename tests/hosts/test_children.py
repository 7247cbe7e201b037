"""In children of task queues and pools, which end without the functions of ``atexit``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from .hosted import application, reports, run, runs

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

TASKS: Final = 10

_CELERY: Final = """
import os
from celery import Celery
app = Celery(
    "program", broker="filesystem://", result_backend="file://" + os.path.abspath("results"),
    broker_transport_options=dict(
        data_folder_in="queue", data_folder_out="queue", control_folder="control"
    ),
)
app.conf.worker_hijack_root_logger = False
@app.task
def work(i):
    client.record(f"m{i}", True)
    client.record("runs", 1)
    client.record("runs", 1)
    return os.getpid()
"""
# Sends every task, then stops the worker as an operator does once all of them were done.
_SEND: Final = """
import signal, subprocess, sys
from program import work
worker = subprocess.Popen([
    sys.executable, "-m", "celery", "-A", "program", "worker",
    "--concurrency=2", "--loglevel=error", *sys.argv[2:],
], stdout=subprocess.DEVNULL)
results = [work.delay(i) for i in range(int(sys.argv[1]))]
print(len({result.get(timeout=60) for result in results}))
worker.send_signal(signal.SIGTERM)
print(worker.wait(60))
"""


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ((), 2),
        (("--max-tasks-per-child=1",), TASKS),
        (("--pool=threads",), 1),
        (("--pool=gevent",), 1),
        (("--pool=eventlet",), 1),
    ],
    ids=["kept", "replaced", "threads", "gevent", "eventlet"],
)
def test_workers_of_celery_lose_nothing(
    tmp_path: Path, options: tuple[str, ...], most: int
) -> None:
    """Law: what a task recorded is on the disk when its worker was replaced or shut down."""
    application(tmp_path, _CELERY)
    for folder in ("queue", "results", "control"):
        (tmp_path / folder).mkdir()

    processes, status = run(tmp_path, sys.executable, "-c", _SEND, str(TASKS), *options).split()

    assert int(processes) == TASKS if most == TASKS else int(processes) <= most
    assert status == "0"
    assert reports(tmp_path) == TASKS
    assert runs(tmp_path) == f"{2 * TASKS} runs"


_AT_WORK: Final = """
from client_sdk.integrations.celery import install
install(client)
import threading
@app.task
def work(i):
    return [thread.name for thread in threading.enumerate()]
"""
_ASK: Final = _SEND.replace(
    "print(len({result.get(timeout=60) for result in results}))",
    """
print(all("hearsay" in result.get(timeout=60) for result in results))
""",
)


def test_workers_of_celery_are_at_work_before_they_record(tmp_path: Path) -> None:
    """Law: install starts the thread of each child; without it the first value does."""
    application(tmp_path, _CELERY.partition("@app.task")[0] + _AT_WORK)
    for folder in ("queue", "results", "control"):
        (tmp_path / folder).mkdir()

    assert run(tmp_path, sys.executable, "-c", _ASK, "3").split() == ["True", "0"]
    assert runs(tmp_path) == "0 runs"


_POOL: Final = """
import multiprocessing, sys
def work(i):
    client.record(f"m{i}", True)
    client.record("runs", 1)
if __name__ == "__main__":
    pool = multiprocessing.get_context(sys.argv[1]).Pool(2)
    pool.map(work, range(10), chunksize=1)
    pool.close()
    pool.join()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_that_is_closed_loses_nothing(tmp_path: Path, method: str) -> None:
    """Law: its workers write down what they recorded, however they were started."""
    application(tmp_path, _POOL)

    run(tmp_path, sys.executable, "program.py", method)

    assert reports(tmp_path) == TASKS
    assert runs(tmp_path) == f"{TASKS} runs"
