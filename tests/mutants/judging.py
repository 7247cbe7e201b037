"""Whether tests see a bug: first those that import its file, then those of its room."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final

from .places import Mutant

KILLED, TIMEOUT, SURVIVED, BROKEN = "killed", "timeout", "survived", "broken"
SELECTED: Final = "not whole and not slow and not faults"  # those of make test
_PASSED, _NONE = 0, 5  # exit statuses of pytest
_TICKS: Final = count()


@dataclass(frozen=True)
class Verdict:
    """What became of a bug, and the test or the tests that decided."""

    outcome: str
    by: str
    seconds: float


@dataclass(frozen=True)
class Judge:
    """A private copy of the project, in which bugs are planted, and how long its tests may take."""

    root: Path
    limit: float  # seconds of one run

    def verdict(self, mutant: Mutant) -> Verdict:
        """Plant a bug, run tests until one fails, and take the bug out again."""
        began, file = time.monotonic(), self.root / mutant.file
        sound = file.read_text("utf-8")
        found = Verdict(SURVIVED, "", 0.0)
        try:
            _write(file, mutant.planted(sound))
            for tests in (_importing(self.root, mutant.file), _of_room(self.root, mutant.file)):
                outcome, by = self._run(tests)
                found = Verdict(outcome, by, 0.0)
                if outcome != SURVIVED:
                    break
        finally:
            _write(file, sound)
        if found.outcome == KILLED and self._run([found.by])[0] != SURVIVED:
            found = Verdict(BROKEN, found.by, 0.0)  # this test fails without a bug, too
        return Verdict(found.outcome, found.by, round(time.monotonic() - began, 1))

    def _run(self, tests: Sequence[str]) -> tuple[str, str]:
        """Run *tests* to the first failure; return the outcome, and the test that failed."""
        if not tests:
            return SURVIVED, ""
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "-n", "0", "-ra"]
        with _started([*options, "-m", SELECTED, *tests], self.root) as process:
            try:
                output, _ = process.communicate(timeout=self.limit)
            except subprocess.TimeoutExpired:
                return TIMEOUT, " ".join(tests)
        if process.returncode in (_PASSED, _NONE):
            return SURVIVED, " ".join(tests)
        *_, summary = output.partition("short test summary info")  # before it are logs of tests
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", summary, re.MULTILINE)
        return KILLED, failed[1] if failed else tests[0]


@contextmanager
def _started(words: Sequence[str], root: Path) -> Iterator[subprocess.Popen[str]]:
    """Start pytest in *root*; end it with all that it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def copied(project: Path, root: Path) -> None:
    """Copy the tracked files of *project* to *root*."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=project, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (project / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(project / name, root / name)


def _write(file: Path, text: str) -> None:
    """Write *text* at a time of its own: by time and size Python knows what it has compiled."""
    file.write_text(text, "utf-8")
    moment = int(time.time()) + next(_TICKS)
    os.utime(file, (moment, moment))


def _of_room(root: Path, file: str) -> list[str]:
    """Return the folder of tests of the room of *file*, or the tests of its package itself."""
    package, *inner = Path(file).parts
    folder = root / "tests" / package
    if len(inner) > 1 and (folder / inner[0]).is_dir():
        return [f"tests/{package}/{inner[0]}"]
    return sorted(test.relative_to(root).as_posix() for test in folder.glob("test_*.py"))


def _importing(root: Path, file: str) -> list[str]:
    """Return the files of tests that import *file* by its name."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return [test for test, modules in _imports(root).items() if module in modules]


@cache
def _imports(root: Path) -> dict[str, frozenset[str]]:
    """Return by file of tests the modules that it imports."""
    found = {}
    for test in sorted((root / "tests").rglob("test_*.py")):
        modules = set[str]()
        for node in ast.walk(ast.parse(test.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                modules |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
            elif isinstance(node, ast.Import):
                modules |= {name.name for name in node.names}
        found[test.relative_to(root).as_posix()] = frozenset(modules)
    return found
