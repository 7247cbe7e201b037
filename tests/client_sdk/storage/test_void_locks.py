"""On file systems whose locks do not hold, two processes would spend the same budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.device.device import metric_text, rows
from tests.support.device.programs import environment, write_registry
from tests.support.device.void_locks import GRANTED, REFUSED, available
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.skipif(not available(), reason="this system filters no system calls")

_RECORDS: Final = """
import logging, sys, time
logging.basicConfig(format="%(message)s")
from client_sdk import Client
from client_sdk.storage import store
from tests.support.device.void_locks import answer_locks
def client():
    return Client("https://127.0.0.1:9", "key", "metrics.toml", consent="granted",
        data_dir="data", mode=sys.argv[2])
def say(device, left):
    counts = {reason: count for reason, count in device.stats().items() if count}
    print(left.waiting, counts, flush=True)
answer = int(sys.argv[1])
"""
_FROM_THE_START: Final = """
answer_locks(answer) if answer >= 0 else None
device = client()
device.record("plain", True)
say(device, device.flush(0.0))
"""
_LATER: Final = """
earlier = client()
earlier.record("plain", True)
earlier.close()
store.BUSY_TIMEOUT = 1e6  # seconds: only the limit of a flush ends a wait
device = client()
device.watch()
device.flush(0.0)
answer_locks(answer)
device.record("other", True)
left = device.flush(0.2)
while not device.stats()["store"]:  # the thread may count a moment after it
    time.sleep(0.01)
say(device, left)
"""


def ran(folder: Path, program: str, answer: int, mode: str) -> subprocess.CompletedProcess[str]:
    write_registry(folder, metric_text("plain"), metric_text("other"))
    return subprocess.run(
        [sys.executable, "-c", _RECORDS + program, str(answer), mode],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("mode", ["manual", "background"])
@pytest.mark.parametrize(
    ("answer", "why"), [(REFUSED, "refuses locks"), (GRANTED, "grants one lock twice")]
)
def test_a_folder_whose_locks_do_not_hold_is_refused(
    tmp_path: Path, mode: str, answer: int, why: str
) -> None:
    """Law: nothing is charged or drawn there, a developer hears of it, and nothing is left."""
    done = ran(tmp_path, _FROM_THE_START, answer, mode)

    assert done.stdout.startswith("None {")
    assert "'store': " in done.stdout  # beside what was recorded before, if there was time
    assert done.stderr == (
        f"data_dir: its file system {why}: choose a folder of this disk; nothing is recorded\n"
    )
    assert list((tmp_path / "data").iterdir()) == []


def test_a_folder_whose_locks_hold_is_taken(tmp_path: Path) -> None:
    """The control of the test above."""
    done = ran(tmp_path, _FROM_THE_START, -1, "manual")

    assert (done.stdout, done.stderr) == ("1 {'recorded': 1}\n", "")
    assert rows(tmp_path / "data", "SELECT count(*) FROM charges") == [(1,)]


def test_a_flush_ends_in_time_where_locks_are_refused_later(tmp_path: Path) -> None:
    """Law: as when a server of files goes away; SQLite takes that for another process."""
    done = ran(tmp_path, _LATER, REFUSED, "background")

    assert done.stdout.startswith("None {")
    assert "'store': " in done.stdout  # beside what was recorded before, if there was time
