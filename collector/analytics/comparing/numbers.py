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
E times that of independent ones.  Reports do not show whether devices come back, so a question may
say that they do not: of *new* devices in each epoch nothing is alike.  Beside the same devices at
another time what is alike cancels; there reports count as n, as if each epoch had drawn its devices
anew.  That is too few where devices stay for long and then leave, and too many where they stay for
good.  Where a panel draws others for each week, or four, those of one draw stay for its epochs:
their spread counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from client_sdk.core.epoch import LENGTHS
from client_sdk.mechanisms import KeyValueMechanism, Reach, VectorMechanism
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import listed

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ...estimation.estimate import (
    Estimate,
    coordinates,
    is_pure,
    key_shares,
    mean,
    shares,
    shares_of_each,
)
from ..answer import MEAN
from ..poisoning.influence import mean_reach
from ..rows import TIME, Row
from ..sums import is_joined, joined, joined_reach, unsure
from ..suppression import too_few
from ..verb import (
    Slice,
    alike,
    devices_of,
    draw_law,
    each_definition,
    mean_of_drawn,
    named,
    refused_rows,
    rows_of,
    widened,
)

Population: TypeAlias = Literal["drawn", "new", "reported"]
DRAWN: Final = "drawn"
NEW: Final = "new"
REPORTED: Final = "reported"
_ANY: Final = 0.5  # level of intervals that nobody uses
_KEPT: Final = "_independent"  # where a slice keeps its level and estimates; a copy has none


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


def items_of(
    metric: Metric, item: str | None, most: int, field: str = "options.item"
) -> tuple[str, ...]:
    """Return the item that is *item*; without one all, of a boolean "true".

    Raises: QueryError: names *field*: no item of the metric, or more than *most* are left.
    """
    labels = _labels(metric)
    if item is not None:
        if item not in labels:
            raise QueryError(field, f"must be one of: {listed(labels)}")
        return (item,)
    items = metric.domain.answer_items() if labels == metric.domain.labels else labels
    if len(items) > most == 1:
        raise QueryError(field, f"must be one of: {listed(items)}")
    if len(items) > most:
        rule = f"must name one of the {len(items)} items; at most {most} are taken together"
        raise QueryError(field, rule)
    return items


def reach_of(metric: Metric, item: str) -> Reach | None:
    """Return how far a fake report reaches on the number of *item*; None if it is not known."""
    if metric.domain.grid:
        return mean_reach(metric.mechanism, metric.domain.grid)
    if is_joined(metric.domain):
        return joined_reach(metric, item)
    reach = metric.mechanism.share_reach(_labels(metric).index(item), np)
    return reach and reach.in_unit(metric.domain.extent, metric.domain.least)


def askable(slices: Iterable[Slice]) -> list[Slice]:
    """Return *slices*, those refused of which no number can be told."""
    return [
        replace(part, refusal=reason) if not part.refusal and (reason := why_none(part)) else part
        for part in slices
    ]


def why_none(part: Slice) -> Remark | None:
    """Return why a slice has no number to compare; None if it has."""
    return too_few(part.metric, part.n) or unsure(part)


def number_rows(
    part: Slice,
    items: Sequence[str],
    alpha: float,
    level: float,
    notes: Sequence[Remark] = (),
    *,
    simultaneous: bool = False,
) -> list[Row]:
    """Return a row for each of *items* of a slice, or why it has none.

    Args: alpha: that rows name.  level: 1 - that of each interval.  notes: of rows with numbers.
    """
    names, unit = named(items), part.metric.domain.unit
    if part.refusal is not None:
        return refused_rows(part, names, alpha, unit)
    estimates = estimates_of(part, level)
    numbers = [estimates[item] for item in items]
    return rows_of(part, names, numbers, alpha, unit, notes=notes, simultaneous=simultaneous)


