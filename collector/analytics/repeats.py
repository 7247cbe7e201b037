"""Reports that repeat their noise: those of a permanent response, asked for again.  Pure.

A device that sends the same payload in every epoch says no more in E reports than in one.  Where n
reports are of E epochs, they are groups of at most E alike, and the variance of a sum of such is at
most E times that of independent ones: errors are at most sqrt(E) times as large.  Responses of two
layers repeat in part, for which this is a bound, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from ..estimation.estimate import Estimate
from .slices import Slice


def repeats_of(one: Slice) -> int:
    """Return how many reports of a slice may share their noise."""
    return 1 if one.metric.policy is None else max(len(one.epochs), 1)


def widened(one: Slice, estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return *estimates* of a slice, which took its reports for independent, with their errors."""
    factor = sqrt(repeats_of(one))
    return [
        Estimate(
            found.value,
            factor * found.std_error,
            found.value - factor * (found.value - found.ci_low),
            found.value + factor * (found.ci_high - found.value),
        )
        for found in estimates
    ]
