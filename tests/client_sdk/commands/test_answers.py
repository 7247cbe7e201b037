"""The kept answer where it is no file, and who only wants help: no question, and no waiting."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from client_sdk import cli
from client_sdk.inspection import status
from tests.client_sdk.commands.conftest import REGISTRY, ROOT
from tests.support.device.terminals import on_terminal
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")

HUGE: Final = 1 << 40  # bytes; none of them is on the disk
ASKS: Final = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
if os.isatty(0):
    os.close(os.open(os.ttyname(0), os.O_RDWR))  # a session leader's first is its terminal
from client_sdk import cli
print(cli.ask(sys.argv[1], notice="May we learn?"))
"""


@pytest.fixture
def environment() -> dict[str, str]:
    """An environment in which nobody has opted out, of a machine that has people."""
    return {n: t for n, t in os.environ.items() if n in ("PATH", "HOME", "LANG")}


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


PLACES: Final[dict[str, Callable[[Path], object]]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a socket": _socket,
    "a huge file": _huge,
}


@pytest.mark.parametrize("place", PLACES)
def test_an_answer_that_is_no_file_ends_at_once_and_is_said(
    place: str, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: it is as if nobody was asked; a person at a terminal is asked where that helps."""
    monkeypatch.chdir(tmp_path)
    PLACES[place](tmp_path / cli.ANSWER_FILE)
    command = sys.executable, "-c", ASKS, str(tmp_path)

    piped = subprocess.run(
        command, capture_output=True, env=environment, timeout=PATIENCE, check=True
    )
    assert (piped.stdout, piped.stderr) == (b"unknown\n", b"")
    (said,) = [line for line in status(tmp_path) if line.startswith(cli.ANSWER_FILE)]
    assert said.endswith(": holds no answer, so it is as if nobody was asked; remove it")

    answer, shown = on_terminal(command, b"yes\n", environment)
    if place == "a folder":
        assert answer == "unknown"
        assert "telemetry: off, as no answer can be kept" in shown
        assert "May we learn?" not in shown
    else:
        assert answer == "granted"
        assert cli.remembered(tmp_path) == "granted"
        assert not any(line.startswith(cli.ANSWER_FILE) for line in status(tmp_path))


GROUP: Final = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
if os.isatty(0):
    os.close(os.open(os.ttyname(0), os.O_RDWR))
import click
from client_sdk import cli
@click.group()
def main():
    cli.ask({{folder!r}}, {str(REGISTRY)!r}, command="notes telemetry")
@main.command()
@click.argument("names", nargs=-1)
def build(names):
    click.echo("built")
main.add_command(cli.click_group({{folder!r}}, {str(REGISTRY)!r}))
main(prog_name="notes")
"""


COMPLETES: Final = {
    "_NOTES_COMPLETE": "bash_complete",
    "COMP_WORDS": "notes b",
    "COMP_CWORD": "1",
}


@pytest.mark.parametrize(
    ("arguments", "more", "asks"),
    [
        (["--help"], {}, False),
        (["build", "--help"], {}, False),
        (["build", "name", "--help"], {}, False),
        (["telemetry", "--help"], {}, False),
        ([], COMPLETES, False),
        (["build"], {}, True),
        (["build", "--", "--help"], {}, True),
    ],
)
def test_a_group_that_asks_does_not_ask_who_wants_help_or_completes_a_word(
    arguments: list[str],
    more: dict[str, str],
    asks: bool,
    tmp_path: Path,
    environment: dict[str, str],
) -> None:
    """Law: they are asked at the first run that does something."""
    folder = tmp_path / "data"
    program = sys.executable, "-c", GROUP.format(folder=str(folder)), *arguments

    out, shown = on_terminal(program, b"yes\n", {**environment, **more})

    assert ("Send such reports?" in shown) is asks
    assert folder.exists() is asks
    assert out
