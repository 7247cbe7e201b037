"""A heartbeat is fresh after a beat, and stale when it is old or was never there."""

from __future__ import annotations

import os
import time
from pathlib import Path

from collector.operations.processes import STALE_AFTER, Heartbeat, is_fresh


def test_a_file_just_beaten_is_fresh(tmp_path: Path) -> None:
    Heartbeat(tmp_path / "beat").beat()

    assert is_fresh(tmp_path / "beat")


def test_a_file_that_was_never_beaten_is_not_fresh(tmp_path: Path) -> None:
    assert not is_fresh(tmp_path / "beat")


def test_a_beat_goes_stale_and_the_next_renews_it(tmp_path: Path) -> None:
    path = tmp_path / "beat"
    heart = Heartbeat(path)
    heart.beat()
    old = time.time() - STALE_AFTER - 1
    os.utime(path, (old, old))

    before = is_fresh(path)
    heart.beat()

    assert not before
    assert is_fresh(path)
