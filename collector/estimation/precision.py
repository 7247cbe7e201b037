"""Devices to half-width and back, before any data exist.  Pure.

Half-widths are of the 95 % interval, or that of another *alpha*, to expect from the mechanism's own
prediction: for items the root mean square over all of them, for numbers the worst case.  They are
parts: of 1 for a share, of the range for a number.  ``scale_of`` says what a part is in the unit of
the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import hypot, sqrt
from typing import Final, NamedTuple

from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.registry.domain import SHARE
from client_sdk.registry.metric import Metric

from ..core.text_tables import in_digits
from .arrays import AnyMechanism
from .estimate import expected_half_width, normal_quantile

ALPHA: Final = 0.05  # 1 - level of an interval, unless a question says otherwise


_USUAL_NEED: Final = 0.05  # half-width where none is declared: 5 points, or 5 % of the range
_SAMPLING: Final = (
    1 / 4
)  # the most that one device's value varies: f (1-f) of a share, or the range


class Scale(NamedTuple):
    """The unit of a metric's answers, and how much of it the whole of 1, or of the range, is."""

    unit: str
    whole: float


def scale_of(metric: Metric) -> Scale:
    """Return the unit in which the half-width of *metric* is wished: shares, but of numbers."""
    return Scale(metric.domain.unit, metric.domain.extent)


def wished(metric: Metric) -> float:
    """Return the half-width that *metric* declares as its need, or USUAL_NEED, as a part."""
    if metric.need is None:
        return _USUAL_NEED
    return float(metric.need) / scale_of(metric).whole


def drawn(metric: Metric) -> float:
    """Return the variance that a panel's draw adds to an answer, times the reports, as a part.

    It is the most that it can be: of a number, or of the root mean square over all items.
    """
    items = max(len(metric.domain.labels), 2)
    by_itself = metric.domain.several or metric.domain.unit != SHARE  # each item, or a number
    spread = _SAMPLING if by_itself else (items - 1) / items**2
    return (1 - metric.sample.share) * spread


def half_width(
    mechanism: AnyMechanism, reports: int, alpha: float = ALPHA, drawn: float = 0.0
) -> float:
    """Return the half-width to expect from *reports* > 0 reports, as a part.

    Args: drawn: the variance of the draw of a panel, as ``drawn`` returns it.
    """
    noise = expected_half_width(mechanism, reports, alpha, 1.0)
    return hypot(noise, normal_quantile(alpha) * sqrt(drawn / reports))


@lru_cache(maxsize=256)
def reports_for(
    mechanism: AnyMechanism, wish: float, alpha: float = ALPHA, drawn: float = 0.0
) -> int | None:
    """Return the fewest reports that give a half-width of *wish*; None: no number does."""
    return fewest(lambda reports: half_width(mechanism, reports, alpha, drawn) <= wish)


def detectable(mechanism: AnyMechanism, arms: tuple[int, int], alpha: float, power: float) -> float:
    """Return the difference of two *arms* of so many reports that is found with *power*, as a part.

    It is found if its interval excludes 0.  Who is in which arm is chance too, so the error holds
    besides the noise SAMPLING, the most that devices can differ.
    """
    variance = sum(mechanism.predict(reports) ** 2 + _SAMPLING / reports for reports in arms)
    difference: float = (normal_quantile(alpha) + normal_quantile(2 * (1 - power))) * variance**0.5
    return difference


def devices_to_detect(
    mechanism: AnyMechanism,
    effect: float,
    arms: tuple[float, float],
    alpha: float,
    power: float,
) -> int | None:
    """Return the fewest devices, of which *arms* are parts, that find *effect*; None: none do."""

    def enough(devices: int) -> bool:
        first, second = (int(part * devices) for part in arms)
        return min(first, second) > 0 and (
            detectable(mechanism, (first, second), alpha, power) <= effect
        )

    return fewest(enough)


def fewest(enough: Callable[[int], bool], most: int = MAX_REPORTS) -> int | None:
    """Return the least number up to *most* that is *enough*, as all above it are; or None."""
    low, high = 0, 1
    while not enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def still_needed(metric: Metric, n: int) -> int | None:
    """Return how many more reports than *n* the need of *metric* takes; None: no number does.

    That is ``min_reports`` at least.  The same number is in the lint, the plan and the answers.
    """
    needed = reports_for(metric.mechanism, wished(metric), drawn=drawn(metric))
    return None if needed is None else max(needed - n, metric.min_reports - n, 0)


def in_words(metric: Metric, part: float) -> str:
    """Return a half-width as people read it: in points of a share, or in the metric's unit."""
    unit, whole = scale_of(metric)
    if unit != SHARE:
        return f"±{in_digits(part * whole)} {unit}"
    points = f"{100 * part:.2g}"
    return f"±{points} {'point' if points == '1' else 'points'}"
