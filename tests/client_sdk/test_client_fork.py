"""Forked and spawned processes: each has its own queue, thread and noise, and none waits."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from client_sdk.client import Client
from client_sdk.core.locks import QuietLock, this_process
from client_sdk.upload.connections import Connections
from tests.support.device.clock import FakeClock
from tests.support.device.device import make_client, many_metrics, rows
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

REPORTS: Final = "SELECT count(*) FROM reports"
WIDE: Final = 'type = "category"\nmechanism = "sue"\nvalues = [{}]'.format(
    ", ".join(f'"item {i}"' for i in range(128))
)


def in_child(action: Callable[[], bytes]) -> bytes:
    """Return what *action* returns in a forked child, which then ends without any clean-up."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(int(PATIENCE))  # a child that takes longer hangs
            os.write(writing, action())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


_DRAW = """
import os, sqlite3, sys  # loaded once, not by each child
from client_sdk.core.randomness import ByteRandomness
from tests.support.device.clock import FakeClock
from tests.support.device.device import make_client, metric_text, registry_of
kind, children, folder, clock = sys.argv[1], int(sys.argv[2]), sys.argv[3], FakeClock()
buffer = iter([os.urandom(16) for _ in range(999)])
planted = ByteRandomness(lambda count: next(buffer)[:count].ljust(count, b"."))
client = make_client(
    folder,
    clock=clock,
    registry=registry_of(metric_text("wide", {wide!r})),
    randomness=planted if kind == "planted" else None,
    on_report=lambda report: os.write(1, report.payload.hex().encode() + b" "),
)
for _ in range(children):
    clock.advance(days=7)  # each in a week of its own
    if os.fork() == 0:
        client.record("wide", "item 5")
        os._exit(0)
    os.wait()
"""


def draws(kind: str, children: int, folder: Path) -> list[str]:
    """Return the payload that each of *children* draws for the same value with one client."""
    command = [sys.executable, "-c", _DRAW.format(wide=WIDE), kind, str(children), str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout.split()


def test_no_two_of_200_forks_draw_the_same(tmp_path: Path) -> None:
    """Law: noise comes from the system, at the time of use.

    Each report has 128 bits, each 1 with a chance of 0.38 at least: two are equal with a chance
    below 0.53^128, so any of the 19,900 pairs with one below 1e-30.
    """
    drawn = draws("honest", 200, tmp_path)

    assert (len(drawn), len(set(drawn))) == (200, 200)


def test_a_buffer_of_randomness_is_caught_by_two_forks(tmp_path: Path) -> None:
    """Law: the test above sees the bug that it is there for: bytes fetched before the fork."""
    drawn = draws("planted", 2, tmp_path)

    assert (len(drawn), len(set(drawn))) == (2, 1)


def test_a_forked_child_begins_with_nothing(tmp_path: Path) -> None:
    """Law: what its parent recorded is its parent's to report and to count, and to nobody twice."""
    client = make_client(tmp_path, mode="background", registry=many_metrics(2))
    with client._engine._state().background._turn:  # the thread can write nothing
        client.record("m0", True)
        client.record("m0", "no boolean")

        def look() -> bytes:
            return bytes([bool(client._engine._state().inbox), sum(client.stats().values())])

        in_the_child = in_child(look)

    client.close()
    assert in_the_child == bytes([False, 0])
    assert (client.stats()["recorded"], client.stats()["invalid_value"]) == (1, 1)


def test_a_forked_child_has_a_thread_of_its_own(tmp_path: Path) -> None:
    """Law: a child records like its parent, though its parent's thread does not exist there."""
    client = make_client(tmp_path, mode="background", registry=many_metrics(2), clock=FakeClock())
    client.record("m0", True)

    def record() -> bytes:
        client.record("m1", True)
        client.close()
        return bytes([client.stats()["recorded"]])

    assert in_child(record) == bytes([1])
    client.close()
    assert rows(tmp_path, REPORTS) == [(2,)]


def _work(client: Client, name: str) -> None:
    client.record(name, True)


@pytest.mark.parametrize("before", ["used", "unused"])
def test_workers_of_a_forking_server_lose_nothing(tmp_path: Path, before: str) -> None:
    """Law: a client made before the fork works in every worker, which need not close it."""
    client = make_client(tmp_path, mode="background", registry=many_metrics(6), clock=FakeClock())
    if before == "used":
        client.record("m5", True)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_work, args=(client, f"m{i}")) for i in range(5)]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
    client.close()

    assert [worker.exitcode for worker in workers] == [0] * 5
    assert rows(tmp_path, REPORTS) == [(6 if before == "used" else 5,)]


