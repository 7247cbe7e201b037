"""The client with its thread: callers wait for nothing, and nothing recorded is lost at the end."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.client import Client
from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.randomness import ByteRandomness, system_randomness
from client_sdk.privacy.consent import Consent
from client_sdk.recording.inbox import MAX_SLOTS, ReportView
from client_sdk.storage.schema import FILE_NAME
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    CANARY,
    ENDPOINT,
    KEY,
    changed,
    make_client,
    many_metrics,
    metric_text,
    rows,
)
from tests.support.device.device_transport import HookedTransport, ScriptedTransport
from tests.support.device.programs import environment, noting_collector, write_registry
from tests.support.enumeration.enumeration import Untouchable
from tests.support.patience import PATIENCE

REPORTS = "SELECT count(*) FROM reports"


class ThreadSeen(ByteRandomness):
    """The system's randomness; remembers who drew, and that somebody did."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()
        self.drawn = threading.Event()

    def uniform(self, n: int) -> int:
        self.threads.add(threading.get_ident())
        self.drawn.set()
        return super().uniform(n)


def test_a_value_becomes_a_report_on_another_thread(tmp_path: Path) -> None:
    """Law: in background mode the caller of record draws and writes nothing."""
    seen = ThreadSeen()
    client = make_client(tmp_path, mode="background", randomness=seen)

    client.record("dark_mode", True)

    assert seen.drawn.wait(PATIENCE)
    assert threading.get_ident() not in seen.threads
    client.close()
    assert rows(tmp_path, REPORTS) == [(1,)]


def test_recording_does_not_wait_for_a_locked_database(tmp_path: Path) -> None:
    """Law: whoever holds the database, record returns; the values are written afterwards."""
    make_client(tmp_path).record("dark_mode", True)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    registry = many_metrics(20)
    client = make_client(tmp_path, mode="background", registry=registry)

    for i in range(20):
        client.record(f"m{i}", True)

    assert changed(client) == {}
    other.execute("ROLLBACK")
    other.close()
    client.flush()
    assert client.stats()["recorded"] == 20
    client.close()


_NO_IO = """
import sys, threading
from tests.support.device.device import make_client, many_metrics
from pathlib import Path
client = make_client(Path(sys.argv[1]), mode="background", registry=many_metrics(20))
client.record("m0", True)  # starts the thread
client.flush()
main, seen = threading.get_ident(), []
watching = True
def hook(event, args):
    if watching and threading.get_ident() == main:
        seen.append(event)
sys.addaudithook(hook)
if sys.argv[2] == "planted":
    make_client(Path(sys.argv[1]), registry=many_metrics(20)).record("m1", True)
for i in range(20):
    client.record(f"m{i}", True)
client.record("m1", "not a bool")
client.record("unknown", 1)
watching = False
client.close()
print(sorted(set(seen)))
"""


@pytest.mark.parametrize(("kind", "quiet"), [("honest", True), ("planted", False)])
def test_recording_asks_nothing_of_the_system(tmp_path: Path, kind: str, quiet: bool) -> None:
    """Law: no file, socket, process or database is touched by the thread that records.

    A client in manual mode is the planted bug: the hook must see it.
    """
    command = [sys.executable, "-c", _NO_IO, str(tmp_path), kind]

    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)

    assert (run.stdout.strip() == "[]") is quiet


def test_a_flush_writes_and_sends_what_is_queued() -> None:
    """Law: after flush, every value recorded before has reached the collector."""
    transport = ScriptedTransport()
    client = make_client(mode="background", transport=transport, registry=many_metrics(30))
    for i in range(30):
        client.record(f"m{i}", True)

    client.flush()

    assert changed(client) == {"recorded": 30, "uploaded": 30}
    client.close()


def test_closing_writes_what_is_queued_and_keeps_the_schedule(tmp_path: Path) -> None:
    """Law: close loses nothing, and sends nothing before its time: it would tell of the close."""
    transport = ScriptedTransport()
    client = make_client(tmp_path, mode="background", transport=transport)
    client.record("dark_mode", True)

    client.close()

    assert (changed(client), transport.sent) == ({"recorded": 1}, [])
    assert rows(tmp_path, REPORTS) == [(1,)]


def happens_in_time(event: threading.Event, client: Client, clock: FakeClock) -> bool:
    """Let the time of the next pass come for the thread of *client*; return whether *event* did."""
    engine = client._engine
    clock.advance(seconds=engine.uploader.wait(clock()))
    engine._state().background.wake()
    return event.wait(PATIENCE)


