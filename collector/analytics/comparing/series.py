"""A number over time: whether it changed by more than chance, and where most likely.  Pure.

A series of stretches with independent errors is split everywhere once.  The split whose sides are
furthest apart, in standard errors, is where a single step would be most likely; its p-value counts
that the furthest of all was taken.  Beside it, the sum of squared deviations from the common mean
tests any kind of change, not only a step.

Errors are those that the common mean would leave, for if they followed each stretch's own number,
low numbers would weigh more.

Source: Page, Biometrika 1954: cumulative sums; Šidák, JASA 1967: the inequality by which the splits
    may be counted as if they were independent; the weights and errors are derived here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Any

import numpy as np

from ...estimation.significance import any_of, chi_square_tail
from ..rows import TIME
from ..verb import Slice, merged
from .numbers import Number, Population, numbers_of, scatters_of, variance_if


@dataclass(frozen=True)
class Scan:
    """Where a series is split best, and the chances to look so, had nothing changed."""

    place: int  # the first stretch after the split
    p_value: float  # of the split, all splits counted
    constant_p: float  # of all deviations together
    before: Number
    after: Number


def series_of(slices: Sequence[Slice]) -> Iterator[tuple[Slice, ...]]:
    """Yield the slices that differ in time only, in its order."""
    groups: dict[tuple[tuple[str, str], ...], list[Slice]] = {}
    for part in slices:
        groups.setdefault(tuple(others(part, TIME).items()), []).append(part)
    for parts in groups.values():
        yield tuple(sorted(parts, key=lambda part: part.dimensions[TIME]))


def others(part: Slice, name: str) -> dict[str, str]:
    """Return the dimensions of *part* other than *name*."""
    return {key: value for key, value in part.dimensions.items() if key != name}


def scans_of(
    parts: Sequence[Slice], items: Sequence[str], population: Population
) -> Mapping[str, Scan]:
    """Return the scan of each item over at least two stretches, none of them refused.

    Raises: InvalidTallyError: a tally cannot have come from its reports.
    """
    common = scatters_of(merged(parts, {}), items)
    each = [numbers_of(part, items, population, in_time=True) for part in parts]
    scans = {}
    for item in items:
        _, scatter = common[item]
        numbers = [of_all[item] for of_all in each]
        variances = [variance_if(part, scatter, population, in_time=True) for part in parts]
        place, p_value, constant_p = scan([number.value for number in numbers], variances)
        sides = _together(numbers[:place]), _together(numbers[place:])
        scans[item] = Scan(place, p_value, constant_p, *sides)
    return scans


def scan(values: Sequence[float], variances: Sequence[float]) -> tuple[int, float, float]:
    """Return where independent *values*, at least two, differ most before and after.

    Returns: the first place after the split, its p-value with all splits counted, and the p-value
             of all deviations from the common mean together.
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


def _deviations(values: Any, weights: Any) -> Any:
    """Return *values* less their common mean."""
    return values - weights @ values / weights.sum()


def _together(numbers: Sequence[Number]) -> Number:
    """Return independent *numbers* as one, weighted by reports."""
    n = sum(number.n for number in numbers)
    value = sum(number.n * number.value for number in numbers) / n
    return Number(value, sum(number.n**2 * number.variance for number in numbers) / n**2, n)
