"""What a relay leaves of a metric's ε: refused, bounded, attacked, and planned.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Final

import numpy as np

from client_sdk.core.epoch import ONCE
from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    NumberReports,
    TextMechanism,
)
from client_sdk.registry.metric import Metric

from ..core.text_tables import above, table_lines
from .amplification import Crossing, Shuffled, profile_of, reached, shuffled
from .composition import Profile, composed

DELTA: Final = 1e-8  # the chance of more that is allowed in all, however many windows
WINDOWS: Final = (1, 4, 13, 52)  # that are shown together
_STEPS: Final = 8  # of a number of devices, between a power of two and the next

# What no computation can check.  An answer adds the relay's operator and the devices that collude.
ASSUMED: Final = (
    "nobody who sees the reports knows in which batch, on which day, or from which version of the "
    "application (by its write key, the key of its capsules or that of its tokens) the device "
    "sent: each of these leaves fewer to hide among",
    "all reports of the device come through the relay, one a period, each alone in its upload",
    "it is about what reports of this metric in this window say: other metrics and windows add to "
    "it, and that a device reports is not hidden",
)
PLANNED: Final = (
    "somebody else runs the relay, mixes what it passes on, and does not work with the collector",
    "no relayed report is forged, or of a device that works with the collector, beyond the part "
    "that --colluding takes off",
    *ASSUMED,
)


def otherwise(epsilon: float) -> str:
    """Return what holds where an assumption does not."""
    return f"where one of these fails, what holds is ε {above(epsilon)} a report"


def refusal(metric: Metric) -> str | None:
    """Return why nothing can be claimed of shuffled reports of *metric*; None if something can."""
    if metric.policy is not None:
        return f"{metric.longitudinal}: a device's reports resemble each other, so they are linked"
    if metric.mechanism.delta:
        return f"{metric.mechanism_name}: its own delta is above 0, and the bound is for none"
    if isinstance(metric.mechanism, TextMechanism):
        return "strings: which part of a string a report is about is not hidden"
    return None


def epsilon_of(metric: Metric) -> float:
    """Return ε of a report, in nats, no smaller than it is."""
    spent = metric.mechanism.spent
    nearest = float(spent)
    return nearest if Fraction(nearest) >= spent else math.nextafter(nearest, math.inf)


def honest_of(reports: int, colluding: Fraction) -> int:
    """Return how many of *reports* are of honest devices, if the part *colluding* is not."""
    return reports - math.ceil(reports * colluding)


def shuffled_of(metric: Metric, devices: int, delta: float = DELTA) -> Shuffled:
    """Return what holds for reports of *metric* by *devices* honest devices, shuffled.

    Raises: InvalidParameterError: nothing can be claimed of it, or a number is at fault.
    """
    reason = refusal(metric)
    if reason is not None:
        raise InvalidParameterError("metric", metric.name, reason)
    return shuffled(epsilon_of(metric), devices, delta, *_law(metric))


def together(groups: Sequence[tuple[Metric, int]], delta: float = DELTA) -> Shuffled:
    """Return what holds of one report in each of *groups* of so many honest devices, together.

    Raises: InvalidParameterError: nothing can be claimed of a metric.
    """
    least = min(devices for _, devices in groups)
    if len(groups) == 1:
        return shuffled_of(*groups[0], delta)
    profiles = [_profile(metric, devices) for metric, devices in groups]
    alone = math.fsum(epsilon_of(metric) for metric, _ in groups)
    return Shuffled(min(composed(profiles, delta), alone), delta, least)


def _profile(metric: Metric, devices: int) -> Profile:
    if reason := refusal(metric):
        raise InvalidParameterError("metric", metric.name, reason)
    return profile_of(epsilon_of(metric), devices, *_law(metric))


def _law(metric: Metric) -> tuple[float, bool]:
    """Return how far laws of two values are apart, and whether there are two reports only."""
    mechanism = metric.mechanism
    two = isinstance(mechanism, NumberReports) and mechanism.payload_count == 2
    return mechanism.variation(np), two


def rounded_down(devices: int) -> int:
    """Return a power of 2^(1/8), of whole devices, that is at most *devices*.

    Fewer hide less, so that it serves; and groups of many sizes take few computations.
    """
    step = math.floor(_STEPS * math.log2(devices))
    candidates = (math.floor(2 ** (k / _STEPS)) for k in (step + 1, step, step - 1, 0))
    return next(fewer for fewer in candidates if fewer <= devices)


def crossing_of(metric: Metric) -> Crossing | None:
    """Return what an attacker looks at who counts reports that speak for one of two values.

    Of items whose reports support pairs alike, any two; of numbers, the ends of the range, the
    others being in its middle.  None where we know no simple attack.
    """
    mechanism = metric.mechanism
    if isinstance(mechanism, FrequencyOracle):
        pair = mechanism.pair_law() if mechanism.pure else None
        if pair is None:
            return None
        p, q = mechanism.chances
        own, other = p - pair.own, q - pair.own
        crowd = q - pair.others if mechanism.domain_size > 2 else (own + other) / 2
        return Crossing(own, other, crowd)
    if isinstance(mechanism, DistributionMechanism):
        laws = mechanism.channel_matrix(np).T
        low, high = laws[0], laws[-1]
        middle = (laws[(len(laws) - 1) // 2] + laws[len(laws) // 2]) / 2
        ours = low > high
        crowd = (middle[ours].sum() + middle[low < high].sum()) / 2
        return Crossing(float(low[ours].sum()), float(high[ours].sum()), float(crowd))
    return None


def shuffled_data(
    metric: Metric, devices: int, colluding: Fraction = Fraction(0)
) -> dict[str, Any]:
    """Return the same as ``shuffled_lines`` as JSON types."""
    bounds = _windows(metric, devices, colluding)
    claimed = {"metric": metric.name, "epsilon_report": epsilon_of(metric)}
    if isinstance(bounds, str):
        return {**claimed, "windows": [], "reason": bounds}
    windows = [{"windows": k, **asdict(bound)} for k, bound in bounds]
    attack = _attack(metric, bounds[0][1])
    return {**claimed, "windows": windows, "attack": attack, "assumes": list(_assumes(metric))}


def shuffled_lines(
    metric: Metric, devices: int, colluding: Fraction = Fraction(0)
) -> Iterator[str]:
    """Yield the plan of a relay as text: one window, and several of the same device together.

    Args: devices: that report in one window, of the smallest segment that is counted apart.
          colluding: the part of them that works with the collector, and hides nobody.
    """
    bounds = _windows(metric, devices, colluding)
    if isinstance(bounds, str):
        yield f"{metric.name}: no claim for a relay: {bounds}"
        return
    first = bounds[0][1]
    yield (
        f"{metric.name}: a relay that shuffles {first.devices:,} reports leaves of ε "
        f"{above(epsilon_of(metric))}, but for a chance of δ"
    )
    rows = [[str(k), above(bound.epsilon), above(bound.delta)] for k, bound in bounds]
    yield from table_lines([["windows", "ε", "δ"], *rows], ">>>", indent="  ")
    attack = _attack(metric, first)
    if attack is not None:
        yield f"an attack that knows all other values reaches ε {attack:.3g} in one window"
    yield "it assumes:"
    yield from (f"- {text}" for text in _assumes(metric))


def _assumes(metric: Metric) -> Iterator[str]:
    yield from PLANNED
    yield otherwise(epsilon_of(metric))


def _attack(metric: Metric, window: Shuffled) -> float | None:
    crossing = crossing_of(metric)
    return None if crossing is None else reached(crossing, window.devices, window.delta)


def _windows(metric: Metric, devices: int, colluding: Fraction) -> list[tuple[int, Shuffled]] | str:
    """Return of each number of windows what holds of them together; why nothing does."""
    honest = honest_of(devices, colluding)
    if reason := refusal(metric):
        return reason
    if honest < 1:
        return "no honest device reports"
    numbers = WINDOWS if metric.every != ONCE else WINDOWS[:1]
    return [(k, together([(metric, honest)] * k)) for k in numbers]
