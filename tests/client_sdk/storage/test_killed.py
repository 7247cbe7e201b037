"""A device that is killed at any moment: what is charged is queued or sent, once and the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from client_sdk.core.base64url import from_base64url
from client_sdk.storage.ledger import WEEK
from tests.support.device.device import rows
from tests.support.device.killing import CAPS, END
from tests.support.patience import PATIENCE


def reports_of(body: bytes) -> set[tuple[bytes, int, bytes]]:
    """Return the reports of an upload whose columns have one payload each."""
    return {
        (from_base64url(c["metric"]), c["epoch"], from_base64url(c["payloads"]))
        for c in json.loads(body)["columns"]
    }


@pytest.mark.parametrize("kills", [25, pytest.param(500, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_doubles_and_overspends_nothing(
    kills: int, tmp_path: Path
) -> None:
    """Law: every charge has its one report, waiting, sealed or sent; a retry is the same bytes;
    no week is over its cap; the database is whole."""
    folder, log = tmp_path / "device", tmp_path / "log"

    subprocess.run(
        [sys.executable, "-m", "tests.support.device.killing", folder, log, str(kills)],
        check=True,
        timeout=PATIENCE + kills,
    )

    bodies: dict[str, set[bytes]] = defaultdict(set)
    lines = log.read_bytes().splitlines()
    arrived = [bytes.fromhex(line[:-1].decode()) for line in lines if line.endswith(END)]
    sealed = [body for (body,) in rows(folder, "SELECT body FROM uploads")]
    for body in (*arrived, *sealed):
        bodies[json.loads(body)["id"]].add(body)
    reports = set(rows(folder, "SELECT digest, epoch, payload FROM reports"))
    reports |= {report for (body, *_) in bodies.values() for report in reports_of(body)}
    charges = set(rows(folder, "SELECT digest, epoch FROM charges"))
    costs = rows(folder, "SELECT nano, last FROM costs")
    weeks = [
        sum(nano for nano, day in costs if last - WEEK < day <= last)
        for last in {day for _, day in costs}
    ]
    assert len(arrived) > kills // 10
    assert all(len(same) == 1 for same in bodies.values())
    assert len(reports) == len(charges)
    assert {(digest, epoch) for digest, epoch, _ in reports} == charges
    assert max(weeks) <= CAPS.week
    assert rows(folder, "PRAGMA integrity_check") == [("ok",)]
