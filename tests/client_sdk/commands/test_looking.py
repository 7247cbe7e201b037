"""``python -m client_sdk``: what a user sees of telemetry, and stops, without the application."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client_sdk import inspection
from client_sdk.client import Client
from client_sdk.core.errors import InvalidParameterError, TransportError
from client_sdk.gateway import Gateway
from client_sdk.inspection import MAX_SHOWN
from client_sdk.privacy.consent import Consent, OptOuts
from client_sdk.privacy.opt_outs import USER_FILE
from client_sdk.registry import Registry
from client_sdk.storage.schema import FILE_NAME
from client_sdk.testing import MemoryTransport
from tests.client_sdk.commands.conftest import REGISTRY, ROOT, Run, client_in, rows
from tests.support.device.clock import FakeClock
from tests.support.device.device import CANARY, alter, make_client
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.registries import HEAD, NUMBER, table


def test_the_module_runs_as_a_command(folder: Path) -> None:
    """Once, in a process of its own, with the environment as it is."""
    command = [sys.executable, "-m", "client_sdk", "show", f"--data-dir={folder}"]

    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("waiting to be sent:\n")


def test_status_adds_up_what_was_spent_within_the_caps_and_what_waits(
    folder: Path, run: Run
) -> None:
    """Every metric has its line; the caps are those that the application was compiled with."""
    shown = run("status", folder, f"--registry={REGISTRY}")

    assert "spent in the last seven days: ε 5 of 8\n" in shown
    assert "spent for life: ε 5 of 1,000\n" in shown
    assert "formats: ε 2 of" in shown
    assert "ui.theme: ε 1 of" in shown
    assert "waiting to be sent: 2 reports\n" in shown


def test_status_without_a_registry_names_metrics_by_their_digests(folder: Path, run: Run) -> None:
    """A user need not have the registry to see what was spent."""
    assert "metric 74abaed0901c: ε 1 of" in run("status", folder)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DO_NOT_TRACK", "1", "telemetry: off, says the environment variable DO_NOT_TRACK\n"),
        ("HEARSAY_TELEMETRY", "off", "says the environment variable HEARSAY_TELEMETRY\n"),
        ("UNRELATED", "1", "telemetry: no opt-out found; your choice in the application"),
    ],
)
def test_status_says_who_says_no(
    name: str, value: str, said: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The strongest level that says no is named."""
    monkeypatch.setenv(name, value)

    assert said in run("status", tmp_path)


def test_show_puts_each_report_in_words_and_says_why_it_can_be_denied(
    folder: Path, run: Run
) -> None:
    """What waits and what was sent stand apart; no line claims to know what was true."""
    shown = run("show", folder, f"--registry={REGISTRY}")

    waiting, sent = shown.split("sent, the last 100:")
    assert "Formats (formats), from " in waiting
    assert "Theme (ui.theme), from " in sent
    assert sent.count("sent on: ") == 2
    assert shown.count("why it can be denied: ") == shown.count("does not know it any more") == 4
    assert "odds by more than 2.8 to 1" in sent


def test_show_names_the_periods_that_are_still_being_added_up(folder: Path, run: Run) -> None:
    """What is kept of them is masked, and no word about it is shown."""
    digest = Registry.from_file(REGISTRY).metric("note_count").digest
    connection = sqlite3.connect(folder / FILE_NAME)
    connection.execute("INSERT INTO windows VALUES (x'', ?, 2968, x'c0ffee')", (digest,))
    connection.commit()
    connection.close()

    shown = run("show", folder, f"--registry={REGISTRY}")

    assert shown.startswith(
        "being added up, until the period is over:\n  Notes (note_count), from "
    )
    assert "c0ffee" not in shown


def test_show_tells_what_is_true_so_far_to_who_has_the_secret(tmp_path: Path, run: Run) -> None:
    """The device's own windows in words, a gateway's by their number; without the registry none."""
    path = tmp_path / "metrics.toml"
    path.write_text(HEAD + table("saves", NUMBER, unit='"saves"', aggregate='"sum"', otherwise="0"))
    folder, options = tmp_path / "data", OptOuts(tmp_path, {}, os.devnull)
    common = ("https://collector.example", "key", path)
    client = Client(*common, consent="granted", data_dir=folder, mode="manual", opt_outs=options)
    client.record("saves", 3)
    client.record("saves", 1.5)
    gateway = Gateway(*common, consent="granted", data_dir=tmp_path / "many", opt_outs=options)
    gateway.record_many((f"machine-{i}", "saves", 1) for i in range(3))
    gateway.close()

    shown = run("show", folder, f"--registry={path}")
    many = run("show", tmp_path / "many", f"--registry={path}")

    assert "    what is true so far: 4.5 saves\n" in shown
    assert "true so far" not in run("show", folder) + many
    assert ", of 3 devices\n" in many


