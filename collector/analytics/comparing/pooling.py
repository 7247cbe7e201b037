"""Numbers of many segments, each drawn towards the mean of all as far as noise explains it.  Pure.

A number of few reports is far from the others mostly by noise.  How much the true numbers differ is
estimated from how much more the unbiased ones differ than their errors would make them; each is
then moved so as to make the least error over all segments together.  The moved numbers are biased:
a single segment that truly stands out is drawn in, too.  Intervals stay those of the raw numbers.

Source: DerSimonian, Laird, Controlled Clinical Trials 1986, eq. 8: the variance between segments.
    Efron, Morris, JASA 1975: estimates that are drawn towards a common mean, and their risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

POOLED: Final = "pooled"
LEAST: Final = 3  # segments; of fewer, nothing is known of how much they differ


@dataclass(frozen=True)
class Pooled:
    """The moved *values*, their common *mean*, and the variance *between* true numbers."""

    values: tuple[float, ...]
    mean: float
    between: float


def pooled(values: Sequence[float], variances: Sequence[float]) -> Pooled | None:
    """Return *values* with known, positive *variances* drawn together; None of fewer than LEAST."""
    if len(values) < LEAST:
        return None
    raw, errors = np.array(values), np.array(variances)
    between = _between(raw, errors)
    weights = 1 / (errors + between)
    mean = float(weights @ raw / weights.sum())
    moved = mean + between * weights * (raw - mean)
    return Pooled(tuple(moved.tolist()), mean, between)


def _between(raw: Any, errors: Any) -> float:
    """Return the variance between true numbers, 0 if errors explain all."""
    weights = 1 / errors
    total = weights.sum()
    apart = weights @ (raw - weights @ raw / total) ** 2
    return max(0.0, float((apart - (raw.size - 1)) / (total - (weights @ weights) / total)))
