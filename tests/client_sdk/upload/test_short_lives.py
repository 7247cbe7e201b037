"""Programs that end at once: what is due is sent within the second that closing takes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from client_sdk.client import Client
from client_sdk.core.epoch import DAY, HOUR
from client_sdk.upload.transport import RequestsTransport
from tests.support.device.clock import FakeClock
from tests.support.device.device import KEY, make_client, many_metrics, rows
from tests.support.device.slow_collector import SlowCollector, slow_collector
from tests.support.patience import PATIENCE
from tests.support.store.processes import until_ended

MINUTE = 60  # seconds
RUNS, APART = 20, 5 * HOUR  # seconds; four days of five metrics that are asked daily
METRICS = 5
LATENCY = 0.3  # seconds; TLS over a phone takes as long
NEVER = 60.0  # seconds; longer than any client waits here
WAITING = "SELECT (SELECT count(*) FROM reports) + (SELECT coalesce(sum(reports), 0) FROM uploads)"


def run_once(
    folder: Path, clock: FakeClock, collector: SlowCollector, timeout: float = PATIENCE
) -> Client:
    """Let a program make a client, record and end; then let hours pass."""
    transport = RequestsTransport(collector.url, KEY)
    registry = many_metrics(METRICS)
    client = make_client(
        folder, mode="background", clock=clock, transport=transport, registry=registry
    )
    for number in range(METRICS):
        client.record(f"m{number}", True)
    client.close(timeout=timeout)
    clock.advance(seconds=APART)
    return client


def waiting(folder: Path) -> int:
    (row,) = rows(folder, WAITING)
    return int(row[0])


_PROGRAM = f"""
import sys, time
from client_sdk import Client
from tests.support.device.device import many_metrics
url, folder, later, timeout = *sys.argv[1:3], float(sys.argv[3]), float(sys.argv[4])
client = Client(
    *(url, "k", many_metrics({METRICS})),
    consent="granted",
    data_dir=folder,
    clock=lambda: time.time() + later,
)
for number in range({METRICS}):
    client.record(f"m{{number}}", True)
if timeout:
    client.close(timeout=timeout)
"""


def program(folder: Path, collector: SlowCollector, later: float, timeout: float) -> list[str]:
    """Return a program of 0 ms, *later* seconds from now; without a *timeout* it just ends."""
    return [sys.executable, "-c", _PROGRAM, collector.url, str(folder), str(later), str(timeout)]


def run_process(folder: Path, collector: SlowCollector, later: float, timeout: float) -> None:
    subprocess.run(program(folder, collector, later, timeout), check=True, timeout=PATIENCE)


def test_processes_that_end_at_once_deliver_all_that_they_recorded(tmp_path: Path) -> None:
    """Law: a program need not live to be heard; only the last run's reports may still wait."""
    with slow_collector(lambda body: LATENCY) as collector:
        for run in range(RUNS):
            run_process(tmp_path, collector, run * APART, PATIENCE)

    assert collector.reports() + waiting(tmp_path) >= 4 * METRICS
    assert waiting(tmp_path) <= METRICS
    assert collector.changed_on_retry() == 0


def test_a_process_that_just_ends_delivers_too(tmp_path: Path) -> None:
    """Law: an application need not close its client; its exit sends what is due."""
    with slow_collector(lambda body: 0.0) as collector:
        for run in range(4):
            run_process(tmp_path, collector, run * APART, 0.0)

    assert collector.reports() >= METRICS


def test_all_that_short_runs_record_arrives_once(tmp_path: Path) -> None:
    """Law: the sum of what runs recorded is what came, but for what the last run began."""
    clock = FakeClock()
    with slow_collector(lambda body: 0.0) as collector:
        recorded = [run_once(tmp_path, clock, collector).stats() for _ in range(RUNS)]

    total = sum(stats["recorded"] for stats in recorded)
    assert total >= 4 * METRICS
    assert collector.reports() == total - waiting(tmp_path)
    assert sum(stats["uploaded"] for stats in recorded) == collector.reports()
    assert waiting(tmp_path) <= METRICS


def test_an_upload_that_is_never_answered_blocks_no_other(tmp_path: Path) -> None:
    """Law: it goes behind the others, and comes again byte for byte."""
    clock = FakeClock()
    with slow_collector(lambda body: 0.0) as collector:
        collector.delay = lambda body: NEVER if body == collector.bodies[0] else 0.0
        recorded = [run_once(tmp_path, clock, collector, 1.0).stats() for _ in range(RUNS)]

    assert collector.bodies.count(collector.bodies[0]) >= 2
    assert collector.changed_on_retry() == 0
    assert collector.reports() >= sum(stats["recorded"] for stats in recorded) - METRICS
    assert waiting(tmp_path) <= 2 * METRICS


def test_a_collector_that_is_always_too_late_gets_all_the_same(tmp_path: Path) -> None:
    """Law: no upload of which nothing was heard keeps the next ones from being sent."""
    clock = FakeClock()
    with slow_collector(lambda body: NEVER) as collector:
        recorded = [run_once(tmp_path, clock, collector, 0.5).stats() for _ in range(2 * RUNS)]

    assert sum(stats["uploaded"] for stats in recorded) == 0
    assert collector.changed_on_retry() == 0
    assert collector.reports() >= sum(stats["recorded"] for stats in recorded) - 3 * METRICS


def test_a_program_that_is_killed_while_it_sends_sends_the_same_at_its_next_run(
    tmp_path: Path,
) -> None:
    """Law: a pass is claimed until an answer; without one it is due again, with the same bytes."""
    with slow_collector(lambda body: NEVER) as collector:
        begin = later = DAY - time.time() % DAY  # so that the last run is on no other day
        while not collector.bodies and later < begin + RUNS * APART:
            later += APART
            process = subprocess.Popen(program(tmp_path, collector, later, PATIENCE))
            with until_ended(process, signal.SIGKILL):
                while process.poll() is None and not collector.arrived.wait(0.05):
                    continue
        collector.delay = lambda body: 0.0
        run_process(tmp_path, collector, later + 10 * MINUTE, PATIENCE)

    assert len(collector.bodies) == 2
    assert collector.bodies[0] == collector.bodies[1]
    assert waiting(tmp_path) == 0
