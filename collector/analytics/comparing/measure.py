"""One number an item of a slice, with the variance that tests of differences need.  Pure.

Of a funnel it is the share that reached each step, and of a retention the share of those active in
the first period that came back in each later one: what the verbs of these names tell.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from client_sdk.mechanisms import KeyValueMechanism, Reach
from client_sdk.registry.domains import listed
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...estimation.estimate import Estimate, key_shares, mean, shares
from ..answer import MEAN
from ..poisoning.influence import mean_reach
from ..sums import is_joined, joined, joined_reach, unsure
from ..suppression import too_few
from ..verb import Slice, widened

Population: TypeAlias = Literal["drawn", "reported"]
DRAWN: Final = "drawn"
_ANY: Final = 0.5  # level of intervals that nobody uses


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
    if metric.domain.labels or metric.domain.grid:
        return None
    return "has neither items nor numbers; declare a category, a boolean or a number"


def items_of(metric: Metric, wanted: str | None, most: int) -> tuple[str, ...]:
    """Return the item that is *wanted*; without one all, of a boolean "true".

    Raises: QueryError: names ``options.item``: no item of the metric, or more than *most* are left.
    """
    labels = _labels(metric)
    if wanted is not None:
        if wanted not in labels:
            raise QueryError(f"options.item: must be one of: {listed(labels)}")
        return (wanted,)
    shown = metric.domain.answer_items() if labels == metric.domain.labels else labels
    if len(shown) > most:
        rule = f"must name one of the {len(shown)} items; at most {most} are taken together"
        raise QueryError(f"options.item: {rule}")
    return shown


def reach_of(metric: Metric, item: str) -> Reach | None:
    """Return how far a fake report reaches on the number of *item*; None if it is not known."""
    if metric.domain.grid:
        return mean_reach(metric.mechanism, metric.domain.grid)
    if is_joined(metric.domain):
        return joined_reach(metric, item)
    return metric.mechanism.share_reach(_labels(metric).index(item), np)


def askable(slices: Iterable[Slice]) -> list[Slice]:
    """Return *slices*, those refused of which no number can be told."""
    return [replace(part, refusal=part.refusal or why_none(part)) for part in slices]


def why_none(one: Slice) -> str | None:
    """Return why a slice has no number to compare; None if it has."""
    return too_few(one.metric, one.n) or unsure(one)


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
    if is_joined(domain):
        return {label: found.estimate for label, found in joined(one, alpha).items()}
    if domain.grid:
        return {MEAN: mean(mechanism, domain.grid, one.tally, one.n, alpha)}
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
    if is_joined(one.metric.domain):
        of_all = joined(one, _ANY)
        parts = {item: of_all[item] for item in items}
        return {item: (found.value, _of_share(one, found, w)) for item, (found, w) in parts.items()}
    found = independent(one, _ANY)
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
    grid = one.metric.domain.grid
    if grid is None:
        return _of_share(one, found)
    noise = found.std_error**2 * one.n
    mechanism: Any = one.metric.mechanism
    step = float(grid.step) ** 2
    reports, positions = mechanism.scatter(one.tally, one.n, np)
    return Scatter(noise, positions * step, max(reports * step, noise))


def _of_share(one: Slice, found: Estimate, part: float = 1.0) -> Scatter:
    """Return how the reports behind a share scatter that is of this *part* of the devices.

    Derived: the share r of a part w is the mean of (a - r b)/w over all devices, b being whether
    one is of the part and a whether it is of the share, too; its variance is r(1-r)/w.
    """
    noise = found.std_error**2 * one.n
    spread = max(found.value * (1 - found.value), 0.0) / part
    return Scatter(noise, spread, noise + spread)


def _labels(metric: Metric) -> tuple[str, ...]:
    """Return what ``estimates_of`` has numbers of."""
    return metric.domain.compared or metric.domain.labels or (MEAN,)
