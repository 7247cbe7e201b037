"""Packed by what ships applications as one file, the SDK finds its mechanisms and records."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
import zipapp
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

from client_sdk import mechanisms
from client_sdk.core.errors import IncompleteInstallationError
from client_sdk.integrations.pyinstaller import hook_dirs
from tests.support.device.programs import wait_for_notes

from .hosted import BIN, REGISTRY, ROOT, application, reports, run, runs

RECORDS: Final = """
client.record("m0", True)
for _ in range(100):
    client.record("runs", 1)
client.close()
print({reason: count for reason, count in client.stats().items() if count})
"""
COMMAND: Final = """
from client_sdk import command
command.configure(
    "https://127.0.0.1:9", "key", {registry!r}, consent="granted", data_dir={data!r}
)
command.record("m0", True)
"""
HELD: Final = "{'recorded': 1, 'aggregated': 100, 'window_opened': 1}"


def pyinstaller(folder: Path, *options: str) -> Path:
    """Bundle program.py as one file; return it."""
    tool = (sys.executable, "-m", "PyInstaller", "--onefile", "--log-level", "ERROR")
    run(folder, *tool, "--paths", str(ROOT), *options, "program.py")
    return folder / "dist" / "program"


def test_pyinstaller_is_told_of_every_mechanism() -> None:
    """Law: they are loaded by name, which no analysis of imports can see."""
    [entry] = [e for e in entry_points(group="pyinstaller40") if e.value.startswith("client_sdk")]
    [folder] = entry.load()()
    hook = runpy.run_path(str(Path(folder) / "hook-client_sdk.py"))

    wanted = {mechanisms.load(name).__module__ for name in mechanisms.names()}
    assert wanted <= set(hook["hiddenimports"])


def command_program(folder: Path) -> str:
    """Write what a program that ends at once needs into *folder*; return its lines."""
    (folder / "metrics.toml").write_text(REGISTRY)
    return COMMAND.format(registry=str(folder / "metrics.toml"), data=str(folder / "data"))


def packed(folder: Path) -> Path:
    """Return the sources of the SDK as an archive may hold them."""
    source = folder / "source"
    shutil.copytree(
        ROOT / "client_sdk", source / "client_sdk", ignore=shutil.ignore_patterns("__pycache__")
    )
    return source


def test_a_zip_that_ends_at_once_has_a_child(tmp_path: Path) -> None:
    """Law: the child finds the SDK where its parent found it."""
    source = packed(tmp_path)
    (source / "__main__.py").write_text(command_program(tmp_path))
    zipapp.create_archive(source, tmp_path / "program.pyz", compressed=True)

    run(tmp_path, sys.executable, "program.pyz")

    wait_for_notes(tmp_path)
    assert reports(tmp_path) == 1


BUNDLED: Final = """
import logging, os, sys
open("starts", "a").write("x")
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from client_sdk import command
command.configure(
    "https://127.0.0.1:9", "key", os.path.join(sys._MEIPASS, "metrics.toml"), data_dir="data",
    consent="granted", caps={"week": sys.argv[1]},
)
command.record("m0", True)
command._end()
print(dict(command.counts()))
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("objdump") is None, reason="PyInstaller needs binutils")
def test_a_bundle_that_ends_at_once_is_its_own_child(tmp_path: Path) -> None:
    """Law: a registry in the bundle is found there, and nothing of the application runs twice."""
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    (tmp_path / "program.py").write_text(BUNDLED)
    hooks = (f"--additional-hooks-dir={path}" for path in hook_dirs())
    program = str(pyinstaller(tmp_path, *hooks, f"--add-data=metrics.toml{os.pathsep}."))

    assert run(tmp_path, program, "eight").strip() == "{'handed_over': 1}"
    noted = wait_for_notes(tmp_path)
    wrong = run(tmp_path, program, "eight")
    noted = wait_for_notes(tmp_path, after=noted)
    assert run(tmp_path, program, "8").strip() == "{'handed_over': 1}"
    wait_for_notes(tmp_path, after=noted)

    assert wrong.startswith("caps.week: ")
    assert (tmp_path / "starts").read_text() == "xxx"
    assert reports(tmp_path) == 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("objdump") is None, reason="PyInstaller needs binutils")
def test_a_program_of_one_file_records(tmp_path: Path) -> None:
    """Law: with the hook a bundle needs no option; without, its error says what is missing."""
    application(tmp_path, RECORDS)
    program = pyinstaller(tmp_path, *(f"--additional-hooks-dir={path}" for path in hook_dirs()))

    printed = run(tmp_path, str(program))

    assert printed.strip() == HELD
    assert (reports(tmp_path), runs(tmp_path)) == (1, "100 runs")


def test_a_bundle_without_mechanisms_says_so(tmp_path: Path) -> None:
    """Law: the error names what is missing and what to do, not a mechanism of the registry."""
    shutil.copytree(ROOT / "client_sdk", tmp_path / "client_sdk")
    for module in (tmp_path / "client_sdk" / "mechanisms").glob("*/[a-z]*.py"):
        module.unlink()
    application(tmp_path, "")
    (tmp_path / "try.py").write_text(
        "try:\n    import program\nexcept ImportError as error:\n    print(type(error), error)\n"
    )

    printed = run(tmp_path, sys.executable, "try.py")

    assert IncompleteInstallationError.__name__ in printed
    assert "client_sdk.mechanisms: is empty" in printed
    assert "collect all submodules of client_sdk" in printed


def test_a_zip_that_python_runs_records(tmp_path: Path) -> None:
    """Law: the SDK runs from inside an archive."""
    source = packed(tmp_path)
    application(tmp_path, RECORDS)
    (tmp_path / "program.py").rename(source / "__main__.py")
    zipapp.create_archive(source, tmp_path / "program.pyz", compressed=True)

    printed = run(tmp_path, sys.executable, "-S", "program.pyz")

    assert printed.strip() == HELD
    assert (reports(tmp_path), runs(tmp_path)) == (1, "100 runs")


def test_shiv_packs_a_program_that_records(tmp_path: Path) -> None:
    """Law: installed into an archive that unpacks itself, the SDK is the same."""
    site = tmp_path / "site"
    site.mkdir()
    shutil.copytree(ROOT / "client_sdk", site / "client_sdk")
    # and then it ends at once: its child finds what was unpacked
    ends = RECORDS + command_program(tmp_path).replace("m0", "m1").replace("/data", "/own/data")
    application(tmp_path, "def main():\n" + ends.replace("\n", "\n    ").rstrip() + "\n")
    shutil.move(tmp_path / "program.py", site / "program.py")
    run(
        tmp_path,
        *(str(BIN / "shiv"), "--site-packages", str(site), "--root", str(tmp_path / "unpacked")),
        *("--entry-point", "program:main", "--python", sys.executable, "-o", "program.pyz"),
    )

    printed = run(tmp_path, str(tmp_path / "program.pyz"))

    assert printed.strip() == HELD
    assert (reports(tmp_path), runs(tmp_path)) == (1, "100 runs")
    wait_for_notes(tmp_path / "own")
    assert reports(tmp_path / "own") == 1
