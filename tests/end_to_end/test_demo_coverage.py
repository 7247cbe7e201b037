"""The demo's intervals cover at their rate, whatever people and noise a run draws."""

from __future__ import annotations

from math import comb

import pytest

from benchmarks.accuracy.demo_coverage import run_once

RUNS = 4
INTERVALS = 32  # of a run
LEVEL = 0.95
FALSE_ALARM = 1e-9  # of the whole test, taking the intervals of a run as independent


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
    runs = [run_once(port=8878)["covered"] for _ in range(RUNS)]

    covered, intervals = (sum(run[key] for run in runs) for key in ("yes", "of"))
    assert intervals == INTERVALS * RUNS
    assert covered >= least_covered(intervals)
