"""What a valid registry still gets wrong: metrics that devices refuse or nobody can answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from math import tanh
from typing import Final

from client_sdk.core.limits import (
    DEFAULT_CAP_DELTA,
    DEFAULT_CAP_LIFETIME,
    DEFAULT_CAP_REPORT,
    DEFAULT_CAP_WEEK,
)
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.privacy.budget import (
    YEAR,
    chance,
    costs_together,
    delta_of_a_year,
    epsilon,
    nano_of,
)
from client_sdk.registry.metric import SMOOTH, Metric
from client_sdk.registry.registry import Registry

from .analytics.poisoning.influence import FAKES, mean_reach
from .estimation.precision import half_width, in_words, still_needed, wished

_FRAGILE: Final = 5  # times the least reach of a report; those of bounded noise have below 4
_USELESS: Final = 0.25  # half-width as a part of all that the answer can be


def problems(registry: Registry) -> Iterator[str]:
    """Yield one line for each thing that is legal, and only right if it is declared."""
    for metric in registry:
        if metric.robust and (halves := _reached(metric)) > _FRAGILE * _least(metric):
            yield (
                f"metrics.{metric.name}.mechanism={metric.mechanism_name}: must not be a mechanism"
                f" by which 1 % of fake devices move a mean by {100 * FAKES * halves / 2:.0f} % of"
                " the range; name hybrid, piecewise or duchi, or declare robust = false where no"
                " device can lie"
            )


def warnings(registry: Registry, today: date) -> Iterator[str]:
    """Yield one line for each thing that is legal and unlikely to be meant."""
    for metric in registry:
        yield from (f"  warning: {metric.name}: {text}" for text in _of_metric(metric, today))
    for cost in _above_the_default_caps(registry):
        yield f"  warning: all metrics together can cost {cost}: devices refuse the rest"


def _above_the_default_caps(registry: Registry) -> Iterator[str]:
    """Yield what a device that reports everything is charged beyond the SDK's own caps."""
    together, delta = costs_together(registry), delta_of_a_year(registry)
    week, life = (nano_of(Fraction(cap)) for cap in (DEFAULT_CAP_WEEK, DEFAULT_CAP_LIFETIME))
    if together.week > week:
        most, cap = epsilon(together.week), DEFAULT_CAP_WEEK
        yield f"ε {most} in any seven days, above the default cap of {cap}"
    if together.year > life:
        most, cap = epsilon(together.year), f"{DEFAULT_CAP_LIFETIME} for life"
        yield f"ε {most} in any {YEAR} days, above the default cap of {cap}"
    if delta > Fraction(DEFAULT_CAP_DELTA):
        cap = f"{DEFAULT_CAP_DELTA} for life"
        yield f"δ {chance(delta)} in any {YEAR} days, above the default cap of {cap}"


def _of_metric(metric: Metric, today: date) -> Iterator[str]:
    if metric.expires < today:
        yield f"expired on {metric.expires}: devices record nothing"
    if metric.mechanism.spent > Fraction(DEFAULT_CAP_REPORT):
        yield (
            f"ε {metric.epsilon} is above the default cap of {DEFAULT_CAP_REPORT} a report: "
            "devices record nothing unless the application raises it"
        )
    elif metric.most_nano > nano_of(Fraction(DEFAULT_CAP_REPORT)):
        yield (
            f"the second report of a value costs ε {epsilon(metric.most_nano)}, above the default "
            f"cap of {DEFAULT_CAP_REPORT} a report: devices record not even the first unless the "
            "application raises it"
        )
    if metric.shape == SMOOTH and not isinstance(metric.mechanism, DistributionMechanism):
        yield (
            'shape = "smooth" is about quantiles and other parts of a distribution, which '
            f'{metric.mechanism_name} does not tell; mechanism = "square_wave" does'
        )
    yield from _of_need(metric)
    reach = half_width(metric.mechanism, metric.expected_devices)
    if reach > _USELESS:
        what = f"±{100 * reach:.0f} {metric.domain.error_unit}"
        yield f"{metric.expected_devices:,} devices give only {what}; {_missing(metric)}"


def _reached(metric: Metric) -> float:
    """Return how many halves of the range one report can move a mean; 0 if that is not known."""
    grid = metric.domain.grid
    reach = mean_reach(metric.mechanism, grid) if grid else None
    return (reach.high - reach.low) / metric.domain.extent if reach else 0.0


def _least(metric: Metric) -> float:
    """Return the least that it can be at this epsilon: two reports of opposite meaning do that."""
    return 1 / tanh(float(metric.mechanism.epsilon) / 2)


def _of_need(metric: Metric) -> Iterator[str]:
    """Warn if the expected devices cannot give the half-width that is declared as needed."""
    devices = metric.expected_devices
    reach = half_width(metric.mechanism, devices)
    if metric.need is None or reach <= wished(metric):
        return
    yield f"{devices:,} devices give {in_words(metric, reach)}, above its need; {_missing(metric)}"


def _missing(metric: Metric) -> str:
    """Return how many more devices the need takes, or the usual precision where none is."""
    more, wish = still_needed(metric, metric.expected_devices), in_words(metric, wished(metric))
    return f"no number gives {wish}" if more is None else f"{wish} takes {more:,} more"
