"""Programs that end at once, by whatever end: what is handed over, and what is not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.device.device import KEY, metric_text
from tests.support.device.programs import (
    RECORDS,
    charges,
    environment,
    program,
    run,
    wait_for_no_children,
    wait_for_notes,
    write_registry,
)
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks into /proc and forks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a registry of two metrics."""
    write_registry(tmp_path, metric_text("plain"), metric_text("other"))
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_what_ends_a_group_or_a_service_does_not_end_the_child_before_it_has_written(
    folder: Path, number: int
) -> None:
    body = f"""
spawn = os.posix_spawn
def ended(*arguments, **options):
    child = spawn(*arguments, **options)
    os.kill(child, {int(number)})
    return child
os.posix_spawn = ended
{RECORDS}
"""
    run(folder, body)
    wait_for_no_children(folder)

    assert charges(folder) == 1


@pytest.mark.parametrize(
    ("end", "handed"),
    [
        ("import signal; signal.signal(15, lambda *_: sys.exit(3)); os.kill(os.getpid(), 15)", 1),
        ("sys.exit(3)", 1),
        ("raise ValueError('wrong')", 1),
        ("os._exit(3)", 0),
        ("os.kill(os.getpid(), 15)", 0),
        ("os.kill(os.getpid(), 9)", 0),
    ],
)
def test_a_program_that_ends_without_a_word_hands_nothing_over(
    folder: Path, end: str, handed: int
) -> None:
    done = subprocess.run(
        program(f"{RECORDS}{end}"),
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode != 0
    if handed:
        wait_for_notes(folder)
        assert charges(folder) == 1
    else:
        wait_for_no_children(folder)
        assert not (folder / "data").exists()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_hand_over_what_they_recorded(
    folder: Path, method: str
) -> None:
    (folder / "tool.py").write_text(
        f"""
import multiprocessing
from client_sdk import command
command.configure("http://127.0.0.1:9", "{KEY}", "metrics.toml", data_dir="data",
    consent="granted")
def work():
    command.record("other", True)
if __name__ == "__main__":
    command.record("plain", True)
    multiprocessing.set_start_method({method!r})
    worker = multiprocessing.Process(target=work)
    worker.start()
    worker.join()
"""
    )
    subprocess.run(
        [sys.executable, "tool.py"],
        cwd=folder,
        env=environment(folder),
        timeout=PATIENCE,
        check=True,
    )
    wait_for_notes(folder)
    wait_for_no_children(folder)

    assert charges(folder) == 2
