"""A verb, a page and a command are each a file of its folder; a page has its template, too.

They are put into a copy of the package, where nothing else is changed.  Mechanisms, types and
settings have laws of their own: ``test_added_mechanism.py``, ``web/test_new_value_type.py`` and
``core/test_config.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns
from typing import Final, TypeAlias

import pytest

ROOT: Final = Path(__file__).parents[2]
ADDED: Final = ROOT / "tests" / "support" / "added"
PLACES: Final = {
    "verb.py": "analytics/verbs/reports.py",
    "page.py": "web/pages/today.py",
    "page.html": "web/templates/today.html",
    "command.py": "cli/count.py",
}
Run: TypeAlias = Callable[..., str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Python with the copy in place of the package: arguments to what it prints."""
    copy = tmp_path_factory.mktemp("copy")
    copytree(ROOT / "collector", copy / "collector", ignore=ignore_patterns("__pycache__"))
    for name, place in PLACES.items():
        copyfile(ADDED / name, copy / "collector" / place)
    path = os.pathsep.join(map(str, (copy, ROOT)))

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(
            command, cwd=copy, env=env, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    return run


def test_a_command_is_one_file(run: Run) -> None:
    registry = str(ROOT / "examples" / "metrics.toml")

    assert "Print how many metrics PATH has." in run("-m", "collector", "--help")
    assert run("-m", "collector", "count", registry) == "4\n"


def test_a_verb_is_one_file_and_a_page_two(run: Run, tmp_path: Path) -> None:
    texts, answer = json.loads(run("-m", "tests.support.added.visit", str(tmp_path)))

    assert "<h1>Asked today</h1>" in texts["/today"]
    assert "How many reports came?" in texts["/ask?metric=page&verb=reports"]
    assert '"reports"' in texts["/v1/openapi.json"]
    assert [(row["value"], row["unit"]) for row in answer["rows"]] == [(40, "reports")]