def test_a_gateways_devices_are_counted_and_never_named(tmp_path: Path, run: Run) -> None:
    """Status has the number of ledgers and the one that spent most; show has only the latest."""
    gateway = Gateway(
        *("https://collector.example", "key", REGISTRY),
        consent=Consent.GRANTED,
        data_dir=tmp_path,
        transport=MemoryTransport(),
        opt_outs=OptOuts(tmp_path, {}, os.devnull),
    )
    gateway.record_many((f"machine-{i}", "ui.theme", "dark") for i in range(MAX_SHOWN + 20))
    gateway.record("machine-7", "formats", ["pdf"])
    gateway.close()

    status = run("status", tmp_path)
    shown = run("show", tmp_path, f"--registry={REGISTRY}")

    assert "ledgers of 120 devices; the most that one of them spent in" in status
    assert "is ε 3\n" in status
    assert shown.count("what is sent:") == MAX_SHOWN
    assert "of 121, the latest 100\n" in shown
    assert "machine-" not in status + shown


def test_show_without_a_registry_prints_bytes_and_no_guess(folder: Path, run: Run) -> None:
    """Without the definition a payload has no meaning."""
    shown = run("show", folder)

    assert shown.count("--registry gives them words") == 4
    assert "why it can be denied" not in shown


@pytest.mark.parametrize("command", ["status", "show"])
def test_looking_changes_nothing_and_makes_no_database(
    command: str, tmp_path: Path, run: Run
) -> None:
    """A folder in which nothing was recorded stays empty."""
    assert "nothing was recorded here" in run(command, tmp_path)
    assert list(tmp_path.iterdir()) == []


def files_in(folder: Path) -> dict[str, bytes]:
    """Return all files but the one in which processes share which part of the log they read."""
    shared = f"{FILE_NAME}-shm"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != shared}


@pytest.mark.parametrize("command", ["status", "show"])
def test_looking_into_a_copy_says_so_and_leaves_it_as_it_is(
    command: str, folder: Path, tmp_path_factory: pytest.TempPathFactory, run: Run
) -> None:
    """A backup can be read; only the application takes away what a copy must not repeat."""
    client_in(folder).close()
    copy = tmp_path_factory.mktemp("backup") / "copy"
    shutil.copytree(folder, copy)
    before = files_in(copy)

    shown = run(command, copy)

    assert shown.count("this looks like a copy") == 1
    assert "looks like a copy" not in run(command, folder)
    assert files_in(copy) == before
    if command == "show":
        assert shown.count("what is sent:") == 4


def test_looking_changes_no_file_of_an_application_that_runs_or_was_killed(
    folder: Path, run: Run
) -> None:
    """The log counts, and stays."""
    client = client_in(folder)
    client.record("minutes", {"edit": 3})
    before = files_in(folder)

    status = run("status", folder)

    after = files_in(folder)
    client.close()
    assert f"{FILE_NAME}-wal" in before
    assert "waiting to be sent: 3 reports\n" in status
    assert after == before


@pytest.mark.parametrize("command", ["status", "show"])
@pytest.mark.parametrize(
    ("left", "said"), [(None, "is damaged, and cannot be shown"), (0, "is empty")]
)
def test_looking_at_damage_says_so_and_sets_nothing_aside(
    command: str, left: int | None, said: str, folder: Path, run: Run
) -> None:
    """In words, on standard error."""
    client_in(folder).close()
    path = folder / FILE_NAME
    path.write_bytes((b"\xa5" * 4096 + path.read_bytes()[4096:])[:left])
    before = files_in(folder)

    shown = run(command, folder, status=1)

    assert said in shown.splitlines()[-1]
    assert files_in(folder) == before


@pytest.mark.parametrize("caps", ["junk", "[1]", '{"week": "x"}', "[" * 9_999, "null"])
def test_caps_that_cannot_be_read_are_not_shown(caps: str, folder: Path, run: Run) -> None:
    """What was spent is, all the same."""
    alter(folder, f"UPDATE meta SET value = '{caps}' WHERE key = 'caps'")  # noqa: S608 - of this test

    assert "spent in the last seven days: ε 5\n" in run("status", folder)


