"""The store in a folder: of many processes at once, and of one that is killed at any moment."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.device.small_disk import fill, small_disk
from tests.support.node import PACKAGE, Node, patched

WORKER: Final = Path(__file__).parent / "store_worker.mjs"
DIST: Final = PACKAGE / "dist"
METRIC: Final = "0123456789ab"
NANO: Final = 40_000_000  # of a charge
CAP: Final = 200  # charges: a week of 8
KEPT: Final = 500  # reports that may wait


def start(
    node: Node, folder: Path, *words: str | int, dist: Path = DIST
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [node.program, str(WORKER), str(dist), str(folder), *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=node.environment,
    )


def state_of(node: Node, folder: Path) -> Any:
    """Return the document as another process reads it."""
    with start(node, folder, "show") as process:
        assert process.stdout is not None
        return json.loads(process.stdout.read())


def secret_of(epoch: int) -> str | None:
    """Return what the worker makes of the secret beside the charge of *epoch*."""
    return str(epoch % 10) * 42 + "E" if epoch % 3 else None


def outcomes_of(
    node: Node,
    folder: Path,
    processes: int,
    attempts: int,
    *,
    first: int = 0,
    dist: Path = DIST,
) -> Counter[str]:
    """Return what became of all attempts of *processes* at once."""
    running = [
        start(node, folder, "charge", first + number * attempts, attempts, dist=dist)
        for number in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.close()
    total: Counter[str] = Counter()
    for process in running:
        assert process.stdout is not None
        with process:
            total += Counter(json.loads(process.stdout.read()))
    return total


@pytest.mark.parametrize(
    ("processes", "attempts"), [(4, 80), pytest.param(8, 1_000, marks=pytest.mark.slow)]
)
def test_processes_together_charge_exactly_the_cap(
    node: Node, tmp_path: Path, processes: int, attempts: int
) -> None:
    """Law: what was recorded is in the ledger and in the outbox, and it is all of the cap."""
    outcomes = outcomes_of(node, tmp_path, processes, attempts)

    state = state_of(node, tmp_path)
    account = state["ledger"][METRIC]
    assert outcomes["recorded"] == CAP
    assert sum(outcomes.values()) == processes * attempts
    assert set(outcomes) <= {"recorded", "budget", "store"}
    assert account["nano"] == CAP * NANO
    assert sum(last - first + 1 for first, last in account["epochs"]) == CAP
    assert len(state["reports"]) == CAP
    files = {"ballast", "generation", "hearsay.document"}
    assert {path.name for path in tmp_path.iterdir()} == files


def test_processes_that_take_no_turns_would_be_caught(node: Node, tmp_path: Path) -> None:
    dist = patched(
        tmp_path,
        DIST,
        "storage/claims.js",
        {
            "if (create(path))": "if (create(path) || true)",
            "if (isAlone(": "if (true || isAlone(",
        },
    )

    outcomes = outcomes_of(node, tmp_path / "folder", 4, 80, dist=dist)

    account = state_of(node, tmp_path / "folder")["ledger"][METRIC]
    assert outcomes["recorded"] * NANO != account["nano"]


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_and_doubles_nothing(
    node: Node, tmp_path: Path, kills: int
) -> None:
    """Law: of two processes, one after the other killed while both write, the document can be read;
    each epoch up to the last is charged once and has its report; whatever a promise was kept of is
    there, and the secret is whole."""
    rng = random.Random("kills")
    acknowledged = -1
    for _ in range(kills // 2):
        with start(node, tmp_path, "go-on") as first, start(node, tmp_path, "go-on") as second:
            for process in (first, second):
                assert process.stdout is not None
                lines = [process.stdout.readline()]
                time.sleep(rng.random() / 20)
                process.kill()
                lines += process.stdout.read().splitlines()
                acknowledged = max([acknowledged, *map(int, filter(None, map(bytes.strip, lines)))])

        state = state_of(node, tmp_path)
        account, last = state["ledger"][METRIC], state["reports"][-1]["epoch"]
        assert state["doubt"] is False
        assert last >= acknowledged
        assert account["epochs"] == [[0, last]]
        assert account["nano"] == (last + 1) * NANO
        epochs = [report["epoch"] for report in state["reports"]]
        assert epochs == list(range(max(0, last + 1 - KEPT), last + 1))
        # a secret is changed before the document that says so appears
        assert state["secret"] in (None, secret_of(last), secret_of(last + 1))


def test_on_a_full_disk_a_charge_is_refused_and_a_denial_is_carried_out(
    node: Node, tmp_path: Path
) -> None:
    """Law: nothing is reported without its charge, and what waits can be withdrawn at any time."""
    with small_disk(tmp_path / "disk") as disk:
        before = outcomes_of(node, disk / "device", 1, 50)
        fill(disk)
        refused = outcomes_of(node, disk / "device", 1, 150, first=50)
        full = state_of(node, disk / "device")
        erased = erased_state(node, disk / "device", DIST)

    assert before == {"recorded": 50}
    assert refused["store"] > 0
    assert set(refused) <= {"recorded", "store"}
    recorded = 50 + refused["recorded"]
    assert full["ledger"][METRIC]["nano"] == recorded * NANO
    assert len(full["reports"]) == recorded
    assert erased["reports"] == []
    assert erased["ledger"][METRIC]["nano"] == recorded * NANO


def test_a_store_that_gives_up_no_reserve_would_be_caught(node: Node, tmp_path: Path) -> None:
    dist = patched(tmp_path, DIST, "storage/file.js", {"dropReserve(this.folder);": ""})
    with small_disk(tmp_path / "disk") as disk:
        outcomes_of(node, disk / "device", 1, 50)
        fill(disk)

        assert erased_state(node, disk / "device", dist)["reports"] != []


def erased_state(node: Node, folder: Path, dist: Path) -> Any:
    """Return the document after a denial, which may have failed."""
    with start(node, folder, "erase", dist=dist):
        pass
    return state_of(node, folder)
