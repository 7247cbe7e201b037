"""The command that writes a compiled registry."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from client_sdk.registry import Registry
from collector.cli import main
from tests.support.device.device import metric_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.toml"
    path.write_text('schema = 1\napp = "demo"\n' + metric_text("dark_mode"))
    return path


def test_the_command_writes_what_a_device_reads(path: Path) -> None:
    output = path.with_suffix(".json")

    result = CliRunner().invoke(main, ["registry", "compile", str(path), "-o", str(output)])

    assert result.exit_code == 0
    assert [m.digest for m in Registry.from_file(output)] == [
        m.digest for m in Registry.from_file(path)
    ]


def test_without_a_file_it_prints(path: Path) -> None:
    result = CliRunner().invoke(main, ["registry", "compile", str(path)])

    assert Registry.from_text(result.output).app == "demo"


def test_a_check_fails_until_the_file_is_compiled_again(path: Path) -> None:
    output = path.with_suffix(".json")
    check = ["registry", "compile", str(path), "-o", str(output), "--check"]

    missing = CliRunner().invoke(main, check)
    CliRunner().invoke(main, check[:-1])
    same = CliRunner().invoke(main, check)
    path.write_text(path.read_text() + metric_text("compact"))
    other = CliRunner().invoke(main, check)

    assert [result.exit_code for result in (missing, same, other)] == [1, 0, 1]
    assert f"{output}: is not what {path} compiles to" in other.output


def test_a_check_needs_a_file(path: Path) -> None:
    result = CliRunner().invoke(main, ["registry", "compile", str(path), "--check"])

    assert result.exit_code == 2
    assert "--output" in result.output
