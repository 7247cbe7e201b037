"""The answer to a metric's own question: shares for items, mean and quantiles for numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from client_sdk.metric import ItemDomain, Metric

from ..estimate import Estimate, expected_half_width, mean, shares
from .distribution import quantile_estimates, quantile_items, quantile_truth

MEAN: Final = "mean"
RAW, EM = "raw", "em"  # unbiased as debiased / quantile of the distribution fitted by EM
GOOD, FAIR, POOR, INSUFFICIENT = "good", "fair", "poor", "insufficient"
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


@dataclass(frozen=True)
class Answer:
    """Rows in the order of the domain, their ``unit``, and the interval expected when planned."""

    rows: tuple[Row, ...]
    unit: str
    expected_half_width: float


def answer(metric: Metric, tally: Any, n: int, alpha: float) -> Answer:
    """Answer the question of *metric* from the tally of *n* reports.

    Args:   tally: int64, shape (metric.mechanism.tally_size,).  alpha: 1 - level, in (0, 1).
    Returns: shares of all reports for items ("share"), or one mean in the unit of the domain,
             after the quantiles where the mechanism gives a distribution.
             Below ``min_reports`` every row has a reason instead of a value.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    unit, scale = _unit(metric)
    expected = expected_half_width(metric.mechanism, metric.expected_devices, alpha, scale)
    items = shown_items(metric)
    if n < metric.min_reports:
        reason = f"not enough reports: {n} of at least {metric.min_reports} needed"
        rows = tuple(
            Row(item, None, None, None, None, n, alpha, INSUFFICIENT, reason=reason)
            for item in items
        )
        return Answer(rows, unit, expected)
    if isinstance(metric.domain, ItemDomain):
        estimates = dict(
            zip(metric.domain.labels, shares(metric.mechanism, tally, n, alpha), strict=True)
        )
    else:
        estimates = quantile_estimates(metric, tally, n, alpha)
        estimates[MEAN] = mean(metric.mechanism, metric.domain, tally, n, alpha)
    fitted = quantile_items(metric)
    rows = tuple(
        _row(item, estimates[item], n, alpha, EM if item in fitted else RAW) for item in items
    )
    return Answer(rows, unit, expected)


def shown_items(metric: Metric) -> tuple[str, ...]:
    """Return the items that get a row: of a boolean only "true", since "false" is the rest."""
    if not isinstance(metric.domain, ItemDomain):
        return (*quantile_items(metric), MEAN)
    return ("true",) if metric.domain.boolean else metric.domain.labels


def label_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true answer per row from how many devices hold each value; for demos and tests."""
    total = sum(values.values())
    if not isinstance(metric.domain, ItemDomain):
        exact = sum(float(str(value)) * n for value, n in values.items()) / total
        return {**quantile_truth(metric, values), MEAN: exact}
    held: Counter[int] = Counter()
    for value, n in values.items():
        encoded = metric.encode(value)
        for item in encoded if isinstance(encoded, frozenset) else (int(encoded),):
            held[item] += n
    return {item: held[metric.domain.labels.index(item)] / total for item in shown_items(metric)}


def _unit(metric: Metric) -> tuple[str, float]:
    """Return the unit of the answer and what a predicted error of 1.0 is in it."""
    if isinstance(metric.domain, ItemDomain):
        return "share", 1.0
    return metric.domain.unit, float(metric.domain.maximum - metric.domain.minimum)


def _row(item: str, estimate: Estimate, n: int, alpha: float, postprocess: str) -> Row:
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
    return Row(item, *numbers, n, alpha, quality, postprocess)
