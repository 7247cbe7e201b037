"""Rows of an answer with what fake devices could do to each.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import DistributionMechanism, KeyValueMechanism
from client_sdk.registry.domains import MEAN_OF, NumberDomain
from client_sdk.registry.metric import Metric

from ..numbers.distribution import QUANTILES
from ..rows import ITEM, SHARE, Row
from .influence import FAKES, moved, quantiles_moved, weight
from .reach import key_mean_reach, mean_reach

MEANS: Final = ("mean", "")  # what the mean of numbers is called in answers


def with_influence(rows: Sequence[Row], metric: Metric, tally: Any = None) -> tuple[Row, ...]:
    """Return *rows* of estimates with how far FAKES of all reports could move each.

    Args: tally: of the one slice that all rows are of, for the quantiles of a distribution;
          without it, and where no bound is known, a row has none.
    """
    grid = metric.domain.grid
    found = dict(_of_numbers(rows, metric, grid, tally) if grid else _of_items(rows, metric))
    return tuple(_with(row, found.get(i)) for i, row in enumerate(rows))


def _with(row: Row, influence: float | None) -> Row:
    """Return a copy of *row* with *influence*; ``replace`` takes ten times as long."""
    made = object.__new__(Row)
    vars(made).update(vars(row), influence=influence)
    return made


def _of_numbers(
    rows: Sequence[Row], metric: Metric, domain: NumberDomain, tally: Any
) -> Iterator[tuple[int, float]]:
    """Yield the place and the influence of means, and of quantiles if there is a tally."""
    mechanism, quantiles = metric.mechanism, dict[str, float]()
    shown = any(row.value is not None and row.item in QUANTILES for row in rows)
    if shown and tally is not None and isinstance(mechanism, DistributionMechanism):
        steps = quantiles_moved(mechanism, tally, int(np.sum(tally)), tuple(QUANTILES.values()))
        quantiles = dict(zip(QUANTILES, (float(domain.step) * s for s in steps), strict=True))
    reach = mean_reach(mechanism, domain)
    for i, row in enumerate(rows):
        if row.value is None:
            continue
        if row.item in quantiles:
            yield i, quantiles[row.item]
        elif row.item in MEANS and reach is not None:
            yield i, moved(reach, row.value)


def _of_items(rows: Sequence[Row], metric: Metric) -> Iterator[tuple[int, float]]:
    """Yield the place and the influence of shares, and of the means of keys."""
    domain, mechanism = metric.domain, metric.mechanism
    numbers = domain.numbers
    held = {_place(row): row.value for row in rows if row.unit == SHARE} if numbers else {}
    places = {label: place for place, label in enumerate(domain.labels)}
    reach_of = cache(partial(mechanism.share_reach, np=np))
    for i, row in enumerate(rows):
        if row.value is None:
            continue
        if row.unit == SHARE and row.item in places:
            if reach := reach_of(places[row.item]):
                yield i, moved(reach, row.value)
        elif numbers and isinstance(mechanism, KeyValueMechanism):
            share = held.get(_place(row, row.item.removeprefix(MEAN_OF))) or 0.0
            yield i, _of_key_mean(row.value, mechanism, numbers, share)


def _place(row: Row, item: str | None = None) -> frozenset[tuple[str, str]]:
    """Return the dimensions of *row*, or those of *item* in the same slice."""
    return frozenset({**row.dimensions, ITEM: row.item if item is None else item}.items())


def _of_key_mean(
    value: float, mechanism: KeyValueMechanism, numbers: NumberDomain, share: float
) -> float:
    """Return the influence on the mean of a key, which is cut off at the range as the mean is."""
    low, high = float(numbers.minimum), float(numbers.maximum)
    reach = key_mean_reach(mechanism, numbers, share)
    if reach is None:  # nobody holds the key: fakes alone make the mean
        return max(high - value, value - low)
    part = weight(reach, FAKES)
    ends = (value + part * (end - value) for end in (reach.low, reach.high))
    return max(abs(min(max(end, low), high) - value) for end in ends)