def estimates_of(part: Slice, alpha: float) -> Mapping[str, Estimate]:
    """Return the number of every item of a slice with n > 0, as a row shows it.

    It holds for the devices that reported; errors allow for noise that reports repeat.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    if part.definitions:
        return _of_all(part, [estimates_of(each, alpha) for each in part.definitions], alpha)
    if is_joined(part.metric.domain):
        groups = joined(part, alpha)
        return {
            label: widened(part, [group.estimate], alpha, group.part)[0]
            for label, group in groups.items()
        }
    estimates = independent(part, alpha)
    return dict(zip(estimates, widened(part, list(estimates.values()), alpha), strict=True))


def estimate_together(parts: Sequence[Slice], alpha: float) -> None:
    """Have slices of one metric keep what ``independent`` returns, worked out at once.

    Raises: InvalidTallyError: a tally cannot have come from its reports.
    """
    by_definition: dict[bytes, list[Slice]] = {}
    for each in (each for part in parts if part.refusal is None for each in each_definition(part)):
        if _KEPT not in vars(each):
            by_definition.setdefault(each.metric.digest, []).append(each)
    for lacking in by_definition.values():
        metric, mechanism = lacking[0].metric, lacking[0].metric.mechanism
        if is_joined(metric.domain) or metric.domain.grid or not is_pure(mechanism):
            continue
        tallies = [(part.tally, part.n) for part in lacking]
        by_slice = shares_of_each(mechanism, tallies, alpha)
        for part, estimates in zip(lacking, by_slice, strict=True):
            named = dict(zip(_labels(metric), estimates, strict=True))
            vars(part)[_KEPT] = alpha, named


def independent(part: Slice, alpha: float) -> Mapping[str, Estimate]:
    """Return the number of every item of a slice with n > 0, as if no two reports shared noise.

    ``variance_if`` counts what they share.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    if part.definitions:
        return _of_all(part, [independent(each, alpha) for each in part.definitions], alpha)
    if is_joined(part.metric.domain):
        return {label: estimates.estimate for label, estimates in joined(part, alpha).items()}
    if vars(part).get(_KEPT, (None,))[0] != alpha:
        vars(part)[_KEPT] = alpha, _independent(part, alpha)
    known: Mapping[str, Estimate] = vars(part)[_KEPT][1]
    return known


def _of_all(
    part: Slice, separate: Sequence[Mapping[str, Estimate]], alpha: float
) -> Mapping[str, Estimate]:
    """Return *separate* numbers, one a definition, as one, weighted by devices."""
    weights = [devices_of(each) for each in part.definitions]
    laws = [draw_law(each) for each in part.definitions]
    return {
        label: mean_of_drawn([each[label] for each in separate], weights, laws, alpha)
        for label in separate[0]
    }


def _of_any_level(part: Slice) -> Mapping[str, Estimate]:
    """Return what ``independent`` does at whatever level; a line has drawn it at one already."""
    return independent(part, vars(part).get(_KEPT, (_ANY,))[0])


def _independent(part: Slice, alpha: float) -> Mapping[str, Estimate]:
    domain, mechanism = part.metric.domain, part.metric.mechanism
    if domain.grid:
        return {MEAN: mean(mechanism, domain.grid, part.tally, part.n, alpha)}
    if isinstance(mechanism, KeyValueMechanism):
        estimates = key_shares(mechanism, part.tally, part.n, alpha)
    elif isinstance(mechanism, VectorMechanism):
        estimates = coordinates(mechanism, domain, part.tally, part.n, alpha)
    else:
        estimates = shares(mechanism, part.tally, part.n, alpha)
    return dict(zip(_labels(part.metric), estimates, strict=True))


def numbers_of(
    part: Slice, items: Sequence[str], population: Population, *, in_time: bool
) -> Mapping[str, Number]:
    """Return the numbers of *items* of a slice with n > 0, as they scatter in a *population*.

    Args: in_time: to be compared with another time, rather than with other devices.
    """
    if part.definitions:
        # a device may have reported under several: its value is alike in all of their epochs
        separate = [
            numbers_of(
                each if in_time else replace(each, epochs=part.epochs),
                items,
                population,
                in_time=in_time,
            )
            for each in part.definitions
        ]
        weights = [devices_of(each) for each in part.definitions]
        laws = [draw_law(each) for each in part.definitions]
        return {item: together([each[item] for each in separate], weights, laws) for item in items}
    scatters = scatters_of(part, items)
    return {
        item: Number(value, variance_if(part, scatter, population, in_time=in_time), part.n)
        for item, (value, scatter) in scatters.items()
    }


