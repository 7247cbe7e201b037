"""Programs that live for a moment, on a collector: what they record arrives, once, and unseen."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.base64url import base64url
from client_sdk.core.epoch import DAY, HOUR, epoch_of
from client_sdk.recording import handover
from client_sdk.registry import Registry
from client_sdk.upload.transport import Answer
from collector.core.config import STANDARD
from collector.storage.connect import open_storage
from tests.support.crowds.fleet import RecordingTransport, recording, stored_tallies, tallies_of
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY
from tests.support.device.clock import FakeClock
from tests.support.device.device import CANARY, metric_text, rows
from tests.support.device.movable_clock import MovableClock, needs_movable_clock
from tests.support.device.programs import (
    BEGINS,
    Arrivals,
    children_of,
    environment,
    noting_collector,
    program,
    wait_for_no_children,
    write_registry,
)
from tests.support.device.short_runs import Week
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.site import Site, running_site
from tests.support.store.processes import until_ended
from tests.support.store.servers import needs_real

NAMES: Final = [f"metric_{i}" for i in range(4)]
RUNS: Final = 100  # a day
CHARGED: Final = "SELECT digest, epoch FROM charges WHERE digest <> x''"
WAITING: Final = (
    "SELECT (SELECT count(*) FROM reports) + (SELECT coalesce(sum(reports), 0) FROM uploads)"
)
SPENT: Final = "SELECT coalesce(sum(nano), 0) FROM totals WHERE digest <> x''"
SHARDS: Final = 4  # the default of ``hearsay serve``


class Journey:
    """When each report of a device was recorded, was first due, and arrived, in simulated time."""

    def __init__(self, site: Site, clock: FakeClock) -> None:
        self._inner, self._clock = recording(site.url, WRITE_KEY), clock
        self.due: dict[tuple[str, int], float] = {}
        self.arrived: dict[tuple[str, int], float] = {}

    @property
    def uploads(self) -> RecordingTransport:
        """What was sent, by id."""
        return self._inner

    def send(self, body: bytes, timeout: float) -> Answer:
        """Send *body* to the collector, and note what it acknowledged."""
        answer = self._inner.send(body, timeout)
        for column in json.loads(body)["columns"]:
            self.arrived.setdefault((column["metric"], column["epoch"]), self._clock())
        return answer


def travel(
    folder: Path, site: Site, days: int, monkeypatch: pytest.MonkeyPatch, chance: random.Random
) -> Journey:
    """Let one device run RUNS times a day, at chance times, for the *days* before now."""
    clock = FakeClock(time.time() - days * DAY)
    journey = Journey(site, clock)
    week = Week(folder, monkeypatch, journey, clock)
    moments = sorted(chance.uniform(0, days * DAY) for _ in range(RUNS * days))
    digests = {m.name: base64url(m.digest) for m in Registry.from_file(folder / "metrics.toml")}
    last = 0.0
    for moment in moments:
        clock.advance(seconds=moment - last)
        last = moment
        week.run(**dict.fromkeys(NAMES, True))
        for name in NAMES:
            journey.due.setdefault((digests[name], epoch_of("1d", clock())), week.due)
    return journey


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    registry = write_registry(tmp_path, *(metric_text(name, epsilon="0.25") for name in NAMES))
    with running_site(tmp_path / "store", registry, WRITE_KEY, READ_TOKEN) as running:
        yield running


@pytest.mark.real
@needs_real
@pytest.mark.parametrize(
    ("devices", "planted"),
    [(1, False), (1, True), pytest.param(20, False, marks=pytest.mark.slow)],
)
def test_a_hundred_runs_a_day_for_a_week_reach_the_collector(
    site: Site, tmp_path: Path, devices: int, planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least 95 % are collected within 24 hours of their first due pass, and each once.

    A run that finds a pass due takes it with one half: that none of a day's hundred does is less
    likely than 1e-14 after the longest time to the next pass.  Planted: a coin that never falls.
    """
    journeys = []
    if planted:
        monkeypatch.setattr(handover, "flip_coin", lambda: False)
    for number in range(devices):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "metrics.toml").write_bytes((tmp_path / "metrics.toml").read_bytes())
        journeys.append(travel(folder, site, 7, monkeypatch, random.Random(number)))
    site.wait_until_folded()

    now = time.time()
    judged = [
        journey.arrived.get(report, float("inf")) <= due + DAY
        for journey in journeys
        for report, due in journey.due.items()
        if due + DAY <= now
    ]
    assert len(judged) >= devices * 6 * len(NAMES)
    assert (sum(judged) >= 0.95 * len(judged)) is not planted
    if planted:
        return
    registry = Registry.from_file(tmp_path / "metrics.toml")
    bodies = [body for journey in journeys for (body,) in journey.uploads.bodies.values()]
    storage = open_storage(site.redis_url, "hearsay", SHARDS, STANDARD)
    sent = tallies_of(bodies, registry)
    assert stored_tallies(storage, registry, bodies) == sent
    assert max(sent[cell] for cell in sent if cell[3] == 0) <= devices


