"""Whether groups reported over the same days: if not, change in time may show as difference.  Pure.

Two versions may be alike on every day, and yet differ over a month in which all numbers fell and
users moved from one to the other.  How many reports a group has of each epoch is known exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt
from typing import Final

from ...core.remarks import Code, Remark, remark
from ..verb import Slice
from .differences import Pair
from .numbers import stretches_of

APART: Final = 0.1  # of the reports: a difference in when they came that is worth a warning
CHANCE: Final = 1e-3  # with which two groups of independent reports come further apart by luck


def uneven(first: Mapping[int, int], second: Mapping[int, int]) -> bool:
    """Return whether two groups with so many reports by epoch reported at different times.

    The largest difference of the shares up to an epoch must pass both APART and what luck makes,
    which the intervals hold already.  Groups that are alike in each epoch differ over all by at
    most this difference times the way that their number goes up and down: up to APART, a change
    over time by 10 points shows as a difference of 1 point at most, and is no matter.

    Source: Smirnov, Annals of Mathematical Statistics 1948: the limit law of this difference.
    """
    n, m = sum(first.values()), sum(second.values())
    if min(n, m) <= 0:
        return False
    most = max(APART, sqrt(log(2 / CHANCE) / 2 * (n + m) / (n * m)))
    up_to = 0.0
    for epoch in sorted({*first, *second}):
        up_to += first.get(epoch, 0) / n - second.get(epoch, 0) / m
        if abs(up_to) > most:
            return True
    return False


def of_pairs(pairs: Iterable[Pair]) -> tuple[Remark, ...]:
    """Return what to say of *pairs* of groups, none of which is a stretch of time."""
    answered = (pair for pair in pairs if pair.refusal is None)
    is_uneven = any(uneven(pair.first.reports, pair.second.reports) for pair in answered)
    return (remark(Code.UNEVEN),) if is_uneven else ()


def of_groups(slices: Sequence[Slice]) -> tuple[Remark, ...]:
    """Return what to say of groups that stand beside one another within each stretch of time."""
    return (remark(Code.UNEVEN),) if any(map(_any_uneven, stretches_of(slices))) else ()


def _any_uneven(group: Sequence[Slice]) -> bool:
    """Return whether a group with a number reported at other times than all others together."""
    whole = Counter[int]()
    for part in group:
        whole.update(part.reports)
    return any(
        uneven(part.reports, whole - Counter(part.reports))
        for part in group
        if part.refusal is None
    )
