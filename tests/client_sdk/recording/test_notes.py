"""What children note for later parents: what need not be handed over, and what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.limits import NOTES_FILE
from client_sdk.inspection import status
from client_sdk.recording.handover_protocol import Notes, refusal_in
from tests.support.device.device import metric_text, rows
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.programs import (
    environment,
    program,
    run,
    wait_for_no_children,
    wait_for_notes,
    write_registry,
)
from tests.support.device.short_runs import Week
from tests.support.patience import PATIENCE

CHARGES: Final = "SELECT count(*) FROM charges WHERE digest <> x''"


def test_a_registry_of_the_same_size_and_time_is_another_if_its_content_is(tmp_path: Path) -> None:
    """As of archives that set all times alike, where one digit was changed."""
    path = write_registry(tmp_path, metric_text("plain", epsilon="1"))
    before = path.stat()
    run(tmp_path, "command.record('plain', True)")
    noted = wait_for_notes(tmp_path)
    write_registry(tmp_path, metric_text("plain", epsilon="2"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)

    run(tmp_path, "command.record('plain', True)")
    wait_for_notes(tmp_path, after=noted)

    assert rows(tmp_path / "data", CHARGES) == [(2,)]


def charges_by_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, noted: bool
) -> tuple[list[int], int]:
    """Return how many charges there are after each run, and how many children that took.

    Two metrics spend the week; a third one, of four weeks, has no room before a week is over.
    """
    write_registry(
        folder,
        *(metric_text(name, epsilon="4", every="7d") for name in ("first", "second")),
        metric_text("third", epsilon="4", every="28d"),
    )
    week = Week(folder, monkeypatch, ScriptedTransport())
    week.run(first=True, second=True)
    charges = []
    for _ in range(9 * 16):
        week.clock.advance(days=1 / 16)
        if not noted:
            (folder / "data" / NOTES_FILE).unlink()
        week.run(third=True)
        charges.append(rows(folder / "data", CHARGES)[0][0])
    return charges, week.children


def test_a_metric_whose_budget_is_spent_costs_no_child_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: it reports in the very run in which it would without any notes."""
    for name in ("noted", "unnoted"):
        (tmp_path / name).mkdir()

    charges, children = charges_by_run(tmp_path / "noted", monkeypatch, noted=True)
    control, without = charges_by_run(tmp_path / "unnoted", monkeypatch, noted=False)

    assert charges == control
    assert (charges[0], charges[-1]) == (2, 3)
    assert without == 1 + 9 * 16
    assert children < 80  # passes that are due, too


def test_a_budget_that_was_noted_is_that_of_the_same_caps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_registry(tmp_path, metric_text("first", epsilon="4"), metric_text("second", epsilon="4"))
    week = Week(tmp_path, monkeypatch, ScriptedTransport())
    week.settings["caps"] = {"week": "4"}
    week.run(first=True, second=True)
    week.run(first=True, second=True)
    assert (rows(tmp_path / "data", CHARGES), week.children) == ([(1,)], 1)

    week.settings["caps"] = {"week": "8"}
    week.run(first=True, second=True)

    assert rows(tmp_path / "data", CHARGES) == [(2,)]


WRONG: Final = {
    "caps.week": 'caps={"week": "canary"}',
    "caps": 'caps={"canary": "8"}',
    "segment.theme": 'segment={"theme": "canary"}',
    "endpoint": 'endpoint="ftp://canary.example"',
    "panel.week": 'caps={"week": "1"}',
    "registry": 'registry="canary.toml"',
}


def configured(settings: str) -> str:
    """Return a program that records a value with *settings* in place of those that are right."""
    right = {
        "endpoint": '"http://127.0.0.1:9"',
        "registry": '"metrics.toml"',
        "caps": "None",
        "segment": "None",
    }
    right |= dict([settings.split("=", 1)])
    arguments = ", ".join(f"{name}={text}" for name, text in right.items())
    return (
        f'command.configure({arguments}, write_key="key", data_dir="data", consent="granted")\n'
        "command.record('plain', True); command.record('plain', True)"
    )


LISTENS: Final = "import logging\nlogging.basicConfig(format='%(message)s')\n"


def said(folder: Path, body: str) -> list[str]:
    """Run a program that listens, and return the lines that it writes to standard error."""
    done = subprocess.run(
        program(LISTENS + body),
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stderr.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="looks for processes in /proc")
@pytest.mark.parametrize("place", WRONG)
def test_what_a_child_could_not_be_made_of_is_logged_by_the_next_run(
    tmp_path: Path, place: str
) -> None:
    """Law: once in each run, naming the place, with no word of what was given or recorded."""
    path = write_registry(tmp_path, metric_text("plain"))
    if place == "panel.week":
        path.write_text(path.read_text().replace("[metrics", '[panel]\nweek = "7"\n[metrics', 1))
    wrong = configured(WRONG[place])
    assert said(tmp_path, wrong) == []
    wait_for_notes(tmp_path)
    wait_for_no_children(tmp_path)

    (line,) = said(tmp_path, wrong)
    wait_for_no_children(tmp_path)

    assert line.startswith(place)
    assert line.endswith("so nothing that this program records is reported")
    if place != "registry":  # whose path is a developer's own
        assert "canary" not in line + (tmp_path / "data" / NOTES_FILE).read_text()
    assert any(place in text for text in status(tmp_path / "data"))

    noted = (tmp_path / "data" / NOTES_FILE).stat().st_mtime_ns
    assert said(tmp_path, configured('endpoint="http://127.0.0.1:9"')) == []
    wait_for_notes(tmp_path, after=noted)
    wait_for_no_children(tmp_path)
    assert refusal_in(str(tmp_path / "data")) == ""
    assert rows(tmp_path / "data", CHARGES) == [(1,)]


@pytest.mark.skipif(sys.platform == "win32", reason="looks for processes in /proc")
def test_settings_that_become_wrong_are_noticed_though_the_metric_has_its_report(
    tmp_path: Path,
) -> None:
    write_registry(tmp_path, metric_text("plain"))
    assert said(tmp_path, configured("caps=None")) == []
    noted = wait_for_notes(tmp_path)
    wait_for_no_children(tmp_path)

    wrong = configured('caps={"week": "eight"}')
    assert said(tmp_path, wrong) == []
    wait_for_notes(tmp_path, after=noted)
    wait_for_no_children(tmp_path)

    assert [line.partition(":")[0] for line in said(tmp_path, wrong)] == ["caps.week"]
    wait_for_no_children(tmp_path)


def test_notes_of_a_clock_that_was_ahead_are_not_believed(tmp_path: Path) -> None:
    """Else a metric would be silent until that time has come."""
    registry = str(write_registry(tmp_path, metric_text("plain")))
    noted = {"plain": (9_000.0, "budget")}
    text = Notes(2_000.0, noted).text(registry, 1_000.0)
    (tmp_path / NOTES_FILE).write_text(text)

    assert Notes.read(str(tmp_path), registry, 1_000.0).settled == noted
    assert Notes.read(str(tmp_path), registry, 999.0).settled == {}
    for place in range(len(text)):  # whatever letter is damaged
        (tmp_path / NOTES_FILE).write_text(
            text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :]
        )
        assert Notes.read(str(tmp_path), registry, 1_000.0).settled == {}
