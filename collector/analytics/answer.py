"""The answer to a metric's own question, one row an item.

What a row is of follows from the domain: the share of each item, the mean and five quantiles of a
number, the share of the holders of each key and the mean of its numbers.  Answers under several
definitions of a metric become one.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from client_sdk.mechanisms import (
    DistributionMechanism,
    KeyValueMechanism,
    VectorMechanism,
)
from client_sdk.registry.domain import Domain, NumberGrid
from client_sdk.registry.keys import GRID, SMOOTH
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import MEAN_OF

from ..core.remarks import Code, remark
from ..estimation.arrays import Ints
from ..estimation.estimate import (
    Estimate,
    coordinates,
    key_means,
    key_shares,
    mean,
    normal_quantile,
    shares,
)
from ..estimation.precision import drawn, half_width
from .distribution import AnyShape, assumption
from .quantiles import quantiles
from .rows import (
    LOWER,
    RAW,
    UPPER,
    Findings,
    Row,
    quality_of,
    row_of,
    with_item,
)
from .verb import (
    Slice,
    devices_of,
    draw_law,
    mean_of_drawn,
    named,
    refused_rows,
    sampled,
    widened,
)

QUANTILES: Final = {"p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9}
MEAN: Final = "mean"
MONOTONE: Final = "monotone"  # of a distribution made to rise


def _mean_items(domain: Domain) -> tuple[str, ...]:
    """Return the names of the means, one a key."""
    return tuple(MEAN_OF + key for key in domain.labels)


def _key_estimates(metric: Metric, tally: Ints, n: int, alpha: float) -> dict[str, Estimate | None]:
    """Return the share of holders of each key, then the mean of its numbers, by name.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    domain, mechanism = metric.domain, metric.mechanism
    if not domain.numbers or not isinstance(mechanism, KeyValueMechanism):
        return {}
    held = key_shares(mechanism, tally, n, alpha)
    means = key_means(mechanism, domain.numbers, tally, n, alpha)
    return {
        **dict(zip(domain.labels, held, strict=True)),
        **dict(zip(_mean_items(domain), means, strict=True)),
    }


def quantile_items(metric: Metric) -> tuple[str, ...]:
    """Return the names of the quantiles that *metric* answers with, if any."""
    return tuple(QUANTILES) if isinstance(metric.mechanism, DistributionMechanism) else ()


def quantile_estimates(metric: Metric, tally: Ints, n: int, alpha: float) -> dict[str, Estimate]:
    """Return the quantiles of *n* > 0 numbers in the unit of the domain, by name.

    Intervals are pointwise and cut off at the range.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    if not isinstance(metric.mechanism, DistributionMechanism):
        return {}
    estimates = quantiles_at(metric, tally, n, tuple(QUANTILES.values()), alpha)
    return dict(zip(QUANTILES, estimates, strict=True))


def quantiles_at(
    metric: Metric, tally: Ints, n: int, levels: Sequence[float], alpha: float
) -> list[Estimate]:
    """Return the quantiles of *n* > 0 numbers at ascending *levels*, in the unit of the domain.

    Of numbers on the grid they are grid points, and so are both ends of their intervals.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    domain, mechanism = metric.domain.grid, metric.mechanism
    assert domain is not None  # noqa: S101 - as the mechanism is
    assert isinstance(mechanism, DistributionMechanism)  # noqa: S101 - the caller asked
    smooth = quantiles(mechanism, tally, n, levels, alpha)
    if metric.shape == SMOOTH:
        return [_in_unit(estimate, domain) for estimate in smooth]
    seen = mechanism.require_counts(tally, n, np) / n
    population = AnyShape.of(mechanism, seen, n)
    estimates = [
        _limited(estimate.value, first, last, mechanism, metric.shape == GRID, alpha)
        for estimate, (first, last) in zip(
            smooth, population.quantile_bins(levels, alpha).tolist(), strict=True
        )
    ]
    return [_in_unit(estimate, domain) for estimate in estimates]


