"""What a command-line program that ends at once gains by its telemetry: ours, and others' SDKs.

Run: ``make bench-sdks``, or ``python -m benchmarks command`` for ours alone; two minutes.

Programs take turns with one that does nothing.  *In all* is from the start of the process to its
end, *at the end* from its last line on; both are what is added to the bare interpreter, by the
median of ROUNDS rounds (of others, of a quarter of them).  Processor time is what the system
counted for the process itself.  Each of our runs finds a pass due and takes it, and its child is
waited for before the next run, so what is stated of it comes beside the rest.  *Offline* is a port
where nobody listens, *dropped* one that answers no connection, as behind a firewall.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Final, NamedTuple

from benchmarks.lib.page import PAGES, mark, publish, verdict
from benchmarks.lib.page import table as markdown
from benchmarks.speed.sdk_costs import NOWHERE, SDKS, compiled_registry, named_registry
from client_sdk import Client
from client_sdk.core.epoch import DAY
from client_sdk.recording.handover_protocol import issue_permit

PAGE: Final = PAGES / "guide" / "costs.md"
MARK: Final = mark("command")
ROUNDS: Final = 25
OTHERS_EVERY: Final = 4  # rounds; others wait for seconds at their end
WALL_BAR: Final = 10.0  # ms
PROCESSOR_BAR: Final = 10.0  # ms, of the light path
RECORD_BAR: Final = 20.0  # µs
RECORDS: Final = 2_000  # calls in a row
SUBREAPER: Final = 36  # of prctl: what a process leaves behind becomes ours, so that we can wait
WAIT: Final = 2.0  # seconds for a child; one that a firewall holds up longer is ended

OURS: Final = {
    "light path": (
        "from client_sdk import command\n"
        "command.configure('ENDPOINT', 'key', 'FOLDER/metrics.toml', data_dir='FOLDER/data',"
        " consent='granted')\n"
        "from client_sdk.recording import handover\n"
        "handover.flip_coin = lambda: True\n",
        "command.record('dark_mode', True); command.record('files', 3)\n",
    ),
}
PEERS: Final = {  # what an application loads, and calls to tell one thing
    "glean-sdk": ("glean", "pass"),
    "opentelemetry-sdk": ("opentelemetry", "counter.add(1)"),
    "posthog": ("posthog", "client.capture('run', distinct_id='device')"),
    "segment-analytics-python": ("segment", "client.track('device', 'run')"),
    "sentry-sdk": ("sentry_sdk", "sentry_sdk.capture_message('run')"),
}
_TIMES: Final = "\nimport os, time\nos.write(1, str(time.perf_counter()).encode())\n"


class Program(NamedTuple):
    """What runs: its name, where it sends, and its lines up to its last."""

    name: str
    network: str
    text: str
    ours: bool


class Run(NamedTuple):
    """Milliseconds of one run of a program, and processor time of the child that it left."""

    wall: float
    end: float
    processor: float
    child: float


def programs() -> Iterator[Program]:
    """Yield all, the bare one first."""
    yield Program("", "", "", False)
    for name, (load, use) in OURS.items():
        for network in ("online", "offline", "dropped"):
            yield Program(name, network, load + use, True)
    for sdk in SDKS:
        if sdk.name in PEERS and find_spec(PEERS[sdk.name][0]) is not None:
            text = f"{sdk.load}\n{sdk.ready}\n{PEERS[sdk.name][1]}\n"
            yield Program(sdk.name, "offline", text.replace(NOWHERE, "ENDPOINT"), False)


@contextmanager
def networks() -> Iterator[dict[str, str]]:
    """Yield the addresses of a collector, of nobody, and of what answers no connection."""

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b'{"accepted": 1, "duplicate": false, "rejected": []}'
            self.send_response(202)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=collector.serve_forever, daemon=True).start()
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    waiting = []
    for _ in range(8):  # once the queue is full, the system drops what else wants to connect
        one = socket.socket()
        one.setblocking(False)
        with suppress(BlockingIOError):
            one.connect(full.getsockname())
        waiting.append(one)
    try:
        yield {
            "": "",
            "online": f"http://127.0.0.1:{collector.server_port}",
            "offline": NOWHERE,
            "dropped": f"http://127.0.0.1:{full.getsockname()[1]}",
        }
    finally:
        collector.shutdown()
        for one in (*waiting, full, collector.socket):
            one.close()


def write_registries(folder: Path) -> None:
    """Write the registry to *folder*, for people and compiled."""
    (folder / "metrics.toml").write_text(named_registry())
    (folder / "metrics.json").write_text(compiled_registry())


def prepare(folder: Path) -> None:
    """Make *folder* that of a device with a report that waits and a pass that is due."""
    write_registries(folder)
    issue_permit(str(folder / "data"))  # as every hand-over but the first one finds it
    with Client(
        NOWHERE, "key", folder / "metrics.toml", consent="granted", data_dir=folder / "data",
        mode="manual", clock=lambda: time.time() - 2 * DAY,
    ) as client:  # fmt: skip
        client.record("dark_mode", True)
        client._engine.upload(1)  # plans the first pass, which is due by now


def measure(program: Program, endpoint: str, template: Path, compiled: str) -> Run:
    """Run *program* in a copy of *template* to its end, and then to that of its child."""
    ours = ("PYTHON", "HEARSAY_", "DO_NOT_TRACK", "OTEL_", "SENTRY_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(template, folder, dirs_exist_ok=True)
        text = program.text.replace("FOLDER", folder).replace("ENDPOINT", endpoint) + _TIMES
        reader, writer = os.pipe()
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", text],
            cwd=folder,
            env={**environment, "PYTHONPYCACHEPREFIX": compiled},
            stdout=writer,
            stderr=subprocess.DEVNULL,
        )
        os.close(writer)
        _, status, used = os.wait4(process.pid, 0)
        end = time.perf_counter()
        process.returncode = 0
        with os.fdopen(reader) as printed:
            last = float(printed.read())
        if status:
            raise SystemExit(f"{program.name}, {program.network}: status {status}")
        child = wait_for_child()
    if program.ours and not child:
        raise SystemExit(f"{program.name}, {program.network}: there was no child")
    processor = used.ru_utime + used.ru_stime
    return Run(*(1e3 * seconds for seconds in (end - start, end - last, processor, child)))


def wait_for_child() -> float:
    """Wait for what the last program left behind; return its seconds of processor time."""
    end, used = time.monotonic() + WAIT, 0.0
    while True:
        try:
            child, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return used
        if child:
            used += usage.ru_utime + usage.ru_stime
        elif time.monotonic() > end:
            for left in children():
                os.kill(left, signal.SIGKILL)
        else:
            time.sleep(0.005)


def children() -> list[int]:
    """Return the processes whose parent this is."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(child) for child in path.read_text().split()]


