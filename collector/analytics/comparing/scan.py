"""Where a series of numbers over time changed, if it did: a scan of its splits.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from ...estimation.arrays import Floats
from ...estimation.significance import any_of, chi_square_tail
from ..verb import Slice, each_definition, merged
from .numbers import (
    Number,
    Population,
    Scatter,
    numbers_of,
    scatters_of,
    together,
    variance_if,
)


@dataclass(frozen=True)
class Scan:
    """Where a series is split best, and the chances to look so, had nothing changed."""

    place: int  # the first stretch after the split
    p_value: float  # of the split, all splits counted
    constant_p: float  # of all deviations together
    before: Number
    after: Number


def scans_of(
    parts: Sequence[Slice], items: Sequence[str], population: Population
) -> Mapping[str, Scan]:
    """Return the scan of each item over at least two stretches, none of them refused.

    Raises: InvalidTallyError: a tally cannot have come from its reports.
    """
    laws = {
        whole.metric.digest: scatters_of(whole, items)
        for whole in each_definition(merged(parts, {}))
    }
    each = [numbers_of(part, items, population, in_time=True) for part in parts]
    scans = {}
    for item in items:
        scatters = {digest: of_all[item][1] for digest, of_all in laws.items()}
        numbers = [of_all[item] for of_all in each]
        variances = [_variance_in_time(part, scatters, population) for part in parts]
        place, p_value, constant_p = scan([number.value for number in numbers], variances)
        sides = together(numbers[:place]), together(numbers[place:])
        scans[item] = Scan(place, p_value, constant_p, *sides)
    return scans


def _variance_in_time(
    part: Slice, scatters: Mapping[bytes, Scatter], population: Population
) -> float:
    """Return the variance of a number of *part*, were the reports of each definition as stated."""
    squares = (
        each.n**2 * variance_if(each, scatters[each.metric.digest], population, in_time=True)
        for each in each_definition(part)
    )
    return sum(squares) / part.n**2


def scan(values: Sequence[float], variances: Sequence[float]) -> tuple[int, float, float]:
    """Return where independent *values*, at least two, differ most before and after.

    The split whose sides are furthest apart, in standard errors, is where a single step would be
    most likely; its p-value counts that the furthest of all was taken.  Beside it, the sum of
    squared deviations from the common mean tests any kind of change.  Errors are those that the
    common mean would leave: if they followed each stretch's own number, low ones would weigh more.

    Returns: the first place after the split, its p-value with all splits counted, and the p-value
             of all deviations from the common mean together.
    Source:  Page, Biometrika 1954: cumulative sums; Šidák, JASA 1967: the inequality by which the
             splits may be counted as if they were independent; the weights are derived here.
    """
    weights = 1 / np.array(variances)
    apart = _deviations(np.array(values), weights)
    sides = np.cumsum(weights)[:-1]
    total = weights.sum()
    # before less after, by its standard error: the cumulative sum over its own
    scores = np.abs(np.cumsum(weights * apart)[:-1]) / np.sqrt(sides * (total - sides) / total)
    place = int(scores.argmax())
    alone = erfc(float(scores[place]) / sqrt(2))
    of_all = chi_square_tail(float(weights @ apart**2), len(values) - 1)
    return place + 1, any_of(alone, len(scores)), of_all


def _deviations(values: Floats, weights: Floats) -> Floats:
    """Return *values* less their common mean."""
    mean = float(weights @ values / weights.sum())
    return values - mean
