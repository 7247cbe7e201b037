"""Devices that took part are counted exactly by epoch, and bounded beyond."""

from __future__ import annotations

import numpy as np

from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import exact


def days(*counts: int) -> list[Slice]:
    return [exact({"time": f"2026-03-0{i + 1}"}, 0.2, n, i) for i, n in enumerate(counts)]


def test_the_bounds_hold_whatever_devices_did() -> None:
    """Of 200 populations that report on days of their own choice."""
    chance = np.random.default_rng(20261121)
    for _ in range(200):
        devices, habit = int(chance.integers(100, 400)), chance.random()
        reported = chance.random((5, devices)) < habit
        per_day = reported.sum(axis=1).tolist()
        distinct = int(reported.any(axis=0).sum())
        one = exact({"time": "2026-03"}, 0.2, sum(per_day), *range(5))
        several = days(*(100 + n for n in per_day))  # each above the least

        (row,) = ask("actives", [one]).rows if one.n >= 100 else (None,)
        whole = ask("actives", several).rows[-1]

        assert row is None or (row.ci_low or 0) <= distinct <= (row.ci_high or 0)
        assert (whole.ci_low or 0) <= distinct + 100 <= (whole.ci_high or 0)