def _spawned(folder: Path, name: str) -> None:
    _work(make_client(folder, mode="background", registry=many_metrics(2)), name)


def test_a_spawned_process_loses_nothing(tmp_path: Path) -> None:
    """Law: a child of multiprocessing, which runs no exit function, writes its queue down."""
    worker = multiprocessing.get_context("spawn").Process(target=_spawned, args=(tmp_path, "m0"))

    worker.start()
    worker.join(3 * PATIENCE)

    assert (worker.exitcode, rows(tmp_path, REPORTS)) == (0, [(1,)])


def test_a_child_that_records_nothing_does_nothing_at_its_end(tmp_path: Path) -> None:
    """Law: the many children of a server that never record send nothing and touch no file."""
    client = make_client(tmp_path, mode="background")

    def end() -> bytes:
        client._engine.exit()
        return b"ended"

    assert (in_child(end), list(tmp_path.iterdir())) == (b"ended", [])


def test_a_fork_waits_until_no_thread_is_in_the_database() -> None:
    """Law: the locks inside SQLite are never copied while they are held."""
    lock, inside, leave = QuietLock(), threading.Event(), threading.Event()
    order: list[str] = []

    def write() -> None:
        with lock:
            inside.set()
            leave.wait(PATIENCE)
            order.append("left")

    thread = threading.Thread(target=write)
    thread.start()
    inside.wait(PATIENCE)
    threading.Timer(0.1, leave.set).start()

    in_child(lambda: b"")

    order.append("forked")
    thread.join()
    assert order == ["left", "forked"]


def test_every_fork_is_another_process() -> None:
    """Law: a process is told from its parent even where the system reuses its number."""
    pid, depth = this_process()

    child_pid, _, child_depth = (
        in_child(lambda: "{} / {}".format(*this_process()).encode()).decode().partition(" / ")
    )

    assert (int(child_pid) != pid, int(child_depth)) == (True, depth + 1)


_IMPORT = """
import os, signal, sys, threading, time
from pathlib import Path
from client_sdk.core.locks import ProcessLock
from client_sdk.storage.store import Store
from client_sdk.upload.transport import RequestsTransport
kind, package, folder, patience = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
importing = threading.Event()
class Slow:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("requests.sessions", "sqlite3.dbapi2"):
            importing.set()
            time.sleep(0.3)
sys.meta_path.insert(0, Slow)
transport, store = RequestsTransport("http://127.0.0.1:9", "key"), Store(Path(folder))
if kind == "planted":
    transport._loading = ProcessLock()
def work():
    try:
        if package == "requests":
            transport.send(b"", 20.0)
        else:
            with store.transaction():
                pass
    except OSError:
        pass
threading.Thread(target=work, daemon=True).start()
importing.wait(20)
child = os.fork()
if child == 0:
    signal.setitimer(signal.ITIMER_REAL, patience)
    __import__(package)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize(
    ("kind", "package", "patience", "status"),
    [
        ("honest", "requests", PATIENCE, 0),
        ("honest", "sqlite3", PATIENCE, 0),
        ("planted", "requests", 1, signal.SIGALRM),
    ],
)
def test_a_fork_waits_until_nothing_is_half_imported(
    tmp_path: Path, kind: str, package: str, patience: float, status: int
) -> None:
    """Law: no child hangs at a module that a thread of its parent was just importing.

    A lock that no fork waits for is the planted bug: its child must be seen to hang.
    """
    command = [sys.executable, "-c", _IMPORT, kind, package, str(tmp_path), str(patience)]

    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)

    assert int(run.stdout) == status


def test_a_forked_child_does_not_hang_up_for_its_parent() -> None:
    """Law: the connections of a parent are its own, though a child has a copy of each."""
    connections, (one, other) = Connections(), socket.socketpair()

    def hang_up() -> bytes:
        connections.cut()
        return b"done"

    with one, other:
        connections.add(one)
        told = in_child(hang_up)
        one.sendall(b"still there")

        assert (told, other.recv(99)) == (b"done", b"still there")
        connections.cut()
        assert other.recv(1) == b""
