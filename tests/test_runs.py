"""What a run of the tests says and ends with, and what the programs of its tests inherit."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests import conftest
from tests.conftest import LOUD, MORE, WHOLE
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


SORTED: Final = """
import pytest
from tests.conftest import LOUD
@pytest.mark.skipif(False, reason=f"here: {LOUD[0][0]}")
def test_a_part(): pass
@pytest.fixture
def node(): pass
@pytest.fixture
def built(node): pass
def test_what_is_built(built): pass
@pytest.mark.slow
def test_slow(): pass
def test_first(): pass
def test_second(): pass
"""


DEAR: Final = f"{WHOLE[0]}test_dear.py"
OTHER: Final = "tests/other/test_other.py"


def collected(folder: Path, marks: str, *ids: str) -> list[tuple[str, str]]:
    """Return file and name of the tests of *folder* that have *marks*, or of these *ids*."""
    options = ["-p", "no:randomly", "--rootdir", ".", "--collect-only", "-m", marks]
    done = ran([*RUN, *OURS, *options, *ids], folder)
    return re.findall(r"^(tests/.*)::test_(.*)$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("marks", "dear", "others"),
    [
        ("not whole and not slow", ["first"], ["first", "second"]),
        ("whole and not slow", ["a_part", "what_is_built", "second"], ["a_part", "what_is_built"]),
    ],
)
def test_a_dear_file_leaves_one_test_and_what_needs_more_than_python_none(
    tmp_path: Path, marks: str, dear: list[str], others: list[str]
) -> None:
    """Each test runs once in make test and make test-rest together, in whichever order."""
    for folder in (DEAR, OTHER):
        (tmp_path / folder).parent.mkdir(parents=True)
        (tmp_path / folder).write_text(SORTED)

    ids = collected(tmp_path, marks)

    assert [name for file, name in ids if file == DEAR] == dear
    assert [name for file, name in ids if file == OTHER] == others


def test_a_test_that_is_named_alone_is_no_smoke_test(tmp_path: Path) -> None:
    """It is left out, as it is of a run of all; the first one is not."""
    (tmp_path / DEAR).parent.mkdir(parents=True)
    (tmp_path / DEAR).write_text(SORTED)

    ids = collected(tmp_path, "not whole", f"{DEAR}::test_second", f"{DEAR}::test_first")

    assert ids == [(DEAR, "first")]


CASES: Final = """
import pytest
@pytest.mark.parametrize("case", range(3))
def {}_it(case): pass
def test_other(): pass
"""


def test_of_a_test_with_a_star_the_first_case_is_left(tmp_path: Path) -> None:
    file, _, begin = next(entry for entry in WHOLE if entry.endswith("*")).partition("::")
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(CASES.format(begin.removesuffix("*")))

    ids = collected(tmp_path, "not whole", file)

    assert [name for _, name in ids] == [f"{begin[5:-1]}_it[0]", "other"]


def test_what_make_test_leaves_out_is_there() -> None:
    files = {entry: (ROOT / entry.partition("::")[0]) for entry in WHOLE}
    names = {entry: re.sub(r"\[.*|\*$", "", entry.partition("::")[2]) for entry in WHOLE}

    assert [entry for entry, path in files.items() if not path.exists()] == []
    assert [
        entry
        for entry, name in names.items()
        if name and f"def {name}" not in files[entry].read_text("utf-8")
    ] == []


def test_a_part_that_a_machine_may_lack_is_asked_for_by_a_mark_or_a_fixture_of_the_table() -> None:
    """So that make test reaches no skip for which a newcomer had to install anything."""
    reasons = {reason for reason, *_ in LOUD}
    names = {name for name, value in vars(conftest).items() if str(value) in reasons}
    skipping = {
        (path.name, function.name, frozenset(each.arg for each in function.args.args))
        for path in (ROOT / "tests").rglob("*.py")
        if "pytest.skip(" in (text := path.read_text("utf-8"))
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call) in {f"pytest.skip({n})" for n in names}
    }

    assert len(skipping) >= len(MORE)
    assert [one for one in skipping if MORE.isdisjoint({one[1], *one[2]})] == []


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
