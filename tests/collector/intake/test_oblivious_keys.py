"""The file of keys that open capsules: made, added to, and refused where it is not right."""

from __future__ import annotations

import json
import os
import stat
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from client_sdk.upload.ohttp import configuration_of
from collector.cli import main
from collector.core.errors import ConfigError
from collector.intake.oblivious_keys import SETTING, add_key, read_keys, relay_key

DAY = date(2026, 11, 23)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "keys.json")


def test_a_new_key_is_read_again_and_is_for_its_owner_only(path: str) -> None:
    written = add_key(path, DAY)

    assert read_keys(path) == written
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert configuration_of(relay_key(written)) == written[0].configuration


def test_a_new_key_outlives_a_power_cut(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is synced after the file has its name."""
    synced: list[tuple[bool, bool]] = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), os.path.exists(path)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    add_key(path, DAY)

    assert synced == [(False, False), (True, True)]


def test_the_key_before_stays_good_and_a_third_pushes_none_out(path: str) -> None:
    [first] = add_key(path, DAY)
    second, *rest = add_key(path, DAY)

    assert rest == [first]
    assert second.key_id == (first.key_id + 1) % 256
    with pytest.raises(ConfigError, match=f"--drop {first.key_id}"):
        add_key(path, DAY)
    assert read_keys(path) == [second, first]


def test_a_key_goes_where_its_number_is_given(path: str) -> None:
    [first], [second, _] = add_key(path, DAY), add_key(path, DAY)

    keys = add_key(path, DAY, drop=first.key_id)

    assert [key.public for key in keys[1:]] == [second.public]
    assert len({key.key_id for key in [*keys, first]}) == 3
    with pytest.raises(ConfigError, match="must be in the file"):
        add_key(path, DAY, drop=first.key_id)


def test_numbers_begin_again_after_the_last(path: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        row = {"id": 255, "secret": "A" * 43, "since": "2026-01-01"}
        file.write(json.dumps({"schema": 1, "keys": [row]}))
    os.chmod(path, 0o600)

    assert [key.key_id for key in add_key(path, DAY)] == [0, 255]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": []}',
        '{"keys": [{"id": 1, "secret": "AAAA", "since": "2026-01-01"}]}',
        '{"keys": [{"id": 256, "secret": "%s", "since": "2026-01-01"}]}' % ("B" * 43),
        '{"keys": [{"id": true, "secret": "%s", "since": "2026-01-01"}]}' % ("B" * 43),
        '{"keys": [{"id": 1, "secret": "%s", "since": "soon"}]}' % ("B" * 43),
    ],
)
def test_a_file_of_another_form_is_refused_and_not_shown(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="ascii")
    os.chmod(path, 0o600)

    with pytest.raises(ConfigError, match=f"{SETTING}=.*oblivious-key new") as caught:
        read_keys(path)

    assert "BBBB" not in str(caught.value)


def test_a_file_that_is_open_to_everybody_is_refused(path: str) -> None:
    add_key(path, DAY)
    os.chmod(path, 0o644)

    with pytest.raises(ConfigError, match="chmod 600"):
        read_keys(path)


def test_a_file_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=f"{SETTING}={path}: cannot be read"):
        read_keys(path)


def test_the_command_prints_what_applications_need_and_no_secret(path: str) -> None:
    runner = CliRunner()

    first = runner.invoke(main, ["oblivious-key", "new", path])
    second = runner.invoke(main, ["oblivious-key", "new", path])
    shown = runner.invoke(main, ["oblivious-key", "show", path])
    third = runner.invoke(main, ["oblivious-key", "new", path])

    assert [run.exit_code for run in (first, second, shown, third)] == [0, 0, 0, 1]
    assert shown.stdout == second.stdout != first.stdout
    assert "stays good" in second.stderr
    secrets = [row["secret"] for row in json.loads(Path(path).read_text("ascii"))["keys"]]
    printed = "".join(run.output for run in (first, second, shown, third))
    assert not any(secret in printed for secret in secrets)
