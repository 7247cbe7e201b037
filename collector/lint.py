"""What a valid registry still gets wrong: metrics that devices refuse or nobody can answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import Final

from client_sdk.epoch import LENGTHS
from client_sdk.limits import DEFAULT_CAP_REPORT, DEFAULT_CAP_WEEK
from client_sdk.metric import ItemDomain, Metric
from client_sdk.registry import Registry

from .estimate import expected_half_width

_ALPHA: Final = 0.05
_USELESS: Final = 0.25  # half-width as a part of all that the answer can be


def warnings(registry: Registry, today: date) -> Iterator[str]:
    """Yield one line for each thing that is legal and unlikely to be meant."""
    for metric in registry:
        yield from (f"  warning: {metric.name}: {text}" for text in _of_metric(metric, today))
    week = sum(_per_week(metric) for metric in registry)
    if week > Fraction(DEFAULT_CAP_WEEK):
        yield (
            f"  warning: all metrics together spend ε {float(week):g} a week, above the default "
            f"cap of {DEFAULT_CAP_WEEK}: a device that reports everything refuses the rest"
        )


def _of_metric(metric: Metric, today: date) -> Iterator[str]:
    if metric.expires < today:
        yield f"expired on {metric.expires}: devices record nothing"
    if metric.mechanism.spent > Fraction(DEFAULT_CAP_REPORT):
        yield (
            f"ε {metric.epsilon} is above the default cap of {DEFAULT_CAP_REPORT} a report: "
            "devices record nothing unless the application raises it"
        )
    reach = expected_half_width(metric.mechanism, metric.expected_devices, _ALPHA, 1.0)
    if reach > _USELESS:
        what = "points per item" if isinstance(metric.domain, ItemDomain) else "% of the range"
        yield f"{metric.expected_devices} devices give only ±{100 * reach:.0f} {what}"


def _per_week(metric: Metric) -> Fraction:
    """Return the epsilon of seven days; what is asked once is counted once."""
    length = LENGTHS.get(metric.every)
    return metric.mechanism.spent * (Fraction(LENGTHS["7d"], length) if length else 1)