@needs_movable_clock
@pytest.mark.parametrize("days", [0.1, pytest.param(2.0, marks=pytest.mark.slow)])
def test_processes_that_run_a_hundred_times_a_day_reach_the_collector(
    tmp_path: Path, days: float
) -> None:
    """Real processes and children, by a clock of their own."""
    write_registry(tmp_path, *(metric_text(name, epsilon="0.25") for name in NAMES))
    clock = MovableClock(tmp_path / "clock")
    body = "".join(f"command.record({name!r}, True)\n" for name in NAMES)
    with noting_collector() as (url, arrivals):
        for number in range(round(RUNS * days)):
            clock.set(number * DAY / RUNS)
            start(tmp_path, program(body, endpoint=url), clock).communicate()
            wait_for_no_children(tmp_path)

    charged = charged_in(tmp_path)
    assert_sent_once(tmp_path, charged, arrivals)
    assert len(charged) in [
        len(NAMES) * epochs for epochs in range(max(1, int(days)), int(days) + 3)
    ]
    if days >= 2:
        assert len(arrivals.reports()) >= len(NAMES) * int(days)


def start(
    folder: Path, command: Sequence[str], clock: MovableClock | None = None, **more: str
) -> subprocess.Popen[bytes]:
    """Start a program in *folder* by *clock*."""
    moved = {} if clock is None else clock.environment
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder, **moved, **more),
        stdout=subprocess.PIPE,
    )


def charged_in(folder: Path) -> set[tuple[str, int]]:
    """Return what the ledger was charged for, by the metric's name on the wire and epoch."""
    return {(base64url(digest), epoch) for digest, epoch in rows(folder / "data", CHARGED)}


def assert_sent_once(folder: Path, charged: set[tuple[str, int]], arrivals: Arrivals) -> None:
    """Each id has one body, each metric and epoch one report, and none was lost or made up."""
    reports = arrivals.reports()
    assert set(reports) <= charged
    assert all(len(set(bodies)) == 1 for bodies in arrivals.bodies.values())
    assert set(reports.values()) <= {1}
    ((waiting,),) = rows(folder / "data", WAITING)
    unanswered = len(reports) + waiting - len(charged)  # arrived, but the answer was lost
    assert 0 <= unanswered <= waiting


KILLS: Final = """
spawn = os.posix_spawn
def named(*arguments, **options):
    child = spawn(*arguments, **options)
    os.write(1, str(child).encode())
    return child
os.posix_spawn = named
"""


@needs_movable_clock
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_child_killed_at_any_moment_spends_and_sends_nothing_twice(
    tmp_path: Path, kills: int
) -> None:
    """Runs are an hour and a half apart: a pass is due in many, and nothing gets too old to send.

    Trusted time stands still, as the machine's uptime does; so the caps of a week bound it all.
    """
    names = [f"m{i}" for i in range(5)]
    each = {20: 100_000_000, 200: 10_000_000}[kills]  # nano-ε
    epsilon = f"0.{each:09}".rstrip("0")
    write_registry(tmp_path, *(metric_text(n, epsilon=epsilon, every="1h") for n in names))
    clock, chance = MovableClock(tmp_path / "clock"), random.SystemRandom()
    body = KILLS + "".join(f"command.record({name!r}, True)\n" for name in names)
    killed = 0
    with noting_collector() as (url, arrivals):
        for number in range(kills):
            clock.set(number * 1.5 * HOUR)
            parent = start(tmp_path, program(body, endpoint=url), clock)
            printed, _ = parent.communicate()
            time.sleep(0.7 * chance.random())
            with suppress(ProcessLookupError):
                os.kill(int(printed), signal.SIGKILL)
                killed += 1
        for number in range(150):  # and then in peace, until nothing waits
            clock.set(kills * 1.5 * HOUR + number * 600)
            start(tmp_path, program("command.flush()", endpoint=url), clock).communicate()
            with suppress(sqlite3.OperationalError):  # no child came so far as to make the tables
                if rows(tmp_path / "data", WAITING) == [(0,)]:
                    break

    charged = charged_in(tmp_path)
    ((spent,),) = rows(tmp_path / "data", SPENT)
    assert spent == each * len(charged) <= 8_000_000_000
    assert_sent_once(tmp_path, charged, arrivals)
    assert set(arrivals.reports()) == charged
    assert killed > kills // 10
    assert charged


