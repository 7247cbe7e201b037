"""A plan for one metric: what devices and ε give, and what a wished precision takes.  Pure.

It is shown as a table for people, and as plain data for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final, NamedTuple

from client_sdk.core.epoch import DAY, LENGTHS
from client_sdk.core.errors import HearsayError
from client_sdk.privacy.wording import a_period
from client_sdk.registry.metric import Metric
from client_sdk.registry.selection import choose, choose_policy

from ..core.text_tables import table_lines
from ..estimation.arrays import AnyMechanism
from ..estimation.precision import (
    ALPHA,
    detectable,
    devices_to_detect,
    drawn,
    fewest,
    half_width,
    in_words,
    reports_for,
    scale_of,
)
from .buckets import Buckets

POWER: Final = 0.8  # chance that an effect of the planned size is found
EPSILONS: Final = ("0.5", "1", "2", "4")
_HUNDREDTHS: Final = 1_600  # of a nat: the largest epsilon of a report
DEVICES: Final = tuple(round(10 ** (step / 4)) for step in range(8, 29))  # 100 to 10 million
KEPT: Final = (
    "pad",
    "bins",
    "sampled",
    "sets",
    "delta_exponent",
)  # parameters that are no matter of ε


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
            (n, whole * half_width(mechanism, reports, alpha, drawn(metric)))
            for n in devices
            if (reports := int(share * metric.sample.share * n)) > 0
        )
        planned.append(Curve(epsilon, points))
    return planned


def least_epsilon(metric: Metric, request: PlanRequest) -> Fraction | None:
    """Return the least ε, in hundredths, that gives the wished half-width; None: none does."""
    reports = int(request.share * metric.sample.share * request.devices)

    def enough(hundredths: int) -> bool:
        try:
            mechanism = mechanism_at(metric, Fraction(hundredths, 100))
        except HearsayError:
            return False
        reach = half_width(mechanism, reports, request.alpha, drawn(metric))
        return reach <= request.half_width

    least = fewest(enough, _HUNDREDTHS) if reports else None
    return None if least is None else Fraction(least, 100)


def mechanism_at(metric: Metric, epsilon: Fraction) -> AnyMechanism:
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
    return choose(name, domain.encodes.family, epsilon, domain.size, own, fixed)[1]


def _line(metric: Metric, mechanism: AnyMechanism, epsilon: Fraction, request: PlanRequest) -> Line:
    part = request.share * metric.sample.share
    reports = int(part * request.devices)
    more = drawn(metric)
    needed = reports_for(mechanism, request.half_width, request.alpha, more)
    devices = None if needed is None else ceil(max(needed, metric.min_reports) / part)
    windows, days = _windows_of(metric, devices, request.devices)
    sizes = int(request.arms[0] * reports), int(request.arms[1] * reports)
    to_detect = None
    if request.effect is not None:
        in_arms = devices_to_detect(
            mechanism, request.effect, request.arms, request.alpha, request.power
        )
        to_detect = None if in_arms is None else ceil(in_arms / part)
    return Line(
        epsilon=epsilon,
        mechanism=metric.mechanism_name,
        refusal=None,
        half_width=half_width(mechanism, reports, request.alpha, more) if reports else None,
        devices=devices,
        windows=windows,
        days=days,
        detectable=detectable(mechanism, sizes, request.alpha, request.power)
        if min(sizes)
        else None,
        to_detect=to_detect,
    )


def _windows_of(
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


NEVER: Final = "never"
_SHOWN: Final = 5  # numbers of buckets


def lines_of(
    metric: Metric, request: PlanRequest, lines: Sequence[Line], least: Fraction | None
) -> Iterator[str]:
    """Yield the plan as text, one line after another."""
    yield _head(metric, request)
    yield f"intervals of {100 * (1 - request.alpha):g} %, {metric.domain.error_of}"
    wish = in_words(metric, request.half_width)
    heads = ["ε", "one window gives", f"devices for {wish}", "windows", "days", "their ε"]
    if request.effect is not None:
        apart = in_words(metric, request.effect)[1:]
        heads += ["finds a difference of", f"devices for {apart}"]
    rows = [_cells(metric, request, line) for line in lines]
    yield from table_lines([heads, *rows], ">" * len(heads), indent="  ")
    for line in lines:
        if line.refusal is not None:
            yield f"ε {float(line.epsilon):g}: {line.mechanism} cannot serve: {line.refusal}"
    given = f"takes ε {float(least):g}" if least is not None else "cannot be reached at any ε"
    yield f"{wish} from one window {given}"
    if request.effect is not None:
        first, second = (f"{100 * part:g} %" for part in request.arms)
        yield (
            f"differences are between {first} and {second} of these devices, found with a chance "
            f"of {100 * request.power:g} %; the arm of each device is taken as chance too"
        )


def data_of(
    metric: Metric, request: PlanRequest, lines: Sequence[Line], least: Fraction | None
) -> dict[str, Any]:
    """Return the plan as JSON types, half-widths and differences in the unit of the answers."""
    unit, whole = scale_of(metric)
    scaled = {"half_width": whole, "detectable": whole}
    rows = []
    for line in lines:
        row = {**line._asdict(), "epsilon": float(line.epsilon)}
        rows.append(row | {k: row[k] and row[k] * whole for k in scaled})
    effect = None if request.effect is None else request.effect * whole
    return {
        "metric": metric.name,
        "unit": unit,
        "devices": request.devices,
        "half_width": request.half_width * whole,
        "share": request.share,
        "effect": effect,
        "arms": list(request.arms),
        "alpha": request.alpha,
        "power": request.power,
        "least_epsilon": None if least is None else float(least),
        "rows": rows,
    }


def bucket_lines(metric: Metric, devices: int, choices: Sequence[Buckets]) -> Iterator[str]:
    """Yield the best numbers of buckets for a histogram of numbers, the best first."""
    yield (
        f"{metric.name}: a histogram of {devices:,} devices at ε {float(metric.epsilon):g}; "
        "integrated squared error of a density on a range of 1, for a population like a bell"
    )
    cells = [
        [str(choice.buckets), f"{choice.bias:.3g}", f"{choice.noise:.3g}", f"{choice.total:.3g}"]
        for choice in choices[:_SHOWN]
    ]
    heads = ["buckets", "smeared", "noise", "together"]
    yield from table_lines([heads, *cells], ">>>>", indent="  ")


def _head(metric: Metric, request: PlanRequest) -> str:
    of = "" if request.share == 1 else f"; a segment of {100 * request.share:g} % of them"
    if sample := metric.sample.in_words:
        of += f"; {sample}"
    named = f"{metric.name}: {metric.domain.size_in_words()}, {metric.mechanism_name}"
    return f"{named}; {request.devices:,} devices {a_period(metric.every)}{of}"


def _cells(metric: Metric, request: PlanRequest, line: Line) -> list[str]:
    """Return the columns of a line; the metric's own ε is marked."""
    own = "*" if line.epsilon == metric.epsilon else ""
    spent = None if line.windows is None else float(line.windows * line.epsilon)
    cells = [
        f"{own}{float(line.epsilon):g}",
        NEVER if line.half_width is None else in_words(metric, line.half_width),
        *(_number(number) for number in (line.devices, line.windows, line.days)),
        NEVER if spent is None else f"{spent:g}",
    ]
    if request.effect is not None:
        cells += [
            NEVER if line.detectable is None else in_words(metric, line.detectable)[1:],
            _number(line.to_detect),
        ]
    return cells


def _number(number: float | None) -> str:
    return NEVER if number is None else f"{number:,.10g}"