def test_an_end_that_waits_too_short_a_time_is_counted(tmp_path: Path) -> None:
    """Law: what was not written by then may be lost, and an application can see that."""
    written = threading.Event()
    client = make_client(tmp_path, mode="background", on_report=lambda _: written.wait(PATIENCE))
    client.record("dark_mode", True)

    client.close(0.01)

    assert changed(client) == {"late": 1}
    written.set()


def test_what_is_due_is_sent_by_the_thread(tmp_path: Path) -> None:
    """Law: without any flush, reports leave once their scheduled time has come."""
    sent, clock = threading.Event(), FakeClock()
    first = make_client(tmp_path, clock=clock, transport=ScriptedTransport([503]))
    first.record("dark_mode", True)
    first.close()
    clock.advance(days=1)
    client = make_client(
        tmp_path, mode="background", clock=clock, transport=HookedTransport(sent.set)
    )

    client.record("theme", "plain")

    assert happens_in_time(sent, client, clock)
    client.close()


def test_a_slow_collector_holds_no_value_in_memory(tmp_path: Path) -> None:
    """Law: while an upload waits for its answer, values are still written down."""
    sending, answer, clock = threading.Event(), threading.Event(), FakeClock()

    def hang() -> None:
        sending.set()
        answer.wait(PATIENCE)

    make_client(tmp_path, clock=clock, transport=ScriptedTransport([503])).record("theme", "plain")
    clock.advance(days=1)
    seen, transport = ThreadSeen(), HookedTransport(hang)
    client = make_client(
        tmp_path, mode="background", clock=clock, transport=transport, randomness=seen
    )
    client.record("dark_mode", True)
    client.flush(0.0)  # writes the queue down; the schedule is planned by now
    clock.advance(days=1)
    client.record("dark_mode", True)
    assert happens_in_time(sending, client, clock)
    seen.drawn.clear()

    client.record("theme", "plain")

    assert seen.drawn.wait(PATIENCE)
    answer.set()
    client.close()


def test_a_store_in_memory_is_sent_at_the_end() -> None:
    """Law: what would be lost with the process is sent when the client is closed."""
    transport = ScriptedTransport()
    with make_client(mode="background", transport=transport) as client:
        client.record("dark_mode", True)

    assert changed(client) == {"recorded": 1, "uploaded": 1}


def test_a_revocation_forgets_the_queue(tmp_path: Path) -> None:
    """Law: a value that was queued when the user said no becomes no report."""
    make_client(tmp_path).record("dark_mode", True)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # nothing can be written down yet
    client = make_client(tmp_path, mode="background", randomness=Untouchable())
    client.record("theme", CANARY)

    client._engine.switch.consent = Consent.DENIED
    other.execute("ROLLBACK")
    other.close()
    client.set_consent("denied")

    client.close()
    counts = client.stats()
    assert (counts["recorded"], counts["consent"], counts["revoked"]) == (0, 1, 1)
    assert rows(tmp_path, REPORTS) == [(0,)]


def test_a_full_queue_is_counted() -> None:
    """Law: only a clock that jumps over epochs fills it; every call is counted once."""
    client = make_client(mode="background", registry=many_metrics(1), clock=(clock := FakeClock()))
    with client._engine._state().background._turn:  # the thread can write nothing
        for _ in range(MAX_SLOTS + 5):
            client.record("m0", True)
            clock.advance(days=1)
        full = client.stats()["queue_full"]

    client.close()
    assert full == 5


_ENDS = {
    "by itself": "",
    "by sys.exit": "import sys; sys.exit(3)",
    "by an error": "raise RuntimeError",
}
_RECORDS = """
import client_sdk
arguments = {endpoint!r}, {key!r}, {registry!r}
client = client_sdk.Client(*arguments, consent="granted", data_dir={data!r})
client._engine.close_timeout = 20
client.record("dark_mode", True)
{end}
"""


@pytest.mark.parametrize("end", _ENDS.values(), ids=_ENDS)
def test_a_process_that_just_ends_leaves_its_values_on_the_disk(tmp_path: Path, end: str) -> None:
    """Law: an application needs not close its client."""
    registry, data = tmp_path / "metrics.toml", tmp_path / "data"
    registry.write_text('schema = 1\napp = "demo"\n' + metric_text("dark_mode"))
    program = _RECORDS.format(
        endpoint=ENDPOINT, key=KEY, registry=str(registry), data=str(data), end=end
    )

    subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, timeout=PATIENCE
    )

    assert rows(data, REPORTS) == [(1,)]


