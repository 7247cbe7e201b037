"""The demo's intervals cover at their rate, whatever people and noise a run draws."""

from __future__ import annotations

import json
import subprocess
import sys
from math import comb
from typing import Any

import pytest

RUNS = 4
PORT = 8878
INTERVALS = 32  # of a run
LEVEL = 0.95
FALSE_ALARM = 1e-9  # of the whole test, taking the intervals of a run as independent


def run_once() -> dict[str, Any]:
    """Run the demo once and return its document."""
    command = [sys.executable, "-m", "collector", "demo", "--once", "--json", "--port", str(PORT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def least_covered(intervals: int, level: float = LEVEL) -> int:
    """Return the largest count that honest intervals miss with at most FALSE_ALARM."""
    below, count = 0.0, 0
    while True:
        below += comb(intervals, count) * level**count * (1 - level) ** (intervals - count)
        if below > FALSE_ALARM:
            return count
        count += 1


def test_intervals_of_half_the_width_would_be_noticed() -> None:
    intervals = INTERVALS * RUNS
    half_width_level = 0.673  # a normal estimate lies within 0.98 standard errors this often

    assert half_width_level * intervals < least_covered(intervals)


@pytest.mark.slow
def test_intervals_of_demo_runs_with_fresh_noise_cover_the_truth() -> None:
    runs = [run_once()["covered"] for _ in range(RUNS)]

    covered, intervals = (sum(run[key] for run in runs) for key in ("yes", "of"))
    assert intervals == INTERVALS * RUNS
    assert covered >= least_covered(intervals)
