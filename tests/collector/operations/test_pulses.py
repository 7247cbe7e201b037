"""A process that no longer beats is found; one that is slow, new or gone is not."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from collector.operations.pulses import MISSES, STARTING, Pulses

PID = 7


@pytest.mark.parametrize(
    ("beats", "is_silent"),
    [
        ([True] * 3 * MISSES, False),
        ([True, *[False] * (MISSES - 1)] * 3, False),
        ([True, *[False] * MISSES], True),
        ([False] * STARTING, False),
        ([False] * (STARTING + 1), True),
    ],
    ids=["beats", "slow", "silent", "starting", "never started"],
)
def test_a_process_is_silent_after_so_many_looks_without_a_beat(
    tmp_path: Path, beats: Sequence[bool], is_silent: bool
) -> None:
    pulses = Pulses(tmp_path)
    for number, has_beaten in enumerate(beats):
        if has_beaten:
            (tmp_path / str(PID)).touch()
            os.utime(tmp_path / str(PID), ns=(number + 1, number + 1))  # of whatever clock
        found = pulses.silent([PID])

    assert found == [PID] * is_silent


def test_where_no_file_can_be_touched_none_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk, where a process that beats cannot show it."""
    pulses = Pulses(tmp_path)
    (tmp_path / str(PID)).touch()
    pulses.silent([PID])

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "touch", refuse)

    assert not any(pulses.silent([PID]) for _ in range(3 * MISSES))


def test_a_process_id_that_is_used_again_begins_anew(tmp_path: Path) -> None:
    pulses = Pulses(tmp_path)
    (tmp_path / str(PID)).touch()
    for _ in range(MISSES):
        pulses.silent([PID])

    assert pulses.silent([]) == []
    assert pulses.silent([PID]) == []