def record_times() -> Iterator[tuple[str, float]]:
    """Yield the microseconds of a call of record in a row of RECORDS, by program.

    One call comes before: it loads what a compiled registry leaves to it, as ``sdk_costs`` shows.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_registries(Path(folder))
        for name, (load, use) in OURS.items():
            call = use.split(";")[0]
            text = (
                f"{load}{call}\nimport os, time\nstart = time.perf_counter()\n"
                f"for _ in range({RECORDS}): {call}\n"
                "os.write(1, str(time.perf_counter() - start).encode())\nos._exit(0)"
            )
            text = text.replace("FOLDER", folder).replace("ENDPOINT", NOWHERE)
            run = subprocess.run(
                [sys.executable, "-c", text], capture_output=True, text=True, check=True
            )
            yield name, float(run.stdout) / RECORDS * 1e6


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Measure everything; yield what, measured, bar and verdict."""
    found: dict[Program, list[Run]] = defaultdict(list)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder, networks() as endpoints:
        template, compiled = Path(folder) / "device", str(Path(folder) / "compiled")
        template.mkdir()
        prepare(template)
        for number in range(ROUNDS + 1):
            for program in programs():
                if program.name in PEERS and number % OTHERS_EVERY:
                    continue
                run = measure(program, endpoints[program.network], template, compiled)
                found[program].append(run)
    middle = {
        program: Run(*(median(column) for column in zip(*runs[1:], strict=True)))
        for program, runs in found.items()  # the first of each has compiled
    }
    bare = middle.pop(next(iter(middle)))
    for program, run in middle.items():
        light = program.name == next(iter(OURS))
        wall, end, processor = (a - b for a, b in zip(run[:3], bare[:3], strict=True))
        measured = f"+{wall:.1f} ms in all, +{end:.1f} ms at the end; processor +{processor:.1f} ms"
        if program.ours:
            measured += f"; its child {run.child:.0f} ms"
        met = (wall if light else end) <= WALL_BAR and (not light or processor <= PROCESSOR_BAR)
        bar = (
            f"≤ {WALL_BAR:.0f} ms in all, processor ≤ {PROCESSOR_BAR:.0f} ms"
            if light
            else f"≤ {WALL_BAR:.0f} ms at the end"
        )
        ours = (bar, verdict(met)) if program.ours else ("", "")
        yield f"{program.name}, {program.network}", measured, *ours
    for name, each in record_times():
        yield (
            f"{name}: `record`", f"{each:.1f} µs", f"≤ {RECORD_BAR:.0f} µs",
            verdict(each <= RECORD_BAR),
        )  # fmt: skip


def main() -> None:
    """Print every cost with its bar; with ``--write`` put them into the page."""
    text = markdown(("what", "measured", "bar", ""), rows())
    publish((PAGE, {"command": text}))
