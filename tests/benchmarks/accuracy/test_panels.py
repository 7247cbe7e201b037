"""Twelve metrics from the devices of a gateway to the query: shares, and intervals of all devices.

The benchmark ``panels`` has the figures; here are 600 devices, and 14 weeks.
"""

from __future__ import annotations

from typing import Final

from benchmarks.accuracy.panels import (
    collected,
    covered,
    of_reporters,
    registry,
    reports,
    values_of,
)

DEVICES: Final = 600
WEEKS: Final = 14
SIGMAS: Final = 6.5  # two-sided false alarms below 1e-10 a share
MOST_MISSES: Final = 36  # of 168; false alarms are below 1e-9 where 6 % miss, and where 45 % do


def test_a_panel_draws_its_shares_and_intervals_hold_the_truth_of_all_devices() -> None:
    """Law: where reports are exact, near enough, what moves answers is who was drawn."""
    metrics = registry(epsilons=("4",), weights=(1,), week="24")
    values = values_of(metrics, DEVICES)
    storage = collected(metrics, values, WEEKS)
    counts, draws = reports(metrics, storage), DEVICES * WEEKS
    ours, theirs = (covered(of, storage, values, WEEKS) for of in (metrics, of_reporters(metrics)))

    for metric in metrics:
        share = metric.sample.share
        error = (share * (1 - share) / draws) ** 0.5
        assert abs(share - 1 / 4) < 1e-6
        assert abs(counts[metric.name] / draws - share) <= SIGMAS * error
    assert sum(c.intervals for c in ours.values()) == 12 * WEEKS
    assert sum(c.intervals - c.held for c in ours.values()) <= MOST_MISSES
    assert sum(c.intervals - c.held for c in theirs.values()) > MOST_MISSES  # the planted bug
