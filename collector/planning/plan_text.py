"""A plan as a table for people, and as plain data for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from client_sdk.privacy.wording import a_period
from client_sdk.registry.metric import Metric

from ..core.text_tables import table_lines
from ..estimation.precision import in_words, scale_of
from .buckets import Buckets
from .planner import Line, PlanRequest

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
            f"of {100 * request.power:g} %; who is in which arm is taken as chance too"
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