def test_what_is_not_understood_ends_in_one_line_without_its_content(
    folder: Path, run: Run
) -> None:
    """A traceback could show what the file holds."""
    alter(folder, f"UPDATE sent SET epoch = '{CANARY}'")  # noqa: S608 - of this test

    shown = run("show", folder, f"--registry={REGISTRY}", status=1)

    assert "cannot be understood: TypeError" in shown
    assert CANARY not in shown


@pytest.mark.parametrize("command", ["status", "show"])
def test_a_registry_that_cannot_be_read_is_one_line_on_standard_error(
    command: str, folder: Path, run: Run
) -> None:
    """No traceback, and exit status 1."""
    shown = run(command, folder, "--registry=nowhere.toml", status=1)

    assert shown.count("\n") == 1
    assert "registry=nowhere.toml: cannot be read" in shown


def test_a_database_of_a_newer_version_is_left_alone_and_named(folder: Path, run: Run) -> None:
    """What this version does not understand it does not purge."""
    connection = sqlite3.connect(folder / FILE_NAME)
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    shown = run("purge", folder, "--yes", status=1)

    assert "schema 99 was written by a newer version" in shown
    assert rows(folder, "reports") == 2


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize("command", ["status", "show"])
def test_a_terminal_without_greek_letters_is_told_the_same(
    command: str, encoding: str, folder: Path
) -> None:
    """As a redirect on Windows, or a bare container: epsilon is spelt out, nothing is "broken"."""
    arguments = [command, f"--data-dir={folder}", f"--registry={REGISTRY}"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}

    done = subprocess.run(
        [sys.executable, "-m", "client_sdk", *arguments],
        capture_output=True, cwd=ROOT, env=environment,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, b"")
    said = done.stdout.decode(encoding)
    assert said.replace("?", "").isascii() or encoding == "utf-8"
    assert not re.search(r"\?\S", said)  # no letter was replaced
    if command == "status":
        assert "ε 5 of 8" in said or "epsilon 5 of 8" in said
        assert ("ε" in said) == (encoding == "utf-8")


def test_a_notice_can_be_had_in_ascii(tmp_path: Path) -> None:
    client = client_in(tmp_path)

    assert client.notice(ascii=True).isascii()
    assert not re.search(r"\?\S", client.notice(ascii=True))  # no letter was replaced
    assert "epsilon" in client.notice(ascii=True)
    assert client.notice() == client.notice(ascii=False)


def test_status_says_what_turned_the_last_upload_away(tmp_path: Path) -> None:
    """Law: of the last try; a person, and a developer without a log, sees why nothing arrives."""
    clock, way = FakeClock(), ScriptedTransport([302, 401, TransportError("lost")])
    client = make_client(tmp_path, clock=clock, transport=way)
    client.record("dark_mode", True)

    said = []
    for _ in range(4):
        client.flush()
        clock.advance(days=1)
        said += [[line for line in inspection.status(tmp_path) if "turned away" in line]]

    client.close()
    assert [len(lines) for lines in said] == [1, 1, 0, 0]
    assert "status 302: check endpoint, and what stands between" in said[0][0]
    assert "status 401: check write_key" in said[1][0]


@pytest.mark.usefixtures("run")
def test_an_application_can_offer_the_same_itself(folder: Path, run: Run) -> None:
    """By functions, as a bundled program has no ``python -m``."""
    registry, option = Registry.from_file(REGISTRY), f"--registry={REGISTRY}"

    assert inspection.show(folder, registry) == run("show", folder, option).splitlines()
    assert inspection.show(folder, REGISTRY) == inspection.show(folder, registry)
    assert inspection.status(folder, registry) == run("status", folder, option).splitlines()
    said = inspection.opt_out(folder)
    assert said[0].startswith("telemetry: off, says your own setting")
    assert said[1] == "deleted: 2 reports that waited, what was sent, and the device's secret"
    assert (folder / USER_FILE).exists()
    assert client_in(folder).consent is Consent.DENIED
    assert inspection.opt_in(folder)[0].startswith("telemetry: no opt-out found")
    inspection.purge(folder)
    assert client_in(folder).consent is Consent.GRANTED


@pytest.mark.parametrize("look", [inspection.status, inspection.show, inspection.purge])
def test_a_folder_that_is_none_is_refused(look: Callable[[Any], list[str]]) -> None:
    for folder in (None, "", 7):
        with pytest.raises(InvalidParameterError, match=r"^data_dir="):
            look(folder)
