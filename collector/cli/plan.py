"""``hearsay plan``: what devices and ε give for a metric, and what a wished precision takes."""

from __future__ import annotations

import json
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.registry.metric import Metric
from client_sdk.registry.registry import Registry

from ..estimation.precision import ALPHA
from .root import explained, main

if TYPE_CHECKING:
    from ..planning.planner import Question


class _Within(click.FloatRange):
    """A number between two bounds, and none that is not finite: of nan no bound says anything."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return *value* as a number.  Fails where it is none or out of bounds."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


_LEAST, _MOST = 1e-6, 1e15  # far beyond what any plan is about; floats keep their digits between
_PART = _Within(_LEAST, 1, max_open=True)
_SIZE = _Within(1 / _MOST, _MOST)


@main.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@click.argument("metric")
@click.option("--devices", type=click.IntRange(1, MAX_REPORTS), help="Devices of one window.")
@click.option("--half-width", type=_SIZE, help="Target, in the metric's unit or as a share.")
@click.option(
    "--segment-share", type=_Within(_LEAST, 1), default=1.0,
    show_default=True, help="Part of the devices that the answer is about.",
)  # fmt: skip
@click.option("--effect", type=_SIZE, help="Difference of two arms that should be found.")
@click.option(
    "--arms", type=_PART, nargs=2, default=(0.5, 0.5), show_default=True,
    help="Parts of these devices in the two arms.",
)  # fmt: skip
@click.option("--epsilon", multiple=True, help="ε of a report; repeatable.")
@click.option(
    "--alpha", type=_Within(_LEAST, 0.5), default=ALPHA, show_default=True, help="1 - level."
)
@click.option(
    "--power", type=_Within(0.5, 1 - _LEAST), default=0.8, show_default=True,
    help="Chance to find it.",
)  # fmt: skip
@click.option("--buckets", is_flag=True, help="Into how many buckets to cut a number's range.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@explained
def plan(
    path: str, metric: str, devices: int | None, half_width: float | None, segment_share: float,
    effect: float | None, arms: tuple[float, float], epsilon: tuple[str, ...], alpha: float,
    power: float, buckets: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show what devices and ε give for METRIC, and what a target half-width takes.

    Without options: the expected devices, and the declared need or ±5 points or 5 % of the range.
    """
    from ..estimation.precision import scale_of, wished
    from ..planning.planner import Question

    if sum(arms) > 1:
        raise click.BadParameter("together they are more than all devices", param_hint="--arms")
    one = _metric(path, metric)
    asked = Question(
        devices=one.expected_devices if devices is None else devices,
        half_width=wished(one) if half_width is None else half_width / scale_of(one).whole,
        share=segment_share,
        effect=None if effect is None else effect / scale_of(one).whole,
        arms=arms,
        alpha=alpha,
        power=power,
    )
    if buckets:
        _show_buckets(one, max(int(asked.devices * segment_share), 1), as_json)
    else:
        _show_plan(one, asked, epsilon, as_json)


def _show_plan(metric: Metric, asked: Question, given: tuple[str, ...], as_json: bool) -> None:
    from ..planning.plan_text import data_of, lines_of
    from ..planning.planner import EPSILONS, least_epsilon, plan

    own = () if given else (metric.epsilon,)
    wanted = sorted({*own, *(_epsilon(text) for text in given or EPSILONS)})
    lines = list(plan(metric, asked, wanted))
    least = least_epsilon(metric, asked)
    if as_json:
        data = data_of(metric, asked, lines, least)
        click.echo(json.dumps(data, ensure_ascii=False, indent=2))
        return
    for line in lines_of(metric, asked, lines, least):
        click.echo(line)


def _show_buckets(metric: Metric, devices: int, as_json: bool) -> None:
    from ..planning.buckets import best_buckets
    from ..planning.plan_text import bucket_lines

    if metric.domain.grid is None:
        raise click.BadParameter("must be a metric of numbers for --buckets", param_hint="METRIC")
    found = best_buckets(metric.domain.grid, metric.epsilon, devices)
    if as_json:
        click.echo(json.dumps([one._asdict() for one in found], indent=2))
        return
    for line in bucket_lines(metric, devices, found):
        click.echo(line)


def _epsilon(text: str) -> Fraction:
    from client_sdk.mechanisms import parse_epsilon

    return parse_epsilon(text)


def _metric(path: str, name: str) -> Metric:
    registry = Registry.from_file(path)
    if name not in registry.metrics:
        known = ", ".join(sorted(registry.metrics))
        raise click.BadParameter(f"must be one of {known}", param_hint="METRIC")
    return registry.metric(name)
