"""The demo as a user runs it: one command, documented results, and intervals that cover."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

import pytest
import requests

from client_sdk.registry import Registry
from collector.analytics.answer import MEAN, quantile_items
from collector.demo.fleet import DEMO_REGISTRY
from tests.support.crowds.uploads import bearer
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.processes import descendants, survivors, until_ended

REGISTRY = Registry.from_file(str(DEMO_REGISTRY))
DEVICES = 1_000  # the fewest that the command takes
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``hearsay demo`` with a temporary folder of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    process = subprocess.Popen(
        [sys.executable, "-m", "collector", "demo", "--devices", str(DEVICES), *arguments],
        env={**environment, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with until_ended(process, signal.SIGKILL):
        yield process


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    """The exit status and output of one run to its end, and its temporary folder."""
    folder = tmp_path_factory.mktemp("demo")
    with demo(folder, "--once", "--json") as process:
        output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output, folder


@pytest.fixture(scope="module")
def document(finished: tuple[int, str, Path]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(finished[1])
    return parsed


def test_a_demo_ends_well_and_prints_one_document(finished: tuple[int, str, Path]) -> None:
    status, output, _ = finished

    assert status == 0
    assert len(output.splitlines()) == 1


def test_a_demo_leaves_no_file_behind(finished: tuple[int, str, Path]) -> None:
    assert list(finished[2].iterdir()) == []


def test_the_document_has_its_documented_shape(document: dict[str, Any]) -> None:
    assert set(document) == {"metrics", "covered", "reports", "devices", "store", "seconds"}
    assert list(document["metrics"]) == list(REGISTRY.metrics)
    for metric in REGISTRY:
        shown = document["metrics"][metric.name]
        assert set(shown) == {"rows", "n", "unit"}
        numbers = (*quantile_items(metric), MEAN) if metric.domain.grid else ()
        items = numbers or metric.domain.answer_items()
        assert [row["item"] for row in shown["rows"]] == list(items)
        assert all(
            set(row) == {"item", "true", "value", "ci_low", "ci_high", "std_error"}
            for row in shown["rows"]
        )


def test_every_device_is_in_every_answer_whose_panel_holds_it(document: dict[str, Any]) -> None:
    """However small its segment is; and the fewest devices that the command takes do answer.

    The panel takes 400 of 1,000, with a standard deviation of 15.5: 100 off is a false alarm of
    10^-10 for each metric.
    """
    numbers = {name: metric["n"] for name, metric in document["metrics"].items()}
    always = {metric.name for metric in REGISTRY if not metric.panel}
    assert {name for name, n in numbers.items() if n == DEVICES} == always
    assert all(abs(n - 0.4 * DEVICES) < 100 for n in numbers.values() if n != DEVICES)
    rows = [row for metric in document["metrics"].values() for row in metric["rows"]]
    assert all(row["value"] is not None for row in rows)
    assert (document["reports"], document["devices"]) == (sum(numbers.values()), DEVICES)


def test_the_covered_rows_are_counted(document: dict[str, Any]) -> None:
    rows = [row for metric in document["metrics"].values() for row in metric["rows"]]
    inside = [row for row in rows if row["ci_low"] <= row["true"] <= row["ci_high"]]

    assert document["covered"] == {"yes": len(inside), "of": len(rows)}


@dataclass(frozen=True)
class Stopped:
    """A demo that served its result, was looked at, and was asked to stop."""

    statuses: tuple[int, int, int]  # API with the read token, page without a token, page with one
    below: set[int]
    returncode: int
    left: list[Path]
    said: list[str]
    report: int  # exit status of a report by the settings that were printed


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    folder = tmp_path_factory.mktemp("stopped")
    with demo(folder) as process:
        lines: list[str] = []
        below = wait_for_the_page(process, lines)
        (token,) = [line.split()[2] for line in lines if line.startswith("read token:")]
        address, _, start_token = lines[-1].split()[2].partition("/login#token=")
        (export,) = [line for line in lines if line.startswith("for other commands: export ")]
        settings = dict(part.split("=", 1) for part in shlex.split(export)[4:])
        report = subprocess.run(
            [sys.executable, "-m", "collector", "report", "--output", str(folder / "week.html")],
            env={**os.environ, **settings},
            check=False,
        )
        (folder / "week.html").unlink(missing_ok=True)
        answer = requests.get(f"{address}/v1/metrics", headers=bearer(token), timeout=PATIENCE)
        closed = requests.get(f"{address}/operations", timeout=PATIENCE)
        page = requests.get(f"{address}/operations", headers=bearer(start_token), timeout=PATIENCE)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    statuses = answer.status_code, closed.status_code, page.status_code
    left = list(folder.iterdir())
    return Stopped(statuses, below, process.returncode, left, lines, report.returncode)


@linux
def test_a_demo_asked_to_stop_leaves_nothing_behind(stopped: Stopped) -> None:
    assert len(stopped.below) >= 3  # store, collector and worker
    assert stopped.returncode == 0
    assert survivors(stopped.below) == set()
    assert stopped.left == []


def test_a_demo_tells_the_token_that_the_queries_of_its_pages_need(stopped: Stopped) -> None:
    assert stopped.statuses == (200, 401, 200)


def test_a_demo_says_once_where_nobody_watches_that_all_have_reported(stopped: Stopped) -> None:
    told = [line for line in stopped.said if "have reported" in line and "devices" in line]
    assert told == [f"devices: {DEVICES:,} of {DEVICES:,} have reported\n"]


def test_a_demo_tells_the_settings_by_which_other_commands_find_it(stopped: Stopped) -> None:
    assert stopped.report == 0


@linux
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_a_demo_that_is_ended_early_leaves_no_process_behind(
    tmp_path: Path, number: int, status: int
) -> None:
    """While its devices send, and a killed one can clean up nothing."""
    with demo(tmp_path) as process:
        wait_for(lambda: len(descendants(process.pid)) >= 3)
        below = descendants(process.pid)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)

        assert process.returncode == status
        assert survivors(below) == set()


def wait_for_the_page(process: subprocess.Popen[str], lines: list[str]) -> set[int]:
    """Return the processes of a demo that serves its result, and append what it said to *lines*."""
    assert process.stdout
    for line in process.stdout:
        lines.append(line)
        if line.startswith("result page:"):
            return descendants(process.pid)
    raise AssertionError("the demo ended without a result page")


RUNS = 4
PORT = 8878
INTERVALS = 82  # of a run
LEVEL = 0.95
FALSE_ALARM = 1e-9  # of the whole test, taking the intervals of a run as independent


def run_once() -> dict[str, Any]:
    """Run the demo once and return its document."""
    command = [sys.executable, "-m", "collector", "demo", "--once", "--json", "--port", str(PORT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def least_covered(intervals: int, level: float = LEVEL) -> int:
    """Return the largest count that honest intervals miss with at most FALSE_ALARM."""
    below, count = 0.0, 0
    while True:
        below += comb(intervals, count) * level**count * (1 - level) ** (intervals - count)
        if below > FALSE_ALARM:
            return count
        count += 1


def test_intervals_of_half_the_width_would_be_noticed() -> None:
    intervals = INTERVALS * RUNS
    half_width_level = 0.673  # a normal estimate lies within 0.98 standard errors this often

    assert half_width_level * intervals < least_covered(intervals)


@pytest.mark.slow
def test_intervals_of_demo_runs_with_fresh_noise_cover_the_truth() -> None:
    runs = [run_once()["covered"] for _ in range(RUNS)]

    covered, intervals = (sum(run[key] for run in runs) for key in ("yes", "of"))
    assert intervals == INTERVALS * RUNS
    assert covered >= least_covered(intervals)
