"""The answer to a metric's own question: shares of items, means and quantiles of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from client_sdk.registry.metric import Metric

from ..estimation.estimate import Estimate, expected_half_width, mean, shares
from .items.key_values import key_estimates, key_truth, mean_items
from .numbers.distribution import quantile_estimates, quantile_items, quantile_truth, with_notes
from .repeats import widened
from .rows import RAW, SHARE, Row, empty_row, row_of, with_item
from .slices import Slice

MEAN: Final = "mean"
MONOTONE: Final = "monotone"  # of a distribution made to rise
NO_HOLDERS: Final = "not enough reports: whether any device holds the key is not sure"


def answer_rows(one: Slice, alpha: float) -> tuple[Row, ...]:
    """Answer the question of the metric of a slice, or give the reason in every row.

    Args:    alpha: 1 - level, in (0, 1).
    Returns: shares of all reports for items ("share"), or one mean in the unit of the domain,
             after the quantiles where the mechanism gives a distribution.  For keys with
             numbers the share of the devices that hold each key, then the mean of each key's
             numbers in their unit, or the reason why there is none.
    Raises:  InvalidTallyError: the tally cannot have come from n reports.
    """
    units = _units(one.metric)
    about: dict[str, Any] = {"is_open": one.is_open}
    if one.refusal is not None:
        return tuple(
            empty_row(with_item(one.dimensions, item), one.n, alpha, unit, one.refusal, **about)
            for item, unit in units.items()
        )
    estimates = _estimates(one, alpha)
    fitted = dict.fromkeys(quantile_items(one.metric), MONOTONE)
    rows = []
    for item, unit in units.items():
        found, place = estimates[item], with_item(one.dimensions, item)
        if found is None:
            rows.append(empty_row(place, one.n, alpha, unit, NO_HOLDERS, **about))
        else:
            about["postprocess"] = fitted.get(item, RAW)
            row = row_of(place, found, one.n, alpha, unit, **about)
            rows.append(with_notes(row, one.metric) if item in fitted else row)
    return tuple(rows)


def _estimates(one: Slice, alpha: float) -> Mapping[str, Estimate | None]:
    """Return the number of every item that gets a row, and perhaps of others."""
    metric, tally, n = one.metric, one.tally, one.n
    domain, mechanism = metric.domain, metric.mechanism
    if domain.grid:
        quantiles = quantile_estimates(metric, tally, n, alpha)
        return {**quantiles, MEAN: mean(mechanism, domain.grid, tally, n, alpha)}
    if domain.numbers:
        return key_estimates(metric, tally, n, alpha)
    found = widened(one, shares(mechanism, one.tally, one.n, alpha))
    return dict(zip(domain.labels, found, strict=True))


def shown_items(metric: Metric) -> tuple[str, ...]:
    """Return the items that get a row: of a boolean only "true", since "false" is the rest."""
    return tuple(_units(metric))


def label_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true answer per row from how many devices hold each value; for demos and tests.

    A pair is given as the tuple of its answers, since a mapping cannot be counted.
    """
    total, domain = sum(values.values()), metric.domain
    if domain.grid:
        exact = sum(float(str(value)) * n for value, n in values.items()) / total
        return {**quantile_truth(metric, values), MEAN: exact}
    if domain.numbers:
        return key_truth(metric, values)
    held = Counter[str]()
    for value, n in values.items():
        if domain.parts and isinstance(value, tuple):
            value = dict(zip(domain.parts, value, strict=True))
        given = domain.as_given(domain.encode(value, metric.name))
        held.update(dict.fromkeys(given if isinstance(given, list) else [str(given)], n))
    return {item: held[item] / total for item in domain.answer_items() or held}


def expectation(metric: Metric, alpha: float) -> tuple[str, float]:
    """Return the unit of the answers, and the half-width to expect with the expected devices."""
    domain = metric.domain
    width = expected_half_width(metric.mechanism, metric.expected_devices, alpha, domain.extent)
    return domain.unit, width


def _units(metric: Metric) -> dict[str, str]:
    """Return the items that get a row, in order, each with the unit of its number."""
    domain = metric.domain
    if domain.grid:
        return dict.fromkeys((*quantile_items(metric), MEAN), domain.unit)
    means = dict.fromkeys(mean_items(domain), domain.numbers.unit) if domain.numbers else {}
    return {**dict.fromkeys(domain.answer_items(), SHARE), **means}