def _limited(
    value: float,
    first: int,
    last: int,
    mechanism: DistributionMechanism,
    on_grid: bool,
    alpha: float,
) -> Estimate:
    """Return a quantile in grid steps that may be in bins *first* to *last*.

    Numbers that report from a bin lie less than a bin away from it, or on it if each grid point has
    a bin of its own and all numbers are on the grid.
    """
    top = mechanism.top
    step = Fraction(top, mechanism.bins - 1)  # grid steps a bin
    low, high = max((first - 1) * step, Fraction(0)), min((last + 1) * step, Fraction(top))
    if on_grid:
        low = Fraction(floor((first - 1) * step) + 1 if first else 0)
        high = Fraction(min(ceil((last + 1) * step) - 1, top))
        value = round(value)
    limited = min(max(value, float(low)), float(high))
    error = float(high - low) / (2 * normal_quantile(alpha))
    return Estimate(limited, error, float(low), float(high))


def _in_unit(estimate: Estimate, domain: NumberGrid) -> Estimate:
    """Return *estimate*, in grid steps from the lowest, in the unit of *domain*."""
    step, low, high = float(domain.step), float(domain.minimum), float(domain.maximum)
    return Estimate(
        low + step * estimate.value,
        step * estimate.std_error,
        max(low, low + step * estimate.ci_low),
        min(high, low + step * estimate.ci_high),
    )


def with_notes(row: Row, metric: Metric) -> Row:
    """Return the row of a quantile with what it assumes, and whether it is an end of the range."""
    domain, end = metric.domain.grid, None
    if row.ci_low == row.ci_high and domain:
        ends = {float(domain.minimum): LOWER, float(domain.maximum): UPPER}
        end = ends.get(row.value or 0.0)
    return replace(row, notes=assumption(metric), end=end)


def answer_rows(part: Slice, alpha: float) -> tuple[Row, ...]:
    """Answer the question of the metric of a slice, or give the reason in every row.

    Args:    alpha: 1 - level, in (0, 1).
    Returns: shares of all reports for items ("share"), or one mean in the unit of the domain,
             after the quantiles where the mechanism gives a distribution.  For keys with
             numbers the share of the devices that hold each key, then the mean of each key's
             numbers in their unit, or the reason why there is none.
    Raises:  InvalidTallyError: the tally cannot have come from n reports.
    """
    units = _units(part.metric)
    about: dict[str, object] = {"is_open": part.is_open}
    if part.refusal or part.mixture:
        return tuple(
            row
            for item, unit in units.items()
            for row in refused_rows(part, named([item]), alpha, unit)
        )
    estimates = _estimates(part, alpha)
    fitted = dict.fromkeys(quantile_items(part.metric), MONOTONE)
    rows = []
    for item, unit in units.items():
        estimate, place = estimates[item], with_item(part.dimensions, item)
        if estimate is None:
            rows += refused_rows(part, named([item]), alpha, unit, refusal=remark(Code.NO_HOLDERS))
        else:
            about["postprocess"] = fitted.get(item, RAW)
            row = row_of(place, estimate, part.n, alpha, unit, **about)
            rows.append(with_notes(row, part.metric) if item in fitted else row)
    return tuple(rows)


def _estimates(part: Slice, alpha: float) -> Mapping[str, Estimate | None]:
    """Return the number of every item that gets a row, and perhaps of others."""
    metric, tally, n = part.metric, part.tally, part.n
    domain, mechanism = metric.domain, metric.mechanism
    if domain.grid:
        quantiles = quantile_estimates(metric, tally, n, alpha)
        of_reports = mean(mechanism, domain.grid, tally, n, alpha)
        return {**quantiles, MEAN: sampled(part, [of_reports], alpha)[0]}
    if domain.numbers:
        estimates = _key_estimates(metric, tally, n, alpha)
        held = sampled(part, [e for key in domain.labels if (e := estimates[key])], alpha)
        return {**estimates, **dict(zip(domain.labels, held, strict=True))}
    if isinstance(mechanism, VectorMechanism):
        means = coordinates(mechanism, domain, tally, n, alpha)
        return dict(zip(domain.labels, sampled(part, means, alpha), strict=True))
    items = widened(part, shares(mechanism, part.tally, part.n, alpha), alpha)
    return dict(zip(domain.labels, items, strict=True))


