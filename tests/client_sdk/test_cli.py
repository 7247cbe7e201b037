"""client_sdk.cli: a question on a real terminal, and one command for three frameworks."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from client_sdk import cli
from client_sdk.client import Client
from client_sdk.core.errors import InvalidParameterError
from client_sdk.privacy.consent import Consent, OptOuts
from client_sdk.privacy.opt_outs import USER_FILE
from client_sdk.testing import MemoryTransport
from tests.support.device.terminals import on_terminal
from tests.support.store.processes import until_ended

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "tests" / "typing" / "notes.toml"
ASKS = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
if os.isatty(0):
    os.close(os.open(os.ttyname(0), os.O_RDWR))  # a session leader's first is its terminal
from client_sdk import cli
print(cli.ask(sys.argv[1], {str(REGISTRY)!r}, command="notes telemetry", **eval(sys.argv[2])))
"""
needs_terminals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
Asked = tuple[str, str]


@pytest.fixture
def environment() -> dict[str, str]:
    """An environment in which nobody has opted out, of a machine that has people."""
    return {n: t for n, t in os.environ.items() if n in ("PATH", "HOME", "LANG", "SYSTEMROOT")}


def asked(
    folder: Path,
    typed: bytes,
    environment: dict[str, str],
    *,
    more: str = "{}",
    stderr: bool = True,
) -> Asked:
    """Return what a program that asks prints, and what its terminal shows, if *typed* is typed."""
    command = sys.executable, "-c", ASKS, str(folder), more
    return on_terminal(command, typed, environment, stderr=stderr)


@needs_terminals
@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (b"yes\n", "granted"),
        (b"Y\n", "granted"),
        (b"n\n", "denied"),
        (b"\n", "unknown"),
        (b"perhaps\n", "unknown"),
        (b"\x04", "unknown"),  # the end of the input
    ],
)
def test_the_question_comes_once_and_its_answer_stays(
    typed: bytes, answer: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Law: Enter, or leaving, is no answer, and is not asked for again either."""
    folder = tmp_path / "data"

    first = asked(folder, typed, environment)
    second = asked(folder, b"yes\n", environment)

    assert first[0] == second[0] == answer
    assert "notes would like to learn how it is used" in first[1]
    assert "How much this gives away" in first[1]
    assert f"notes telemetry {'off' if answer == 'granted' else 'on'} changes it" in first[1]
    assert "Send such reports?" not in second[1]
    assert [path.name for path in folder.iterdir()] == [cli.ANSWER_FILE]
    assert os.stat(folder / cli.ANSWER_FILE).st_mode & 0o77 == os.stat(folder).st_mode & 0o77 == 0


@needs_terminals
def test_a_program_that_is_killed_at_the_question_does_not_ask_again(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Law: what interrupts is not an answer, and the question is put once in a life."""
    import pty

    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-c", ASKS, str(tmp_path), "{}"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
    )  # fmt: skip
    shown = b""
    with until_ended(program, signal.SIGKILL):
        while b"Send such reports?" not in shown:
            shown += os.read(ours, 4096)
    os.close(ours)
    os.close(theirs)

    assert asked(tmp_path, b"yes\n", environment)[0] == "unknown"


