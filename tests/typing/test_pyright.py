"""The second type checker says the same of ``uses.py`` as mypy: editors ask it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.patience import PATIENCE

ROOT: Final = Path(__file__).parents[2]
USES: Final = Path(__file__).with_name("uses.py")
CHECKER: Final = shutil.which("basedpyright", path=str(Path(sys.executable).parent))


def faults_in(folder: Path, path: Path) -> set[int]:
    """Return the lines of *path* in which Pyright, with a project in *folder*, sees an error."""
    project = {
        "include": [os.path.relpath(path, folder)],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "standard",
        "enableTypeIgnoreComments": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(project), encoding="utf-8")
    python = f"--pythonpath={sys.executable}"
    command = [str(CHECKER), "--outputjson", python, "--project", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=5 * PATIENCE)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1, done.stderr
    return {
        entry["range"]["start"]["line"] + 1
        for entry in found["generalDiagnostics"]
        if entry["severity"] == "error"
    }


@pytest.mark.skipif(CHECKER is None, reason="basedpyright is not installed")
def test_pyright_refuses_every_wrong_use_and_no_right_one(tmp_path: Path) -> None:
    """Law: line by line what is marked for mypy, which refuses a mark without a fault."""
    lines = USES.read_text("utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if "# type: ignore[" in line}

    assert len(marked) > 25
    assert faults_in(tmp_path, USES) == marked