NO_THREADS: Final = """
import sys, threading
class Thread(threading.Thread):
    def __init__(self, *arguments, daemon=None, **options):
        if daemon:
            raise RuntimeError("daemon threads are disabled in this (sub)interpreter")
        super().__init__(*arguments, daemon=daemon, **options)
threading.Thread = Thread
from client_sdk import Client
client = Client(sys.argv[1], "key", "metrics.toml", consent="granted", data_dir="data")
client.record("plain", True)
left = client.flush()
client.record("other", True)
client.close()
print(left.waiting, {reason: count for reason, count in client.stats().items() if count})
"""


def test_an_interpreter_without_daemon_threads_records_and_sends(tmp_path: Path) -> None:
    """Law: as one of PEP 734 is, whose threads it must wait for; all is done by the caller's."""
    write_registry(tmp_path, metric_text("plain"), metric_text("other"))

    with noting_collector() as (endpoint, arrivals):
        done = subprocess.run(
            [sys.executable, "-c", NO_THREADS, endpoint],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    assert (done.stdout, done.stderr) == ("0 {'recorded': 2, 'uploaded': 1}\n", "")
    assert arrivals.reports().total() == 1
    assert rows(tmp_path / "data", REPORTS) == [(1,)]


def test_a_client_that_is_forgotten_leaves_its_values_on_the_disk(tmp_path: Path) -> None:
    """Law: the thread holds no client, and the end of the client ends the thread."""
    client = make_client(tmp_path, mode="background")
    client.record("dark_mode", True)

    del client
    gc.collect()

    assert rows(tmp_path, REPORTS) == [(1,)]


def test_an_error_in_one_value_costs_no_other() -> None:
    """Law: a value that breaks its mechanism is counted alone; its group is recorded."""

    class Breaks(ByteRandomness):
        def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
            raise RuntimeError("broken")

    client = make_client(mode="background", randomness=Breaks())
    for name, value in (("dark_mode", True), ("files", 50.5), ("theme", "plain")):
        client.record(name, value)

    client._engine._state().background.drain(PATIENCE)

    assert changed(client) == {"recorded": 2, "internal": 1}
    client.close()


def test_only_the_two_modes_are_a_mode() -> None:
    """Law: a wrong mode is refused at once."""
    with pytest.raises(InvalidParameterError, match="mode=thread"):
        make_client(mode="thread")


def test_a_manual_client_has_no_thread() -> None:
    """Law: in manual mode everything happens in calls."""
    before = threading.active_count()
    client = make_client(randomness=system_randomness())

    client.record("dark_mode", True)

    assert (changed(client), threading.active_count()) == ({"recorded": 1}, before)
    client.close()


def leaving(report: ReportView) -> bool:
    """A hook of an application that ends the program, or so it thinks."""
    sys.exit(1)


def test_a_hook_that_exits_drops_its_report_and_not_the_thread() -> None:
    """Law: whatever a hook raises, the values after it are reported."""
    names: list[str] = []

    def hook(report: ReportView) -> bool:
        names.append(report.metric)
        return leaving(report) if report.metric == "m0" else True

    client = make_client(mode="background", registry=many_metrics(2), on_report=hook)
    client.record("m0", True)
    client.record("m1", True)
    assert client._engine._state().background.stop(PATIENCE)

    assert names == ["m0", "m1"]
    assert (client.stats()["dropped"], client.stats()["recorded"]) == (1, 1)


def test_what_ends_the_program_passes_through_a_hook_on_the_main_thread() -> None:
    """Law: a signal that comes in the middle of a hook is not taken for a failure of the hook."""
    client = make_client(on_report=leaving)

    with pytest.raises(SystemExit):
        client.record("dark_mode", True)

    assert changed(client) == {}


@pytest.mark.parametrize("mode", ["manual", "background"])
@pytest.mark.parametrize(
    ("timeout", "sent"),
    [
        *((None, 0), ("x", 0), (float("nan"), 0), (-1, 0)),
        *((float("inf"), 1), (1e300, 1), (10**400, 1)),
    ],
)
def test_a_flush_never_raises(mode: str, timeout: Any, sent: int) -> None:
    """Law: what is no number of seconds is counted, and nothing is sent."""
    transport = ScriptedTransport()
    client = make_client(mode=mode, transport=transport)
    client.record("dark_mode", True)

    client.flush(timeout)

    odd = timeout is None or timeout == "x" or timeout != timeout
    assert (len(transport.sent), client.stats()["internal"]) == (sent, int(odd))
    client.close()