@needs_terminals
@pytest.mark.parametrize(
    ("name", "value"),
    [("CI", "true"), ("TF_BUILD", "True"), ("DO_NOT_TRACK", "1"), ("HEARSAY_TELEMETRY", "0")],
)
def test_nobody_is_asked_by_a_machine_or_after_a_no(
    name: str, value: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Law: where the answer is known, or nobody can give it, no question is shown or kept."""
    folder = tmp_path / "data"

    answer, shown = asked(folder, b"yes\n", {**environment, name: value})

    assert (answer, "Send such reports?" in shown) == ("unknown", False)
    assert not folder.exists()
    assert asked(folder, b"yes\n", environment)[0] == "granted"


@needs_terminals
def test_nobody_is_asked_without_both_streams_of_a_terminal(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Law: a question nobody can see is not put, nor one that nobody can answer."""
    unseen = asked(tmp_path, b"yes\n", environment, stderr=False)
    piped = subprocess.run(
        [sys.executable, "-c", ASKS, str(tmp_path), "{}"],
        input="yes\n", capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip

    assert unseen[0] == piped.stdout.strip() == "unknown"
    assert piped.stderr == ""
    assert list(tmp_path.iterdir()) == []


@needs_terminals
def test_nobody_is_asked_where_the_answer_could_not_be_kept(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Law: else the same person would be asked at every start."""
    folder = tmp_path / "data"
    folder.write_text("no folder")

    answer, shown = asked(folder, b"yes\n", environment)

    assert (answer, "Send such reports?" in shown) == ("unknown", False)


@needs_terminals
def test_the_question_can_have_a_text_and_caps_of_its_own(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Law: in letters that the terminal has."""
    plain = {**environment, "PYTHONIOENCODING": "ascii"}

    own = asked(tmp_path / "a", b"\n", plain, more="{'notice': 'May we learn ± what you use?'}")[1]
    capped = asked(
        tmp_path / "b", b"\n", plain, more="{'caps': {'week': '1'}, 'relay': 'https://r.example'}"
    )[1]

    assert "May we learn +- what you use?" in own
    assert "notes would like to learn" not in own
    assert "In any seven days it is at most epsilon 1," in " ".join(capped.split())
    assert "Reports travel through r.example, which sees your internet address" in capped


@pytest.mark.parametrize("left", ["", "maybe\n", "\xff\n", "granted by nobody"])
def test_a_damaged_answer_is_none(left: str, tmp_path: Path) -> None:
    (tmp_path / cli.ANSWER_FILE).write_text(left, encoding="latin-1")

    assert cli.remembered(tmp_path) is None
    assert cli.ask(tmp_path, notice="May we?") == "unknown"  # no terminal here


def test_a_question_without_words_and_a_folder_that_is_none_are_refused(tmp_path: Path) -> None:
    """Law: they are mistakes of the author, whoever runs the program."""
    cli.remember(tmp_path, "granted")

    with pytest.raises(InvalidParameterError, match=r"^notice="):
        cli.ask(tmp_path)
    for folder in ("", "a\0b", None):
        with pytest.raises(InvalidParameterError, match=r"^data_dir="):
            cli.ask(folder, notice="May we?")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidParameterError, match=r"^consent="):
        cli.remember(tmp_path, "sure")  # type: ignore[arg-type]  # that is the point


def test_a_remembered_answer_loads_nothing(tmp_path: Path) -> None:
    """Law: the light path stays light; a program that lives for a moment pays for no registry."""
    cli.remember(tmp_path, "granted")
    snippet = (
        f"import sys; old = set(sys.modules); sys.path.insert(0, {str(ROOT)!r})\n"
        f"from client_sdk import cli\n"
        f"assert cli.ask({str(tmp_path)!r}, {str(REGISTRY)!r}) == 'granted'\n"
        "print(*sorted(name for name in set(sys.modules) - old if 'client_sdk' not in name))"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", snippet], capture_output=True, text=True, check=True
    )

    assert set(done.stdout.split()) <= {
        "__future__", "_collections_abc", "_stat", "atexit", "binascii", "errno", "genericpath",
        "marshal", "ntpath", "os", "os.path", "posixpath", "stat", "time",
    }  # fmt: skip


# What follows: one command, three frameworks.


def with_argparse(folder: Path, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="notes")
    commands = parser.add_subparsers(required=True)
    cli.add_telemetry_command(commands, folder, REGISTRY)
    options = parser.parse_args(["telemetry", *arguments])
    return int(options.func(options))


def with_click(folder: Path, arguments: list[str]) -> int:
    main = click.Group("notes")
    main.add_command(cli.click_group(folder, REGISTRY))
    with pytest.raises(SystemExit) as ended:
        main(["telemetry", *arguments])
    return int(ended.value.code or 0)


def with_typer(folder: Path, arguments: list[str]) -> int:
    typer = pytest.importorskip("typer")
    main = typer.Typer()
    main.command("edit")(lambda: None)
    main.add_typer(cli.typer_app(folder, REGISTRY), name="telemetry")
    with pytest.raises(SystemExit) as ended:
        main(["telemetry", *arguments])
    return int(ended.value.code or 0)


Run = Callable[..., str]


@pytest.fixture(params=[with_argparse, with_click, with_typer])
def run(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Run ``notes telemetry …`` by one of the frameworks, and return what it prints."""
    for name in ("DO_NOT_TRACK", "HEARSAY_TELEMETRY"):
        monkeypatch.delenv(name, raising=False)

    def run(folder: Path, *arguments: str, status: int = 0) -> str:
        assert request.param(folder, list(arguments)) == status
        out, err = capsys.readouterr()
        assert bool(err) == bool(status)
        return str(out + err)

    return run


def client_in(folder: Path) -> Client:
    """A client of an application that asks by ``cli.ask``."""
    return Client(
        "https://collector.example",
        "key",
        REGISTRY,
        consent=cli.ask(folder, REGISTRY),
        data_dir=folder,
        mode="manual",
        opt_outs=OptOuts(folder, {}, os.devnull),
        transport=MemoryTransport(),
    )


def test_the_command_switches_on_looks_switches_off_and_deletes(tmp_path: Path, run: Run) -> None:
    """Law: a person gets through all of it, and what they said is obeyed at once."""
    before = client_in(tmp_path).consent
    assert run(tmp_path, "on") == "telemetry: on, as you agreed to\n"
    agreed = client_in(tmp_path)
    after = agreed.consent
    agreed.record("ui.theme", "dark")
    status, shown = run(tmp_path, "status"), run(tmp_path, "show")
    off = run(tmp_path, "off")
    refused = client_in(tmp_path)

    assert (before, after) == (Consent.UNKNOWN, Consent.GRANTED)
    assert "ui.theme: ε 1 of 8 in seven days" in status
    assert "what is asked: Which theme should be the default?" in shown
    assert off.startswith("telemetry: off, says your own setting")
    assert "deleted: 1 report that waited" in off
    assert (tmp_path / USER_FILE).exists()
    assert refused.consent is Consent.DENIED
    assert run(tmp_path, "on") == "telemetry: on, as you agreed to\n"
    assert client_in(tmp_path).consent is Consent.GRANTED
    assert "deleted: 0 reports" in run(tmp_path, "purge", "--yes")


def test_status_says_what_was_answered_to_programs_too(tmp_path: Path, run: Run) -> None:
    """Law: one object, whose numbers are those of the ledger, in nano-epsilon."""
    cli.remember(tmp_path, "denied")
    assert run(tmp_path, "status").startswith("telemetry: off, as you said no when you were asked")
    empty = json.loads(run(tmp_path, "status", "--json"))
    cli.remember(tmp_path, "granted")
    client_in(tmp_path).record("ui.theme", "dark")

    figures = json.loads(run(tmp_path, "status", "--json"))

    assert empty == {
        "opted_out_by": None,
        "answer": "denied",
        "automation": None,
        "recorded": False,
    }
    assert (figures["answer"], figures["waiting"], figures["week"]) == ("granted", 1, 10**9)
    assert figures["metrics"]["ui.theme"] == {"week": 10**9, "lifetime": 10**9, "reports": 1}
    assert figures["caps"]["week"] == 8 * 10**9


def test_a_command_that_fails_says_why_in_one_line(tmp_path: Path, run: Run) -> None:
    """Law: exit status 1, nothing on standard output, no traceback."""
    folder = tmp_path / "data"
    folder.write_text("no folder")

    said = run(folder, "on", status=1)

    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_a_framework_without_a_function_here_has_the_actions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.perform("purge", tmp_path, yes=True) == 0
    assert cli.perform("dance", tmp_path) == 1
    out, err = capsys.readouterr()
    assert out == "nothing was recorded here\n"
    assert err == "action=dance: must be one of status, show, on, off, purge\n"


def test_the_parser_can_be_called_otherwise() -> None:
    """Law: a tool that has the names already gives others."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command")
    cli.add_telemetry_command(commands, "data", name="reports", dest="handler")

    options: Any = parser.parse_args(["reports", "purge", "--yes"])

    assert (options.command, options.action, options.yes) == ("reports", "purge", True)
    assert callable(options.handler)


def test_the_module_answers_only_for_an_application_that_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: ``python -m client_sdk on`` is a yes only where answers are kept here."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.delenv("HEARSAY_TELEMETRY", raising=False)
    asks, own = tmp_path / "asks", tmp_path / "own"
    cli.remember(asks, "unknown")

    for folder in (asks, own):
        assert cli.main(["off", f"--data-dir={folder}"]) == 0
        assert cli.main(["on", f"--data-dir={folder}"]) == 0

    assert cli.remembered(asks) == "granted"
    assert cli.remembered(own) is None
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "telemetry: no opt-out found; your choice in the application applies"
