"""A denial that comes between a hand-over and what the child writes: nothing of it is reported."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from client_sdk import cli
from client_sdk.client import Client
from client_sdk.core.limits import NOTES_FILE, PERMIT_FILE
from client_sdk.inspection import opt_in, opt_out, purge
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.recording.child import serve
from client_sdk.recording.handover_protocol import PERMIT_SIZE, issue_permit, permit_in
from client_sdk.storage.schema import FILE_NAME
from tests.support.device.clock import FakeClock
from tests.support.device.device import ENDPOINT, KEY, metric_text, rows
from tests.support.device.device_transport import ScriptedTransport
from tests.support.device.programs import (
    children_of,
    run,
    wait_for_no_children,
    wait_for_notes,
    write_registry,
)
from tests.support.patience import wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stops processes by signals")

STOPS: Final = """
spawn = os.posix_spawn
def stopped(path, command, environment, **options):
    shell = ["sh", "-c", 'kill -STOP $$; exec "$0" "$@"', *command]
    child = spawn("/bin/sh", shell, environment, **options)
    print(child)
    return child
os.posix_spawn = stopped
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a registry of two metrics."""
    write_registry(tmp_path, metric_text("plain"), metric_text("other"))
    return tmp_path


def is_stopped(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def hand_over_to_a_stopped_child(folder: Path) -> Callable[[], None]:
    """Hand a value over; return what lets the child go on to its end."""
    child = int(run(folder, f"{STOPS}command.record('plain', True)"))
    wait_for(lambda: is_stopped(child))

    def go_on() -> None:
        os.kill(child, signal.SIGCONT)
        wait_for_no_children(folder)

    return go_on


def recorded(folder: Path) -> list[str]:
    """Return what the database holds of each metric: reports and charges."""
    if not (folder / "data" / FILE_NAME).exists():
        return []
    tables = ("reports", "charges")
    return [t for t in tables for _ in rows(folder / "data", f"SELECT * FROM {t}")]  # noqa: S608


def deny_by_client(folder: Path) -> None:
    with Client(
        ENDPOINT, KEY, folder / "metrics.toml", consent="granted", data_dir=folder / "data"
    ) as client:
        client.set_consent("denied")


def opt_out_and_in(folder: Path) -> None:
    opt_out(folder / "data")
    opt_in(folder / "data")


DENIALS: Final[dict[str, Callable[[Path], object]]] = {
    "consent": lambda folder: run(folder, "", consent="denied"),
    "environment": lambda folder: run(folder, "", DO_NOT_TRACK="1"),
    "client": deny_by_client,
    "answer": lambda folder: cli.remember(folder / "data", "denied"),
    "opt_out": lambda folder: opt_out(folder / "data"),
    "opt_out_and_in": opt_out_and_in,
    "purge": lambda folder: purge(folder / "data"),
}


@pytest.mark.parametrize("denial", DENIALS)
def test_what_was_handed_over_before_a_denial_is_not_reported(folder: Path, denial: str) -> None:
    """Law: whoever says no, and wherever; the child was stopped before its first line."""
    go_on = hand_over_to_a_stopped_child(folder)
    DENIALS[denial](folder)

    go_on()

    assert recorded(folder) == []


@pytest.mark.parametrize("environment", [{}, {"DO_NOT_TRACK": "1"}])
def test_a_denial_counts_though_its_process_ends_before_it_can_erase(
    folder: Path, environment: dict[str, str]
) -> None:
    """As on a machine that is busy with others: no thread of the process gets its turn."""
    go_on = hand_over_to_a_stopped_child(folder)
    busy = "from client_sdk.recording import background\nbackground.run_within = lambda *_: None"
    run(folder, busy, consent="granted" if environment else "denied", **environment)

    go_on()

    assert recorded(folder) == []


def test_nor_after_a_new_consent_whose_own_values_are_reported(folder: Path) -> None:
    go_on = hand_over_to_a_stopped_child(folder)
    run(folder, "", consent="denied")
    noted = (folder / "data" / NOTES_FILE).stat().st_mtime_ns
    run(folder, "command.record('other', True)")
    wait_for_notes(folder, after=noted)
    assert recorded(folder) == ["reports", "charges"]

    go_on()

    assert recorded(folder) == ["reports", "charges"]


def test_a_denial_that_found_nothing_to_erase_before_is_heeded_again(folder: Path) -> None:
    """The second denial is that of a program that notes say has nothing to do."""
    run(folder, "command.record('plain', True)")
    noted = wait_for_notes(folder)
    wait_for_no_children(folder)
    run(folder, "", consent="denied")
    assert (folder / "data" / NOTES_FILE).stat().st_mtime_ns > noted
    write_registry(folder, metric_text("plain", epsilon="0.5"))
    go_on = hand_over_to_a_stopped_child(folder)
    run(folder, "", consent="denied")

    go_on()

    assert rows(folder / "data", "SELECT * FROM reports") == []
    assert len(rows(folder / "data", "SELECT * FROM charges")) == 1  # of the first run


def test_a_kept_no_is_heeded_whatever_the_parent_was_told(folder: Path) -> None:
    """Law: the answer on the terminal is read again where the report would be written."""
    cli.remember(folder / "data", "denied")

    run(folder, "command.record('plain', True)")
    wait_for_no_children(folder)

    assert recorded(folder) == []


@pytest.mark.parametrize("withdrawn", [True, False])
def test_a_denial_while_a_program_runs_covers_what_it_recorded_before(
    folder: Path, withdrawn: bool
) -> None:
    """Law: what counts is the permit at the first value, not one that is issued at the end."""
    run(folder, "command.record('other', True)")
    wait_for_notes(folder)
    wait_for_no_children(folder)
    denial = f"import os; os.remove({str(folder / 'data' / PERMIT_FILE)!r})" if withdrawn else ""

    run(folder, f"command.record('plain', True); {denial}")
    wait_for_no_children(folder)

    assert recorded(folder).count("charges") == (1 if withdrawn else 2)


@pytest.mark.parametrize("withdrawn", [True, False])
def test_a_child_that_waits_for_the_database_looks_again(folder: Path, withdrawn: bool) -> None:
    """Law: what counts is the permit while the transaction is open, in which it would report."""
    run(folder, "command.record('plain', True)")
    wait_for_notes(folder)
    wait_for_no_children(folder)
    database = folder / "data" / FILE_NAME
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    run(folder, "command.record('other', True)")
    (child,) = wait_for(lambda: children_of(folder))
    wait_for(lambda: str(database) in open_files_of(child))

    if withdrawn:
        os.remove(folder / "data" / PERMIT_FILE)
    other.execute("ROLLBACK")
    other.close()
    wait_for_no_children(folder)

    assert recorded(folder).count("charges") == (1 if withdrawn else 2)


def open_files_of(process: int) -> list[str]:
    paths = []
    for file in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            paths.append(os.readlink(file))
    return paths


@pytest.mark.parametrize("withdrawn", [True, False])
def test_nothing_is_sent_after_a_denial_of_another_process(folder: Path, withdrawn: bool) -> None:
    """Law: the permit is looked at once more when a connection would be made."""
    data, clock, transport = folder / "data", FakeClock(), ScriptedTransport()
    permit = issue_permit(str(data))
    work = partial(
        serve,
        settings={
            "endpoint": ENDPOINT,
            "write_key": KEY,
            "registry": str(folder / "metrics.toml"),
            "data_dir": str(data),
            "consent": "granted",
            "caps": {},
        },
        transport=transport,
        opt_outs=NoOptOuts(),
        permit=permit,
        clock=clock,
        uptime=clock.uptime,
    )
    assert work([("plain", True, clock())], sends=False)["recorded"] == 1
    clock.advance(days=1)

    withdraw = partial(os.remove, data / PERMIT_FILE) if withdrawn else lambda: None
    work([], sends=True, recorded=withdraw)

    assert len(transport.sent) == (not withdrawn)


def test_a_permit_is_one_for_all_until_it_is_withdrawn(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    assert permit_in(folder) == b""
    first = issue_permit(folder)

    assert issue_permit(folder) == permit_in(folder) == first
    assert len(first) == PERMIT_SIZE
    assert (tmp_path / "data").stat().st_mode & 0o77 == 0
    assert (tmp_path / "data" / PERMIT_FILE).stat().st_mode & 0o77 == 0
    for damage in (b"", first[:-1]):  # its writer was killed
        (tmp_path / "data" / PERMIT_FILE).write_bytes(damage)
        assert len(issue_permit(folder)) == PERMIT_SIZE
    os.remove(tmp_path / "data" / PERMIT_FILE)
    assert issue_permit(folder) != first
