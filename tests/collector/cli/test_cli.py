"""The command line: every command has help, and what is wrong is said in one line."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from client_sdk import __version__
from collector.cli import main
from collector.operations.processes import STALE_AFTER
from tests.support.crowds.uploads import registry, registry_text
from tests.support.device.registries import CATEGORY, file_with

ENVIRONMENT = {
    name: None for name in os.environ if name.startswith("HEARSAY_") or name == "REDIS_URL"
}


def hearsay(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(main, arguments, env={**ENVIRONMENT, **env})


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", [(), *commands(main)], ids=lambda path: " ".join(path) or "main")
def test_every_command_says_what_it_does_and_so_does_each_option(path: tuple[str, ...]) -> None:
    result = hearsay(*path, "--help")

    command: click.Command = main
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    assert result.exit_code == 0
    assert command.help
    assert [p.name for p in command.params if isinstance(p, click.Option) and not p.help] == []


def test_one_thing_has_one_option_in_all_commands() -> None:
    """A window is --range, or --from and --to; what is written goes to -o, or --output."""
    windows, outputs = [], set()
    for path in commands(main):
        command: click.Command = main
        for name in path:
            command = command.commands[name] if isinstance(command, click.Group) else command
        options = {opt: p for p in command.params for opt in p.opts}
        windows += [(path, "--range" in options)] if "--from" in options else []
        outputs |= {
            tuple(p.opts)
            for p in options.values()
            if isinstance(p.type, click.Path) and not p.type.exists and isinstance(p, click.Option)
        }

    assert [path for path, has_words in windows if not has_words] == [("exclude",)]  # of days
    assert ("-o", "--output") in outputs
    assert {("--out",), ("--svg",), ("--output",)}.isdisjoint(outputs)


def test_the_version_is_that_of_the_distribution() -> None:
    assert hearsay("--version").output == f"hearsay, version {__version__}\n"


@pytest.mark.parametrize("name", [".", "none.toml"])
def test_a_registry_that_is_no_file_is_a_mistake_of_the_call(name: str, tmp_path: Path) -> None:
    assert hearsay("registry", "check", str(tmp_path / name)).exit_code == 2


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ((), "HEARSAY_KEEP_DAYS=0: "),
        (("--metric", "page"), "store: "),
        (("--app", "test"), "store: "),
        (("--before", "2026-01-01"), "store: "),
        (("--older-than", "90d"), "store: "),
        (("--older-than", "90d", "--before", "2026-01-01"), "--older-than=90d: "),
    ],
)
def test_tallies_are_pruned_once_it_is_said_which(
    words: tuple[str, ...], refusal: str, tmp_path: Path
) -> None:
    """Of what is said well the store is asked, which is not there."""
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    store = f"unix://{tmp_path}/none"

    output = hearsay("prune", *words, HEARSAY_REGISTRY=str(path), REDIS_URL=store).output

    assert output.startswith(f"Error: {refusal}")


def test_a_good_registry_is_described(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")

    result = hearsay("registry", "check", str(path))

    starts = [line.split(":")[0].strip() for line in result.output.splitlines()]
    assert result.exit_code == 0
    assert starts == [
        "test",
        *registry().metrics,
        "warning",
        "warning",
        "warning",
        "not even a panel of ε 8 helps",
        "crashed costs ε 168 in any seven days",
        "advice",
    ]  # an hourly metric costs much


def test_a_check_fails_on_warnings_and_on_expiry_only_if_it_is_asked_to(tmp_path: Path) -> None:
    """Law: for continuous integration; the exit status of a plain check is of problems alone."""
    path = tmp_path / "metrics.toml"
    last = datetime.now(UTC).date() + timedelta(days=20)
    path.write_text(file_with({**CATEGORY, "expires": str(last)}), encoding="utf-8")
    within = "--expires-within"
    options: tuple[list[str], ...] = ([], [within, "10"], [within, "25"], ["--strict"])

    results = [hearsay("registry", "check", str(path), *option) for option in options]

    assert [result.exit_code for result in results] == [0, 0, 1, 1]
    assert all(" days, on " in result.stdout for result in results)
    assert [bool(result.stderr) for result in results] == [False, False, True, False]


def test_every_problem_of_a_bad_registry_is_listed_on_standard_error(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    text = registry_text(epsilon="0").replace('every = "7d"', 'every = "8d"')
    path.write_text(text, encoding="utf-8")

    result = hearsay("registry", "check", str(path))

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "metrics.theme.every: must be one of" in result.stderr
    assert "epsilon" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_registry_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    assert hearsay("registry", "check", str(tmp_path / "nothing.toml")).exit_code == 2


@pytest.mark.parametrize("command", ["init", "serve", "worker"])
def test_a_setting_that_is_missing_is_named_in_one_line(command: str) -> None:
    result = hearsay(command)

    assert result.exit_code == 1
    assert result.stderr == "Error: HEARSAY_REGISTRY=: must name at least one metrics.toml\n"


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_registry_that_is_wrong_stops_the_start(command: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text("schema = 2", encoding="utf-8")

    result = hearsay(command, HEARSAY_REGISTRY=str(path))

    assert result.exit_code == 1
    assert "schema: must be 1" in result.stderr


@pytest.mark.parametrize("command", ["init", "serve", "worker"])
def test_a_store_that_does_not_answer_stops_the_start(command: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    nowhere = f"unix://{tmp_path}/nothing.sock"

    result = hearsay(command, HEARSAY_REGISTRY=str(path), REDIS_URL=nowhere)

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("age", "status"), [(0, 0), (STALE_AFTER + 5, 1), (None, 1)])
def test_a_worker_is_alive_if_its_heartbeat_is_fresh(
    age: float | None, status: int, tmp_path: Path
) -> None:
    beat = tmp_path / "beat"
    if age is not None:
        beat.touch()
        os.utime(beat, (time.time() - age, time.time() - age))

    assert hearsay("worker", "--check", HEARSAY_HEARTBEAT=str(beat)).exit_code == status


def test_a_worker_without_a_heartbeat_cannot_be_checked() -> None:
    assert hearsay("worker", "--check").exit_code == 1


@pytest.mark.parametrize(
    "arguments", [["--devices", "999"], ["--devices", "many"], ["--port", "x"]]
)
def test_a_demo_that_could_show_nothing_is_refused(arguments: list[str]) -> None:
    assert hearsay("demo", *arguments).exit_code == 2