@needs_movable_clock
@pytest.mark.parametrize(
    ("programs", "rounds"), [(8, 2), pytest.param(16, 10, marks=pytest.mark.slow)]
)
def test_many_programs_at_once_make_one_report_a_metric_and_epoch(
    tmp_path: Path, programs: int, rounds: int
) -> None:
    write_registry(tmp_path, *(metric_text(name, epsilon="0.1") for name in NAMES))
    clock = MovableClock(tmp_path / "clock")
    body = "".join(f"command.record({name!r}, True)\n" for name in NAMES)
    with noting_collector() as (url, arrivals):
        for number in range(rounds):
            clock.set(number * DAY)
            started = [start(tmp_path, program(body, endpoint=url), clock) for _ in range(programs)]
            assert {each.communicate()[0] for each in started} == {b""}
            wait_for_no_children(tmp_path)

    charged = charged_in(tmp_path)
    ((spent,),) = rows(tmp_path / "data", SPENT)
    assert len(charged) == rounds * len(NAMES)
    assert spent == 100_000_000 * len(charged)
    assert_sent_once(tmp_path, charged, arrivals)


# Looks, over and over, at what others may see of all processes, and at files below a folder.
WATCHER: Final = """
import os, sys
canary, begins, folder = (line.strip().encode() for line in sys.stdin)
seen, children, places = os.path.join(folder, b"seen"), set(), set()
while True:
    for process in filter(str.isdigit, os.listdir("/proc")):
        for kind in ("cmdline", "environ"):
            try:
                with open(f"/proc/{process}/{kind}", "rb") as file:
                    text = file.read()
            except OSError:
                continue
            if kind == "cmdline" and begins in text:
                children.add(process)
            if canary in text:
                places.add(kind)
    for above, _, names in os.walk(folder):
        for name in names:
            if above.endswith(b"/data"):
                try:
                    with open(os.path.join(above, name), "rb") as file:
                        if canary in file.read():
                            places.add("file")
                except OSError:
                    continue
    with open(seen + b".new", "w") as file:
        print(len(children), *sorted(places), file=file)
    os.replace(seen + b".new", seen)
"""
PLANTED: Final = {
    "": "",
    "cmdline": "command.append(value)",
    "environ": "environment['VALUE'] = value",
    "file": "open('data/value', 'w').write(value)",
}


@contextmanager
def watched(folder: Path) -> Iterator[Path]:
    """Watch until the block ends; a file has how many children were seen, and canaries where."""
    words = [sys.executable, "-S", "-c", WATCHER]
    with until_ended(subprocess.Popen(words, stdin=subprocess.PIPE, text=True)) as watcher:
        assert watcher.stdin is not None
        watcher.stdin.write(f"{CANARY}\n{BEGINS}\n{folder}\n")
        watcher.stdin.close()
        yield folder / "seen"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
@pytest.mark.parametrize(
    ("wanted", "planted"),
    [
        (6, ""),
        pytest.param(50, "", marks=pytest.mark.slow),
        *((2, place) for place in PLANTED if place),
    ],
)
def test_no_value_is_ever_seen_outside_of_the_pipe(
    tmp_path: Path, wanted: int, planted: str
) -> None:
    """A watcher looks all the time; where a value is planted, it finds that.

    Programs are started until it has seen as many children as are wanted: not each is met.
    """
    canary = f'type = "category"\nvalues = ["plain", "{CANARY}"]'
    (tmp_path / "value").write_text(CANARY)
    body = f"""
value = open({str(tmp_path / "value")!r}).read()
command.record('canary', value)
command.record('plain', True)
spawn = os.posix_spawn
def spawned(program, command, environment, **options):
    os.makedirs('data', exist_ok=True)
    {PLANTED[planted] or "pass"}
    return spawn(program, command, environment, **options)
os.posix_spawn = spawned
"""
    folders = (tmp_path / "programs" / str(number) for number in itertools.count())
    with noting_collector() as (url, _), watched(tmp_path) as seen:

        def shows_enough() -> bool:
            folder = next(folders)
            folder.mkdir(parents=True)
            write_registry(folder, metric_text("canary", canary), metric_text("plain"))
            start(folder, program(body, endpoint=url)).communicate()
            wait_for_no_children(folder)
            children, *places = seen.read_text().split()
            return int(children) >= wanted and (bool(places) or not planted)

        wait_for(shows_enough, despite=(FileNotFoundError,))
        _, *places = seen.read_text().split()

    assert places == [planted] * bool(planted)
    assert rows(tmp_path / "programs" / "0" / "data", "SELECT count(*) FROM charges")[0][0] >= 2


@pytest.mark.slow
@needs_movable_clock
def test_a_collector_that_never_answers_leaves_no_process_after_forty_seconds(
    tmp_path: Path,
) -> None:
    write_registry(tmp_path, metric_text("plain", every="1h"))
    clock = MovableClock(tmp_path / "clock")
    body = "from client_sdk.recording import handover\nhandover.flip_coin = lambda: True\n"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for hours in (0, 7):
            clock.set(hours * HOUR)
            sending = f"{body}command.record('plain', True)"
            start(tmp_path, program(sending, endpoint=url), clock).communicate()
            if not hours:
                wait_for_no_children(tmp_path)
        connection, _ = silent.accept()
        assert len(children_of(tmp_path)) == 1

        wait_for_no_children(tmp_path, 40)
        connection.close()

    assert rows(tmp_path / "data", WAITING) == [(2,)]
