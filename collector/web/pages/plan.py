"""Plan: the interval to expect from devices and ε, before any device is asked; with sliders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, log10
from typing import Any, Final

from flask import Blueprint, request
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from client_sdk.privacy.budget import guesses, nano_of, odds
from client_sdk.registry.metric import Metric

from ...analytics.rows import SHARE
from ...core.credentials import VIEW
from ...core.errors import QueryError
from ...estimation.precision import in_words, scale_of, wished
from ...planning.planner import EPSILONS, NEVER, Line, PlanRequest, curves, least_epsilon, plan
from ...planning.planner import Curve as Points
from ...rendering.charts import page_chart
from ...rendering.charts.curve import Curve, curve_picture
from ..api.openapi import in_query
from ..auth import scope, visible
from .choices import require_known
from .layout import shown

blueprint = Blueprint("plan", __name__)

LEAST, MOST = 2, 7  # powers of ten of the devices
_NUMBER: Final = {"anyOf": [{"type": "number"}, {"const": ""}]}  # "" of a field left empty
_NONE: Final = "no number is enough"
_AT_ONCE: Final = "all in one window, as later reports of a device add nothing"
_PARAMETERS: Final = (
    in_query("metric", {"type": "string"}, "The name of a metric."),
    in_query("devices", _NUMBER, "Devices, as a power of ten."),
    in_query("epsilon", _NUMBER, "ε of a report."),
    in_query("share", _NUMBER, "Share of a segment, in percent of the devices."),
    in_query("need", _NUMBER, "Half-width needed, in percent or in the metric's unit."),
)


@dataclass(frozen=True)
class Sliders:
    """The values of the sliders."""

    power: float  # of ten: devices
    epsilon: Fraction
    share: float  # percent
    need: float  # in percent points or the unit of the metric

    @property
    def devices(self) -> int:
        """The devices, in two digits."""
        exact = 10**self.power
        step = 10 ** (int(log10(exact)) - 1)
        return int(round(exact / step) * step)


@blueprint.get("/plan")
@scope(VIEW, page=True)
def plan_page() -> ResponseReturnValue:
    """Show the interval to expect from devices and ε, and what a needed one takes."""
    require_known(request.args, _PARAMETERS)
    metrics = list(visible())
    name = request.args.get("metric")
    metric = visible().metric(name) if name else (metrics[0] if metrics else None)
    planned = _planned(metric, _sliders_of(metric, request.args)) if metric else {}
    return shown("plan.html", metrics=metrics, metric=metric, least=LEAST, most=MOST, **planned)


def _sliders_of(metric: Metric, parameters: Mapping[str, str]) -> Sliders:
    """Read the sliders; a missing one is as the metric declares it.

    Raises: QueryError: names the parameter and what would work.
    """
    unit, whole = scale_of(metric)
    factor = 100.0 if unit == SHARE else whole
    usual = {
        "devices": min(max(log10(metric.expected_devices), LEAST), MOST),
        "epsilon": float(metric.epsilon),
        "share": 100.0,
        "need": wished(metric) * factor,
    }
    bounds = {
        "devices": (LEAST, MOST),
        "epsilon": (0.1, 16.0),
        "share": (1.0, 100.0),
        "need": (factor / 10_000, factor),
    }
    values = {
        name: _number(parameters[name], name, *bounds[name]) if parameters.get(name) else default
        for name, default in usual.items()
    }
    epsilon = Fraction(f"{values['epsilon']:.2f}") if parameters.get("epsilon") else metric.epsilon
    return Sliders(values["devices"], epsilon, values["share"], values["need"])


def _number(text: str, name: str, low: float, high: float) -> float:
    try:
        number = float(text) if text.isascii() and len(text) < 30 else float("nan")
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise QueryError(name, f"must be a number from {low:g} to {high:g}")
    return number


def _planned(metric: Metric, sliders: Sliders) -> dict[str, Any]:
    """Return what the page shows of a plan."""
    unit, extent = scale_of(metric)
    part = sliders.need / (100.0 if unit == SHARE else extent)
    target = PlanRequest(sliders.devices, part, sliders.share / 100)
    epsilons = sorted({sliders.epsilon, *map(Fraction, EPSILONS)})
    lines = list(plan(metric, target, epsilons))
    own = next(line for line in lines if line.epsilon == sliders.epsilon)
    least = least_epsilon(metric, target)
    whole = ceil(sliders.devices * sliders.share / 100)
    segment = ceil(sliders.devices * sliders.share / 100 * metric.sample.share)
    return {
        "sliders": sliders,
        "unit": "points" if unit == SHARE else unit,
        "own": _line_in_words(metric, own, segment),
        "lines": [_line_in_words(metric, line, segment) for line in lines],
        "least_epsilon": None if least is None else f"{float(least):g}",
        "precision": in_words(metric, part),
        "odds": odds(nano_of(sliders.epsilon), metric.mechanism.delta),
        "guesses": guesses(nano_of(sliders.epsilon), metric.mechanism.delta),
        "curve": _curve(metric, sliders, epsilons, part * extent),
        "power": f"{sliders.power:.2f}",
        "need": f"{sliders.need:.3g}",
        "segment": segment,
        "whole": whole,
        "none_is_enough": _NONE,
    }


def _line_in_words(metric: Metric, line: Line, reports: int) -> dict[str, Any]:
    """Return a line of the plan in words."""
    half = NEVER if line.half_width is None else in_words(metric, line.half_width)
    if reports < metric.min_reports:
        half = f"no number below {metric.min_reports:,} reports"
    detectable = None if line.detectable is None else in_words(metric, line.detectable)[1:]
    numbers = ("devices", "windows", "days")
    counted = {
        name: _NONE if (n := getattr(line, name)) is None else f"{n:,.10g}" for name in numbers
    }
    if line.devices is not None and line.windows is None:
        counted["windows"] = _AT_ONCE
    if line.days is not None:
        counted["days"] += " day" if line.days == 1 else " days"
    return {
        "epsilon": f"{float(line.epsilon):g}",
        "half_width": half,
        "refusal": line.refusal,
        "detectable": detectable,
        "odds": odds(nano_of(line.epsilon), metric.mechanism.delta),
        **counted,
    }


def _points_shown(metric: Metric, points: Points, sliders: Sliders) -> Iterator[tuple[int, float]]:
    """Yield the points of a curve where answers have numbers; for a share, useful ones only."""
    unit = scale_of(metric).unit
    for devices, half_width in points.points:
        reports = int(devices * sliders.share / 100 * metric.sample.share)
        enough = reports >= metric.min_reports
        if enough and (unit != SHARE or half_width <= 1):
            yield devices, half_width


def _curve(metric: Metric, sliders: Sliders, epsilons: list[Fraction], need: float) -> Markup:
    all_curves = curves(metric, epsilons, share=sliders.share / 100)
    drawn = [
        Curve(f"ε {float(points.epsilon):g}", tuple(_points_shown(metric, points, sliders)))
        for points in all_curves
    ]
    title = "Half-width of the interval against devices"
    unit = scale_of(metric).unit
    picture = partial(curve_picture, drawn, title, unit=unit, devices=sliders.devices, need=need)
    return Markup(page_chart(lambda options: [picture(options=options)], "curve"))  # noqa: S704  # it escapes
