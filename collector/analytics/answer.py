"""The answer to a metric's own question: shares of items, means and quantiles of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from client_sdk.metric import ItemDomain, KeyValueDomain, Metric

from ..estimate import Estimate, expected_half_width, mean, shares
from .distribution import quantile_estimates, quantile_items, quantile_truth
from .key_values import key_estimates, key_truth, mean_items

SHARE: Final = "share"
MEAN: Final = "mean"
RAW, MONOTONE = "raw", "monotone"  # unbiased as debiased / of a distribution made to rise
GOOD, FAIR, POOR, INSUFFICIENT = "good", "fair", "poor", "insufficient"
NO_HOLDERS: Final = "not enough reports: whether any device holds the key is not sure"
_GOOD_RELATIVE_ERROR: Final = 0.05  # half-width over value
_FAIR_RELATIVE_ERROR: Final = 0.25


@dataclass(frozen=True)
class Row:
    """One number with its interval, or ``value`` None and the ``reason`` why there is no number."""

    item: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    n: int
    alpha: float
    quality: str
    postprocess: str = RAW
    reason: str | None = None
    unit: str = SHARE


@dataclass(frozen=True)
class Answer:
    """Rows in the order of the domain, and the interval expected when planned, in ``unit``."""

    rows: tuple[Row, ...]
    unit: str
    expected_half_width: float


def answer(metric: Metric, tally: Any, n: int, alpha: float) -> Answer:
    """Answer the question of *metric* from the tally of *n* reports.

    Args:   tally: int64, shape (metric.mechanism.tally_size,).  alpha: 1 - level, in (0, 1).
    Returns: shares of all reports for items ("share"), or one mean in the unit of the domain,
             after the quantiles where the mechanism gives a distribution.  For keys with
             numbers the share of the devices that hold each key, then the mean of each key's
             numbers in their unit, or the reason why there is none.
             Below ``min_reports`` every row has a reason instead of a value.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    unit, scale = _unit(metric)
    expected = expected_half_width(metric.mechanism, metric.expected_devices, alpha, scale)
    if n < metric.min_reports:
        reason = f"not enough reports: {n} of at least {metric.min_reports} needed"
        rows = tuple(
            _empty(item, n, alpha, reason, its_unit) for item, its_unit in _units(metric).items()
        )
        return Answer(rows, unit, expected)
    estimates = _estimates(metric, tally, n, alpha)
    fitted = quantile_items(metric)
    rows = tuple(
        _row(item, found, n, alpha, MONOTONE if item in fitted else RAW, its_unit)
        if (found := estimates[item])
        else _empty(item, n, alpha, NO_HOLDERS, its_unit)
        for item, its_unit in _units(metric).items()
    )
    return Answer(rows, unit, expected)


def _estimates(metric: Metric, tally: Any, n: int, alpha: float) -> Mapping[str, Estimate | None]:
    """Return the number of every item that gets a row, and perhaps of others."""
    domain, mechanism = metric.domain, metric.mechanism
    if isinstance(domain, ItemDomain):
        return dict(zip(domain.labels, shares(mechanism, tally, n, alpha), strict=True))
    if isinstance(domain, KeyValueDomain):
        return key_estimates(metric, tally, n, alpha)
    quantiles = quantile_estimates(metric, tally, n, alpha)
    return {**quantiles, MEAN: mean(mechanism, domain, tally, n, alpha)}


def shown_items(metric: Metric) -> tuple[str, ...]:
    """Return the items that get a row: of a boolean only "true", since "false" is the rest."""
    return tuple(_units(metric))


def label_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true answer per row from how many devices hold each value; for demos and tests."""
    total = sum(values.values())
    if isinstance(metric.domain, KeyValueDomain):
        return key_truth(metric.domain, metric.name, values)
    if not isinstance(metric.domain, ItemDomain):
        exact = sum(float(str(value)) * n for value, n in values.items()) / total
        return {**quantile_truth(metric, values), MEAN: exact}
    held: Counter[int] = Counter()
    for value, n in values.items():
        encoded = metric.domain.encode(value, metric.name)
        for item in encoded if isinstance(encoded, frozenset) else (encoded,):
            held[item] += n
    return {item: held[metric.domain.labels.index(item)] / total for item in shown_items(metric)}


def _unit(metric: Metric) -> tuple[str, float]:
    """Return what errors are predicted of: the unit, and what a predicted error of 1.0 is in it."""
    if isinstance(metric.domain, ItemDomain | KeyValueDomain):
        return SHARE, 1.0
    return metric.domain.unit, float(metric.domain.maximum - metric.domain.minimum)


def _units(metric: Metric) -> dict[str, str]:
    """Return the items that get a row, in order, each with the unit of its number."""
    domain = metric.domain
    if isinstance(domain, KeyValueDomain):
        means = dict.fromkeys(mean_items(domain), domain.numbers.unit)
        return {**dict.fromkeys(domain.keys.labels, SHARE), **means}
    if isinstance(domain, ItemDomain):
        return dict.fromkeys(("true",) if domain.boolean else domain.labels, SHARE)
    return dict.fromkeys((*quantile_items(metric), MEAN), domain.unit)


def _empty(item: str, n: int, alpha: float, reason: str, unit: str) -> Row:
    return Row(item, None, None, None, None, n, alpha, INSUFFICIENT, reason=reason, unit=unit)


def _row(item: str, estimate: Estimate, n: int, alpha: float, postprocess: str, unit: str) -> Row:
    half_width = (estimate.ci_high - estimate.ci_low) / 2
    relative = half_width / abs(estimate.value) if estimate.value else float("inf")
    quality = (
        GOOD
        if relative <= _GOOD_RELATIVE_ERROR
        else FAIR
        if relative <= _FAIR_RELATIVE_ERROR
        else POOR
    )
    numbers = (estimate.value, estimate.ci_low, estimate.ci_high, estimate.std_error)
    return Row(item, *numbers, n, alpha, quality, postprocess, unit=unit)
