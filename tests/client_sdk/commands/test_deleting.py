"""``python -m client_sdk purge``, ``off`` and ``on``: what goes, what stays, who is obeyed."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from client_sdk.privacy.consent import Consent
from client_sdk.privacy.opt_outs import USER_FILE
from client_sdk.storage.schema import FILE_NAME
from tests.client_sdk.commands.conftest import Run, client_in, rows


@pytest.mark.parametrize("command", ["off", "purge"])
def test_what_was_set_aside_is_deleted_too(command: str, folder: Path, run: Run) -> None:
    """A damaged file holds what waited; and so it is where the database is gone."""
    (folder / f"{FILE_NAME}.damaged").write_bytes(b"what waited")
    client_in(folder).close()
    (folder / FILE_NAME).unlink()

    run(command, folder, *["--yes"] * (command == "purge"))

    left = {path.name for path in folder.iterdir()}
    assert not left & {f"{FILE_NAME}.damaged", "secret"}


def test_purge_deletes_all_but_the_charges(folder: Path, run: Run) -> None:
    """Nothing that was queued or sent is left; the same budget cannot be spent again."""
    shown = run("purge", folder, "--yes")

    assert "deleted: 2 reports that waited" in shown
    assert [rows(folder, table) for table in ("reports", "uploads", "sent", "memo")] == [0] * 4
    assert rows(folder, "charges") == 4
    assert not (folder / "secret").exists()


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_purge_asks_and_takes_only_a_yes(
    answer: str, left: int, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty answer, and a closed standard input, delete nothing."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))

    run("purge", folder)

    assert rows(folder, "reports") == left


def test_off_wipes_and_stops_the_application_and_on_lets_it_go_on(folder: Path, run: Run) -> None:
    """The user's own no is stronger than a consent that the application still believes in."""
    run("off", folder)
    refused = client_in(folder)
    refused.record("minutes", {"edit": 3})
    waiting = rows(folder, "reports")
    run("on", folder)
    again = client_in(folder)
    again.record("minutes", {"edit": 3})

    assert (refused.stats()["opted_out"], waiting) == (1, 0)
    assert (again.stats()["recorded"], rows(folder, "reports")) == (1, 1)


def test_off_before_the_application_ever_ran_is_obeyed(tmp_path: Path, run: Run) -> None:
    """The folder is made for the answer alone."""
    folder = tmp_path / "new"

    run("off", folder)

    assert [path.name for path in folder.iterdir()] == [USER_FILE]
    assert client_in(folder).consent is Consent.DENIED