def scatters_of(part: Slice, items: Sequence[str]) -> Mapping[str, tuple[float, Scatter]]:
    """Return the unbiased number of each of *items* of a slice with n > 0, and its scatter.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    if is_joined(part.metric.domain):
        of_all = joined(part, _ANY)
        parts = {item: of_all[item] for item in items}
        return {
            item: (estimates.value, _of_share(part, estimates, w))
            for item, (estimates, w) in parts.items()
        }
    estimates = _of_any_level(part)
    return {item: (estimates[item].value, _scatter(part, estimates[item])) for item in items}


def variance_if(part: Slice, scatter: Scatter, population: Population, *, in_time: bool) -> float:
    """Return the variance of a number of *part*, were its reports to *scatter* like this.

    Args: in_time: as above.
    """
    repeats = max(len(part.epochs), 1)
    if in_time:  # the same devices cancel out, unless a panel draws others each time
        is_redrawn = part.metric.sample.share < 1 and part.metric.sample.period in LENGTHS
        repeats = part.metric.drawn_together(part.epochs) if is_redrawn else 1
    fresh, alike = parted(part.metric, scatter, population)
    return (fresh + repeats * alike) / part.n


def taken_for_granted(slices: Sequence[Slice], population: Population) -> tuple[Remark, ...]:
    """Return what the question says of the devices of *slices* that no report shows."""
    is_open = population == NEW and any(len(part.epochs) > 1 for part in slices)
    return (remark(Code.ONCE_EACH, slices[0].metric.address),) if is_open else ()


def parted(metric: Metric, scatter: Scatter, population: Population) -> tuple[float, float]:
    """Return what of a report's variance is new in each epoch, and what a device may repeat."""
    if population == NEW:
        return scatter.reports, 0.0
    noise = scatter.noise if metric.policy else 0.0
    if population == REPORTED and metric.sample.share >= 1:  # a panel draws its devices
        return scatter.noise - noise, noise
    alike = noise + scatter.values
    return scatter.reports - alike, alike


def _scatter(part: Slice, estimate: Estimate) -> Scatter:
    """Return how the reports behind the number *estimate* scatter, whose noise is independent."""
    domain, grid = part.metric.domain, part.metric.domain.grid
    noise = estimate.std_error**2 * part.n
    if isinstance(part.metric.mechanism, VectorMechanism):  # these are of reports as they scatter
        inside = (estimate.value - domain.least) * (domain.least + domain.extent - estimate.value)
        return Scatter(noise, min(max(inside, 0.0), noise), noise)
    if grid is None:
        return _of_share(part, estimate)
    mechanism: Any = part.metric.mechanism
    step = float(grid.step) ** 2
    reports, positions = mechanism.scatter(part.tally, part.n, np)
    return Scatter(noise, positions * step, max(reports * step, noise))


def _of_share(part: Slice, estimate: Estimate, fraction: float = 1.0) -> Scatter:
    """Return how the reports behind a share scatter that is of this *fraction* of the devices.

    Derived: the share r of a part w is the mean of (a - r b)/w over all devices, b being whether
    one is of the part and a whether it is of the share, too; its variance is r(1-r)/w.
    """
    noise = estimate.std_error**2 * part.n
    spread = max(estimate.value * (1 - estimate.value), 0.0) / fraction
    return Scatter(noise, spread, noise + spread)


def _labels(metric: Metric) -> tuple[str, ...]:
    """Return what ``estimates_of`` has numbers of."""
    return metric.domain.compared or metric.domain.labels or (MEAN,)


def series_of(slices: Sequence[Slice]) -> Iterator[tuple[Slice, ...]]:
    """Yield the slices that differ in time only, in its order."""
    for parts in alike(slices, TIME):
        yield tuple(sorted(parts, key=lambda part: part.dimensions[TIME]))


def stretches_of(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Return *slices* by the stretch of time that they are of; all together without any."""
    stretches: dict[str, list[Slice]] = {}
    for part in slices:
        stretches.setdefault(part.dimensions.get(TIME, ""), []).append(part)
    return list(stretches.values())


def others(part: Slice, name: str) -> dict[str, str]:
    """Return the dimensions of *part* other than *name*."""
    return {key: value for key, value in part.dimensions.items() if key != name}


def together(
    numbers: Sequence[Number], devices: Sequence[float] = (), laws: Sequence[float] = ()
) -> Number:
    """Return independent *numbers* as one, weighted by reports, or by *devices* that a panel drew.

    Args: laws: what the draw adds to the variance of each, for each square it is apart.
    """
    n = sum(number.n for number in numbers)
    parts = np.array(devices or [number.n for number in numbers])
    parts = parts / parts.sum()
    values = np.array([number.value for number in numbers])
    value = float(parts @ values)
    variances = np.array([number.variance for number in numbers])
    if laws:
        variances = variances + np.array(laws) * (values - value) ** 2
    return Number(value, float(parts**2 @ variances), n)