def expectation(metric: Metric, alpha: float) -> tuple[str, float]:
    """Return the unit of the answers, and the half-width to expect with the expected devices."""
    domain = metric.domain
    width = half_width(metric.mechanism, metric.expected_reports, alpha, drawn(metric))
    return domain.unit, domain.extent * width


def _units(metric: Metric) -> dict[str, str]:
    """Return the items that get a row, in order, each with the unit of its number."""
    domain = metric.domain
    if domain.grid:
        return dict.fromkeys((*quantile_items(metric), MEAN), domain.unit)
    means = dict.fromkeys(_mean_items(domain), domain.numbers.unit) if domain.numbers else {}
    return {**dict.fromkeys(domain.answer_items(), domain.unit), **means}


class _Weighed(NamedTuple):
    """A row under one definition."""

    row: Row
    weight: float  # the devices that its reports stand for
    law: float = 0.0  # what a draw of devices adds to its variance, for each square it is apart


def combined(
    findings: Sequence[Findings], alpha: float, definitions: Sequence[Sequence[Slice]] = ()
) -> Findings:
    """Return *findings* as one: rows of the same dimensions weighted by their reports.

    So a row is about all devices that reported, as ever; where a panel draws them, by the devices
    that reports stand for, as each definition may draw another part.  Weights by inverse variance
    would scatter less and be about nobody: users of the two definitions may differ.  Definitions
    have reports of different devices or epochs, so their errors are independent.  Reports of a
    definition that has no number for a row, as one that has just begun, are not in it, which its
    ``n`` and note say.

    Args:    definitions: the slices of each, where a panel may draw devices.
    Derived: the mean x of n_i reports each, sum(n_i x_i)/n, has variance sum((n_i s_i)^2)/n^2.  How
             many devices a panel draws is chance, too: as of a ratio, x_i - x counts beside s_i.
    """
    if len(findings) == 1:
        return findings[0]
    places: dict[tuple[tuple[tuple[str, str], ...], str], list[_Weighed]] = {}
    for place, part in enumerate(findings):
        slices = definitions[place] if definitions else ()
        by_name = {tuple(each.dimensions.items()): each for each in slices}
        length = len(slices[0].dimensions) if slices else 0
        for row in part.rows:
            names = tuple(row.dimensions.items())
            whole = by_name.get(names[:length])
            law = (devices_of(whole), draw_law(whole)) if whole else (row.n, 0.0)
            places.setdefault((names, row.unit), []).append(_Weighed(row, *law))
    rows = tuple(_combine(rows, alpha) for rows in places.values())
    warnings = tuple(dict.fromkeys(each for part in findings for each in part.warnings))
    return Findings(rows, warnings)


def _combine(each: Sequence[_Weighed], alpha: float) -> Row:
    """Return one row of several about the same, each with its own reports."""
    rows = [part.row for part in each]
    missing = [row for row in rows if row.value is None or row.std_error is None]
    if len(rows) == 1 or len(missing) == len(rows):
        return replace(rows[0], n=sum(row.n for row in rows))
    if missing:
        row_of_rest = _combine([part for part in each if part.row not in missing], alpha)
        few = sum(row.n for row in missing)
        return replace(row_of_rest, notes=(remark(Code.WITHOUT_OTHERS, few=few),))
    weights = [part.weight for part in each]
    laws = [part.law for part in each]
    whole = mean_of_drawn([_unbiased(row) for row in rows], weights, laws, alpha)
    code = Code.DEFINITIONS_DRAWN if any(part.law for part in each) else Code.DEFINITIONS
    is_raw = all(row.raw is None for row in rows)
    value = whole.value if is_raw else np.average([row.value for row in rows], weights=weights)
    return replace(
        rows[0],
        value=float(value),
        ci_low=whole.ci_low,
        ci_high=whole.ci_high,
        std_error=whole.std_error,
        n=sum(row.n for row in rows),
        quality=quality_of(whole),
        raw=None if is_raw else whole.value,
        is_open=any(row.is_open for row in rows),
        notes=(remark(code),),
    )


def _unbiased(row: Row) -> Estimate:
    """Return the unbiased number of *row*, which its interval is of."""
    numbers: Any = (
        row.value if row.raw is None else row.raw,
        row.std_error,
        row.ci_low,
        row.ci_high,
    )
    return Estimate(*numbers)
