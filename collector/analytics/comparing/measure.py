"""One number an item of a slice, with the variance that tests of differences need.  Pure.

Two populations can be meant.  Of the devices that *reported*, only the noise is uncertain.  To tell
whether something changed, or whether a treatment works, which devices happened to report is chance,
too: for devices *drawn* at random the spread of their true values is added.  Reports of numbers
hold noise and spread together, so there it is their sample variance.

Where n reports are of E epochs, a device has made up to E of them.  Its value may be the same in
all, and so may be the noise of a metric that repeats responses: beside other devices both count as
n / E reports.  That is a bound, since the variance of a sum of groups of at most E alike is at most
E times that of independent ones.  Beside the same devices at another time what is alike cancels;
there reports count as n, as if each epoch had drawn its devices anew.  That is too few where
devices stay for long and then leave, and too many where they stay for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from client_sdk.domains import ItemDomain, KeyValueDomain, NumberDomain, listed
from client_sdk.mechanisms import KeyValueMechanism
from client_sdk.metric import Metric

from ...errors import QueryError
from ...estimate import Estimate, key_shares, mean, shares
from ..answer import MEAN
from ..repeats import widened
from ..rows import SHARE
from ..slices import Slice

Population: TypeAlias = Literal["drawn", "reported"]
DRAWN: Final = "drawn"


@dataclass(frozen=True)
class Number:
    """An unbiased *value* with its *variance*, made of *n* reports."""

    value: float
    variance: float
    n: int


@dataclass(frozen=True)
class Scatter:
    """Variances of one report: of its *noise*, of true *values* at most, and of both together."""

    noise: float
    values: float
    reports: float


def refusal(metric: Metric) -> str | None:
    """Return why *metric* has no numbers to follow or compare, or None."""
    if isinstance(metric.domain, ItemDomain | KeyValueDomain | NumberDomain):
        return None
    return "has neither items nor numbers; declare a category, a boolean or a number"


def unit_of(metric: Metric) -> str:
    """Return the unit of the numbers of *metric*."""
    return metric.domain.unit if isinstance(metric.domain, NumberDomain) else SHARE


def items_of(metric: Metric, wanted: str | None, most: int) -> tuple[str, ...]:
    """Return the item that is *wanted*; without one all, of a boolean "true".

    Raises: QueryError: names ``options.item``: no item of the metric, or more than *most* are left.
    """
    labels = _labels(metric)
    if wanted is not None:
        if wanted not in labels:
            raise QueryError(f"options.item: must be one of: {listed(labels)}")
        return (wanted,)
    boolean = isinstance(metric.domain, ItemDomain) and metric.domain.boolean
    shown = labels[1:] if boolean else labels  # "false" is the rest
    if len(shown) > most:
        rule = f"must name one of the {len(shown)} items; at most {most} are taken together"
        raise QueryError(f"options.item: {rule}")
    return shown


def place_of(metric: Metric, item: str) -> int:
    """Return the place of *item* among all of *metric*."""
    return _labels(metric).index(item)


def estimates_of(one: Slice, alpha: float) -> Mapping[str, Estimate]:
    """Return the number of every item of a slice with n > 0, as a row shows it.

    It holds for the devices that reported; errors allow for noise that reports repeat.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    found = independent(one, alpha)
    return dict(zip(found, widened(one, list(found.values())), strict=True))


def independent(one: Slice, alpha: float) -> Mapping[str, Estimate]:
    """Return the number of every item of a slice with n > 0, as if no two reports shared noise.

    ``variance_if`` counts what they share.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    domain, mechanism = one.metric.domain, one.metric.mechanism
    if isinstance(domain, NumberDomain):
        return {MEAN: mean(mechanism, domain, one.tally, one.n, alpha)}
    if isinstance(mechanism, KeyValueMechanism):
        found = key_shares(mechanism, one.tally, one.n, alpha)
    else:
        found = shares(mechanism, one.tally, one.n, alpha)
    return dict(zip(_labels(one.metric), found, strict=True))


def numbers_of(
    one: Slice, items: Sequence[str], population: Population, *, in_time: bool
) -> Mapping[str, Number]:
    """Return the numbers of *items* of a slice with n > 0, as they scatter in a *population*.

    Args: in_time: to be compared with another time, rather than with other devices.
    """
    scatters = scatters_of(one, items)
    return {
        item: Number(value, variance_if(one, scatter, population, in_time=in_time), one.n)
        for item, (value, scatter) in scatters.items()
    }


def scatters_of(one: Slice, items: Sequence[str]) -> Mapping[str, tuple[float, Scatter]]:
    """Return the unbiased number of each of *items* of a slice with n > 0, and its scatter.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    found = independent(one, 0.5)  # any level: no interval is used
    return {item: (found[item].value, _scatter(one, found[item])) for item in items}


def variance_if(one: Slice, scatter: Scatter, population: Population, *, in_time: bool) -> float:
    """Return the variance of a number of *one*, were its reports to *scatter* like this.

    Args: in_time: as above.
    """
    repeats = 1 if in_time else max(len(one.epochs), 1)
    of_noise = repeats if one.metric.policy else 1
    if population != DRAWN:
        return of_noise * scatter.noise / one.n
    again = (of_noise - 1) * scatter.noise + (repeats - 1) * scatter.values
    return (scatter.reports + again) / one.n


def _scatter(one: Slice, found: Estimate) -> Scatter:
    """Return how the reports behind the number *found* scatter, whose noise is independent."""
    noise = found.std_error**2 * one.n
    if not isinstance(one.metric.domain, NumberDomain):
        spread = max(found.value * (1 - found.value), 0.0)  # of shares this is the variance
        return Scatter(noise, spread, noise + spread)
    mechanism: Any = one.metric.mechanism
    step = float(one.metric.domain.step) ** 2
    reports, positions = mechanism.scatter(one.tally, one.n, np)
    return Scatter(noise, positions * step, max(reports * step, noise))


def _labels(metric: Metric) -> tuple[str, ...]:
    """Return what ``estimates_of`` has numbers of."""
    domain = metric.domain
    if isinstance(domain, KeyValueDomain):
        return domain.keys.labels
    return domain.labels if isinstance(domain, ItemDomain) else (MEAN,)
