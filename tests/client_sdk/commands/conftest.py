"""What an application left, and the command that looks at it."""

from __future__ import annotations

import gc
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from client_sdk.__main__ import main
from client_sdk.client import Client
from client_sdk.privacy.consent import Consent, OptOuts
from client_sdk.storage.schema import FILE_NAME
from client_sdk.testing import MemoryTransport

ROOT = Path(__file__).parents[3]
REGISTRY = ROOT / "tests" / "typing" / "notes.toml"
TRUTH = {"ui.theme": "dark", "note_count": 7, "formats": ["pdf"], "ui.panel.open": True}


def client_in(folder: Path, consent: Consent = Consent.GRANTED) -> Client:
    return Client(
        "https://collector.example",
        "key",
        REGISTRY,
        consent=consent,
        data_dir=folder,
        mode="manual",
        opt_outs=OptOuts(folder, {}, os.devnull),
        transport=MemoryTransport(),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What an application left: two reports that were sent, and two that wait."""
    gc.freeze()  # what was there before need not be looked through below
    client = client_in(tmp_path)
    client.record("ui.theme", TRUTH["ui.theme"])
    client.record("note_count", TRUTH["note_count"])
    client.flush()
    client.record("formats", TRUTH["formats"])
    client.record("ui.panel.open", TRUTH["ui.panel.open"])
    del client  # without a close, as after a kill: what waits stays
    gc.collect()  # its connection closes now, not when a test reads the files
    return tmp_path


Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command where nobody has opted out, and return what it prints."""
    for name in ("DO_NOT_TRACK", "HEARSAY_TELEMETRY"):
        monkeypatch.delenv(name, raising=False)

    def run(command: str, folder: Path, *more: str, status: int = 0) -> str:
        assert main([command, f"--data-dir={folder}", *more]) == status
        out, err = capsys.readouterr()
        assert bool(err) == bool(status)
        return out + err

    return run


def rows(folder: Path, table: str) -> int:
    connection = sqlite3.connect(folder / FILE_NAME)
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
    connection.close()
    return int(count)
