"""A plan for one metric: what devices and ε give, and what a wished precision takes.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final, NamedTuple

from client_sdk.core.epoch import DAY, LENGTHS
from client_sdk.core.errors import HearsayError
from client_sdk.mechanisms import Mechanism
from client_sdk.registry.metric import Metric
from client_sdk.registry.selection import choose, choose_policy

from ..estimation.precision import (
    ALPHA,
    detectable,
    devices_to_detect,
    fewest,
    half_width,
    reports_for,
    scale_of,
)

POWER: Final = 0.8  # chance that an effect of the planned size is found
EPSILONS: Final = ("0.5", "1", "2", "4")
HUNDREDTHS: Final = 1_600  # of a nat: the largest epsilon of a report
DEVICES: Final = tuple(round(10 ** (step / 4)) for step in range(8, 29))  # 100 to 10 million
KEPT: Final = ("pad", "bins", "sampled", "delta_exponent")  # parameters that are no matter of ε


@dataclass(frozen=True)
class PlanRequest:
    """What is asked of a plan: devices a window, and half-widths and effects as parts."""

    devices: int
    half_width: float
    share: float = 1.0  # of the devices, those of a segment
    effect: float | None = None  # a difference of two arms that should be found
    arms: tuple[float, float] = (0.5, 0.5)  # parts of these devices
    alpha: float = ALPHA
    power: float = POWER


class Line(NamedTuple):
    """What one ε gives and takes; None where no number of devices, or of windows, does."""

    epsilon: Fraction
    mechanism: str
    refusal: str | None = None  # why the mechanism cannot serve this ε; then all else is None
    half_width: float | None = None  # from the devices of one window, a part
    devices: int | None = None  # for the wished half-width
    windows: int | None = None  # until these devices have reported
    days: float | None = None
    detectable: float | None = None  # difference of the arms, a part
    to_detect: int | None = None  # devices for the wished effect


class Curve(NamedTuple):
    """Half-widths in the unit of the answers against devices, for one ε."""

    epsilon: Fraction
    points: tuple[tuple[int, float], ...]


def plan(metric: Metric, request: PlanRequest, epsilons: Sequence[Fraction]) -> Iterator[Line]:
    """Yield a line for each ε, with the mechanism of *metric* at its best parameters there."""
    for epsilon in epsilons:
        try:
            mechanism = mechanism_at(metric, epsilon)
        except HearsayError as error:
            yield Line(epsilon, metric.mechanism_name, str(error))
            continue
        yield _line(metric, mechanism, epsilon, request)


def curves(
    metric: Metric,
    epsilons: Sequence[Fraction],
    devices: Sequence[int] = DEVICES,
    share: float = 1.0,
    alpha: float = ALPHA,
) -> list[Curve]:
    """Return the half-width against devices for every ε that the mechanism can serve."""
    whole, planned = scale_of(metric).whole, []
    for epsilon in epsilons:
        try:
            mechanism = mechanism_at(metric, epsilon)
        except HearsayError:
            continue
        points = tuple(
            (n, whole * half_width(mechanism, reports, alpha))
            for n in devices
            if (reports := int(share * n)) > 0
        )
        planned.append(Curve(epsilon, points))
    return planned


def least_epsilon(metric: Metric, request: PlanRequest) -> Fraction | None:
    """Return the least ε, in hundredths, that gives the wished half-width; None: none does."""
    reports = int(request.share * request.devices)

    def enough(hundredths: int) -> bool:
        try:
            mechanism = mechanism_at(metric, Fraction(hundredths, 100))
        except HearsayError:
            return False
        return half_width(mechanism, reports, request.alpha) <= request.half_width

    least = fewest(enough, HUNDREDTHS) if reports else None
    return None if least is None else Fraction(least, 100)


def mechanism_at(metric: Metric, epsilon: Fraction) -> Mechanism[Any]:
    """Return the mechanism that *metric* names, for another ε of a report.

    Raises: HearsayError: it cannot serve this ε.
    """
    if epsilon == metric.epsilon:
        return metric.mechanism
    name, domain, policy = metric.mechanism_name, metric.domain, metric.policy
    if policy is not None:
        of_value = policy.oracle.epsilon if metric.longitudinal == "two_layer" else None
        return choose_policy(name, domain.size, epsilon, of_value, {})[1].mechanism
    fixed = domain.parameters
    own = {k: v for k, v in metric.mechanism.parameters.items() if k in KEPT and k not in fixed}
    return choose(name, metric.family, epsilon, domain.size, own, fixed)[1]


def _line(
    metric: Metric, mechanism: Mechanism[Any], epsilon: Fraction, request: PlanRequest
) -> Line:
    reports = int(request.share * request.devices)
    needed = reports_for(mechanism, request.half_width, request.alpha)
    devices = None if needed is None else ceil(max(needed, metric.min_reports) / request.share)
    windows, days = windows_of(metric, devices, request.devices)
    sizes = int(request.arms[0] * reports), int(request.arms[1] * reports)
    to_detect = None
    if request.effect is not None:
        in_arms = devices_to_detect(
            mechanism, request.effect, request.arms, request.alpha, request.power
        )
        to_detect = None if in_arms is None else ceil(in_arms / request.share)
    return Line(
        epsilon=epsilon,
        mechanism=metric.mechanism_name,
        refusal=None,
        half_width=half_width(mechanism, reports, request.alpha) if reports else None,
        devices=devices,
        windows=windows,
        days=days,
        detectable=detectable(mechanism, sizes, request.alpha, request.power)
        if min(sizes)
        else None,
        to_detect=to_detect,
    )


def windows_of(
    metric: Metric, devices: int | None, a_window: int
) -> tuple[int | None, float | None]:
    """Return the windows, and days, until *devices* reports are there with *a_window* each.

    One window only, where the noise is the same in all: of ``once``, and of policies that repeat.
    """
    if devices is None:
        return None, None
    windows = ceil(devices / a_window)
    if windows > 1 and (metric.policy is not None or metric.every not in LENGTHS):
        return None, None
    length = LENGTHS.get(metric.every)
    return windows, None if length is None else windows * length / DAY
