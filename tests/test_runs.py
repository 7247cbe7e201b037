"""What a run of the tests says and ends with, and what the programs of its tests inherit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import LOUD
from tests.support.patience import PATIENCE

ROOT: Final = Path(__file__).parents[1]
RUN: Final = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
OURS: Final = ("-p", "tests.conftest")  # what is not in our folder is run as ours


def ran(command: Sequence[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run *command* in *folder* to its end, with *more* variables."""
    return subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


SKIPS: Final = """
import pytest
from tests.conftest import LOUD
@pytest.mark.parametrize("reason", [line[0] for line in LOUD])
def test_one(reason):
    pytest.skip(reason)
"""


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
def test_a_run_without_a_part_ends_with_a_loud_word_and_fails_where_all_must_be_tested(
    tmp_path: Path, ci: str, status: int
) -> None:
    """Its worker could not say so: workers print nothing."""
    (tmp_path / "test_one.py").write_text(SKIPS)

    done = ran([*RUN, *OURS, "-n", "1"], tmp_path, CI=ci)

    assert done.returncode == status, done.stdout
    assert [line for line in LOUD if f" {line[1]} !" not in done.stdout] == []
    assert done.stdout.count("; 1 tests of") == len(LOUD)


def test_a_skip_that_is_meant_fails_no_run(tmp_path: Path) -> None:
    """As that of a test that is about another system."""
    (tmp_path / "test_one.py").write_text(SKIPS.replace("(reason)\n", "('only on Windows')\n"))

    done = ran([*RUN, *OURS], tmp_path, CI="true")

    assert done.returncode == 0, done.stdout


def test_a_run_without_a_browser_says_so(tmp_path: Path) -> None:
    """The reason with which its own tests are skipped is one that is loud."""
    one = str(ROOT / "tests" / "browser" / "test_checks.py")

    done = ran([*RUN, one, "-k", "sound", "-n", "1"], ROOT, PATH=str(tmp_path))

    assert done.returncode == 0, done.stdout
    assert "THE PAGES WERE NOT TESTED" in done.stdout
    assert "1 tests of the pages were skipped" in done.stdout


ENDS: Final = """
import signal, subprocess, sys
def test_one():
    for number in signal.SIGINT, signal.SIGHUP:
        program = [sys.executable, "-c", f"import os; os.kill(os.getpid(), {number})"]
        assert subprocess.run(program, stderr=subprocess.DEVNULL).returncode == -number
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_program_can_be_interrupted_though_what_started_the_run_cannot(tmp_path: Path) -> None:
    """As with nohup, a shell script that starts the run in the background, and some machines."""
    (tmp_path / "test_one.py").write_text(ENDS)

    done = ran(["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", *RUN, *OURS], tmp_path)

    assert done.returncode == 0, done.stdout
