"""In children of task queues and pools, which end without the functions of ``atexit``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from collector.demo.embedded import EmbeddedStore
from tests.support.patience import PATIENCE
from tests.support.store.servers import needs_real

from .hosted import BIN, application, needs, reports, run, runs

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

TASKS: Final = 10

_WORK: Final = """
def work(i):
    client.record(f"m{i}", True)
    client.record("runs", 1)
    client.record("runs", 1)
    return os.getpid()
"""
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
ask = lambda i: work.delay(i)
@app.task
"""
_HUEY: Final = """
import os
from huey import SqliteHuey
huey = SqliteHuey(filename="queue.db")
ask = lambda i: work(i)
@huey.task()
"""
_CELERY_WORKER: Final = (
    *("celery", "-A", "program", "worker", "--concurrency=2", "--loglevel=error"),
)
_HUEY_WORKER: Final = ("huey.bin.huey_consumer", "program.huey", "--workers=2", "--quiet")
# Sends every task, then stops the worker as an operator does once all of them were done.
_SEND: Final = f"""
import signal, subprocess, sys
from program import ask
worker = subprocess.Popen([sys.executable, "-m", *sys.argv[2:]], stdout=subprocess.DEVNULL)
results = [ask(i) for i in range(int(sys.argv[1]))]
wait = {{"blocking": True}} if "program.huey" in sys.argv else {{}}
print(len({{result.get(timeout={PATIENCE}, **wait) for result in results}}))
worker.send_signal(signal.SIGTERM)
print(worker.wait({PATIENCE}))
"""


def queue_program(folder: Path, rest: str) -> None:
    """Write an application of a task queue into *folder*."""
    application(folder, rest)
    for name in ("queue", "results", "control"):
        (folder / name).mkdir()


QUEUES: Final = {
    "celery": (_CELERY, _CELERY_WORKER, {1, 2}),
    "celery, replaced": (_CELERY, (*_CELERY_WORKER, "--max-tasks-per-child=1"), {TASKS}),
    "celery, threads": (_CELERY, (*_CELERY_WORKER, "--pool=threads"), {1}),
    "celery, gevent": (_CELERY, (*_CELERY_WORKER, "--pool=gevent"), {1}),
    "celery, eventlet": (_CELERY, (*_CELERY_WORKER, "--pool=eventlet"), {1}),
    "huey": (_HUEY, _HUEY_WORKER, {1}),
    "huey, processes": (_HUEY, (*_HUEY_WORKER, "--worker-type=process"), {1, 2}),
    "huey, gevent": (_HUEY, (*_HUEY_WORKER, "--worker-type=greenlet"), {1}),
}


@pytest.mark.parametrize(
    ("program", "worker", "processes"),
    [
        pytest.param(*queue, id=name, marks=[needs("eventlet")] if "eventlet" in name else [])
        for name, queue in QUEUES.items()
    ],
)
def test_workers_of_a_queue_lose_nothing(
    tmp_path: Path, program: str, worker: tuple[str, ...], processes: set[int]
) -> None:
    """Law: what a task recorded is on the disk when its worker was replaced or shut down."""
    queue_program(tmp_path, program + _WORK)

    seen, status = run(tmp_path, sys.executable, "-c", _SEND, str(TASKS), *worker).split()

    assert int(seen) in processes
    assert status == "0"
    assert reports(tmp_path) == TASKS
    assert runs(tmp_path) == f"{2 * TASKS} runs"


_RQ: Final = """
from client_sdk import Client
def work(i):
    with Client({arguments}) as client:
        client.record(f"m{{i}}", True)
        client.record("runs", 1)
"""
_ENQUEUE: Final = """
import redis, rq, sys, program
queue = rq.Queue(connection=redis.Redis.from_url(sys.argv[1]))
for i in range(int(sys.argv[2])):
    queue.enqueue(program.work, i)
"""


@pytest.mark.real
@needs_real
@pytest.mark.parametrize("kind", ["Worker", "SimpleWorker", "SpawnWorker"])
def test_jobs_of_rq_that_close_their_client_lose_nothing(
    tmp_path: Path, real_store: EmbeddedStore, kind: str
) -> None:
    """Law: a process for each job, left by ``os._exit``, writes what its client had taken."""
    application(tmp_path, "")
    arguments = (tmp_path / "program.py").read_text().partition("Client(\n")[2].partition(")\n")[0]
    (tmp_path / "program.py").write_text(_RQ.format(arguments=arguments))
    run(tmp_path, sys.executable, "-c", _ENQUEUE, real_store.url, str(TASKS))

    worker = (str(BIN / "rq"), "worker", "--burst", "--quiet", "--url", real_store.url)
    run(tmp_path, *worker, "--worker-class", f"rq.worker.{kind}")

    assert reports(tmp_path) == TASKS
    assert runs(tmp_path) == f"{TASKS} runs"


_AT_WORK: Final = """
from client_sdk.integrations.celery import install
install(client)
import threading
@app.task
def work(i):
    return [thread.name for thread in threading.enumerate()]
"""
_ASK: Final = _SEND.replace("len({", "all({").replace("{result.get", '{"hearsay" in result.get')


def test_workers_of_celery_are_at_work_before_they_record(tmp_path: Path) -> None:
    """Law: install starts the thread of each child; without it the first value does."""
    queue_program(tmp_path, _CELERY.partition("@app.task")[0] + _AT_WORK)

    asked = run(tmp_path, sys.executable, "-c", _ASK, "3", *_CELERY_WORKER)
    assert asked.split() == ["True", "0"]
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
