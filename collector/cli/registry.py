"""Commands before any data exist: ``hearsay registry``, ``hearsay plan`` and ``hearsay audit``.

They check a metrics.toml and generate its handles, plan precision against ε and devices, and attack
the mechanisms as installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from client_sdk.core.errors import HearsayError, InvalidParameterError
from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.panel import with_samples
from client_sdk.privacy.time_off import DAYS_ON
from client_sdk.registry.contract import Registry, is_compiled, lock_of, read_text
from client_sdk.registry.lock import lock_beside, lock_text
from client_sdk.registry.metric import Metric

from ..estimation.precision import ALPHA
from .root import (
    json_option,
    main,
    metrics_option,
    registry_file,
    say,
    show,
    strict_option,
)

if TYPE_CHECKING:
    from ..planning.machines import Hours
    from ..planning.planner import PlanRequest


@main.group()
def registry() -> None:
    """Write, check, plan, lock, compile and retire the metrics of a metrics.toml."""


_hours_on = click.option(
    "--hours-on", type=click.IntRange(1, 24), metavar="HOURS",
    help="Plan for machines that run so many hours a day.",
)  # fmt: skip
_days_on = click.option(
    "--days-on", type=click.IntRange(1, 7), metavar="DAYS",
    help=f"With --hours-on: on so many days of a week, {DAYS_ON} by default.",
)  # fmt: skip


def _hours(hours_on: int | None, days_on: int | None) -> Hours | None:
    """Return when machines run; None without the option."""
    from ..planning.machines import Hours

    if hours_on is None and days_on is not None:
        raise click.UsageError("--days-on goes with --hours-on")
    return None if hours_on is None else Hours(hours_on, days_on or DAYS_ON)


@registry.command()
@registry_file
@click.option(
    "--expires-within", type=click.IntRange(0, 36_500), metavar="DAYS",
    help="Fail if a metric has expired, or will within so many days.",
)  # fmt: skip
@strict_option
@_hours_on
@_days_on
def check(
    path: str, expires_within: int | None, strict: bool, hours_on: int | None, days_on: int | None
) -> None:
    """Check a registry file, and show the cost and precision of each metric.

    It warns of ε above the SDK's default caps, of dates that are near or past, and of hopeless
    precision.  See docs/ask/plan.md#machines-that-are-off for machines that are off at night.
    """
    from ..planning.machines import hours_lines, with_hours
    from ..planning.panels import starvation_lines
    from ..planning.registry_report import describe_metrics, expiring, problems, warnings

    read, hours = load_registry(path), _hours(hours_on, days_on)
    loaded, today = with_hours(read, hours), datetime.now(UTC).date()
    doubts = [
        *(f"  warning: {line}" for line in warnings(loaded, today)),
        *starvation_lines(read),
        *hours_lines(read, hours),
    ]
    wrong = list(problems(loaded))
    if expires_within is not None:
        wrong += expiring(loaded, today, expires_within)
    say((*describe_metrics(loaded), *doubts, *_advice(path, loaded)))
    for line in wrong:
        click.echo(line, err=True)
    if wrong or (strict and doubts):
        raise SystemExit(1)


def _advice(path: str, loaded: Registry) -> Iterator[str]:
    """Yield what a lock would keep, if the registry at *path* has none."""
    from ..planning.registry_report import left_open

    text = read_text(path)
    beside, name, own = lock_beside(path)
    if is_compiled(text) or beside is None or Path(beside).exists():
        return
    if names := left_open(text, loaded):
        yield (
            f"  advice: there is no {name}, so another release may choose another mechanism for"
            f" {', '.join(names)}; hearsay registry lock {own} keeps today's"
        )


@registry.command()
@registry_file
@click.option(
    "--max-payload",
    type=click.IntRange(1),
    help="Longest payload of a report, in bytes: 8 by default, of sets 32.",
)
@click.option("--cap", help="Fit all metrics by a panel of this ε in any seven days.")
@click.option(
    "--devices", type=click.IntRange(1, MAX_REPORTS), help="With --cap: the number of devices."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, writable=True),
    help="With --cap: write the registry with its panel and weights.",
)  # fmt: skip
@_hours_on
@_days_on
def plan(
    path: str, max_payload: int | None, cap: str | None, devices: int | None, output: str | None,
    hours_on: int | None, days_on: int | None,
) -> None:  # fmt: skip
    """Compare the mechanisms that could serve each metric, the most accurate first.

    Each with its predicted error, the bytes of a payload, and why auto takes the one it takes.
    With --cap, choose the weights of a panel that fits all metrics instead.
    """
    from ..planning.registry_report import compare_mechanisms

    hours = _hours(hours_on, days_on)
    if cap is not None:
        _fit(path, Caps(week=cap).week, devices, output, hours)
        return
    if devices is not None or output is not None or hours is not None:
        raise click.UsageError("--devices, --output and --hours-on go with --cap")
    for metric in load_registry(path):
        say(compare_mechanisms(metric, max_payload))


@registry.command()
@registry_file
@click.argument("metric")
@click.option(
    "--ask", "asks", multiple=True, default=("quantiles",), show_default=True,
    metavar="WHAT[=WEIGHT]",
    help="Each of the items, quantiles (the share up to an item) or ranges (the share from one item"
    " to another); may be repeated.",
)  # fmt: skip
@click.option(
    "--sets",
    type=click.IntRange(2, 2_048),
    help="Most sets of several items; 4 an item by default.",
)
def design(path: str, metric: str, asks: tuple[str, ...], sets: int | None) -> None:
    """Find the channel that answers the questions asked of ordered items with the least error.

    Shows its error beside those of other mechanisms, and the two lines for the registry. For 16
    items it takes a few seconds, for 128 some minutes.
    """
    from ..planning.design import design_lines

    weights = dict(map(_weight, asks))
    if len(weights) < len(asks):
        raise click.BadParameter("must name each question once", param_hint="--ask")
    say(design_lines(_metric(path, metric), weights, sets))


def _weight(ask: str) -> tuple[str, float]:
    """Return the name and the weight, 1 by default, of one ``--ask``."""
    name, equals, weight = ask.partition("=")
    try:
        return name, float(weight) if equals else 1.0
    except ValueError:
        raise click.BadParameter("must be NAME or NAME=WEIGHT", param_hint="--ask") from None


@registry.command()
@registry_file
def budget(path: str) -> None:
    """Show the most that a device is charged: ε of a report, a week, a year and for life.

    See docs/guide/privacy-budget.md#what-a-registry-costs-a-device.
    """
    from ..planning.registry_report import budget_lines

    say(budget_lines(load_registry(path)))


def _fit(
    path: str, week: int, devices: int | None, output: str | None, hours: Hours | None
) -> None:
    """Show, and write, the panel that fits the registry at *path* into *week* nano-epsilon."""
    from ..planning.machines import hours_lines, with_hours
    from ..planning.panels import fit_lines, fitted, remedies, rewritten

    unfitted = Registry.from_file(path)
    try:
        panel = fitted(unfitted, week, devices)
    except InvalidParameterError:
        click.echo("not even a panel helps: with one metric at a time", err=True)
        for line in remedies(unfitted, week):
            click.echo(f"  {line}", err=True)
        raise SystemExit(1) from None
    say((*fit_lines(with_hours(panel, hours)), *hours_lines(panel, hours)))
    if output is not None:
        lock = lock_of(path)
        text = rewritten(Path(path).read_text("utf-8"), panel, lock)
        Path(output).write_text(text, encoding="utf-8")
        if lock is not None:
            write_lock(output, panel)


def write_lock(path: str, registry: Registry) -> str:
    """Write what *registry* has as the lock of the file at *path*, and return the lock's name."""
    beside, name, own = lock_beside(path)
    if beside is None:
        raise click.BadParameter(f"must not have the name of a lock: {own}")
    try:
        Path(beside).write_text(lock_text(registry.metrics), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{beside}: cannot be written: {error.strerror}") from error
    return name


def load_registry(path: str) -> Registry:
    """Return the registry, or list its problems on standard error and exit with status 1."""
    return readable(lambda: with_samples(Registry.from_file(path)))


def readable(read: Callable[[], Registry]) -> Registry:
    """Return what *read* does, or list its problems and exit with status 1."""
    try:
        return read()
    except HearsayError as error:
        for problem in getattr(error, "problems", (str(error),)):
            click.echo(problem, err=True)
        raise SystemExit(1) from None


class _Within(click.FloatRange):
    """A finite number between two bounds: nan would be within any."""

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


@main.command("plan")
@registry_file
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
@click.option("--epsilon", multiple=True, help="ε of a report; may be repeated.")
@click.option(
    "--alpha",
    type=_Within(_LEAST, 0.5),
    default=ALPHA,
    show_default=True,
    help="1 - confidence level.",
)
@click.option(
    "--power", type=_Within(0.5, 1 - _LEAST), default=0.8, show_default=True,
    help="Chance to find the effect.",
)  # fmt: skip
@click.option(
    "--buckets", is_flag=True, help="Show the best number of buckets for a number's range."
)
@click.option(
    "--shuffled", is_flag=True, help="Show the ε that is left by a relay that shuffles reports."
)
@click.option(
    "--colluding", type=_Within(0, 1, max_open=True), default=0.0, show_default=True,
    help="With --shuffled: part of the devices that work with the collector.",
)  # fmt: skip
@json_option
def plan_metrics(
    path: str, metric: str, devices: int | None, half_width: float | None, segment_share: float,
    effect: float | None, arms: tuple[float, float], epsilon: tuple[str, ...], alpha: float,
    power: float, buckets: bool, shuffled: bool, colluding: float, as_json: bool,
) -> None:  # fmt: skip
    """Show what devices and ε give for METRIC, and what a target half-width takes.

    Without options: the expected devices, and the declared need or ±5 points or 5 % of the range.
    See docs/ask/plan.md.
    """
    from ..estimation.precision import scale_of, wished
    from ..planning.planner import PlanRequest

    if sum(arms) > 1:
        raise click.BadParameter("together they are more than all devices", param_hint="--arms")
    chosen = _metric(path, metric)
    request = PlanRequest(
        devices=chosen.expected_devices if devices is None else devices,
        half_width=wished(chosen) if half_width is None else half_width / scale_of(chosen).whole,
        share=segment_share,
        effect=None if effect is None else effect / scale_of(chosen).whole,
        arms=arms,
        alpha=alpha,
        power=power,
    )
    if shuffled:
        reports = int(request.devices * segment_share * chosen.sample.share)
        _show_shuffled(chosen, reports, colluding, as_json)
    elif buckets:
        _show_buckets(chosen, max(int(request.devices * segment_share), 1), as_json)
    else:
        _show_plan(chosen, request, epsilon, as_json)


def _show_plan(
    metric: Metric, request: PlanRequest, epsilons: tuple[str, ...], as_json: bool
) -> None:
    from ..planning.planner import EPSILONS, data_of, least_epsilon, lines_of, plan

    own = () if epsilons else (metric.epsilon,)
    levels = sorted({*own, *(_epsilon(text) for text in epsilons or EPSILONS)})
    lines = list(plan(metric, request, levels))
    least = least_epsilon(metric, request)
    document = data_of(metric, request, lines, least) if as_json else None
    show(document, lines_of(metric, request, lines, least))


def _show_shuffled(metric: Metric, reports: int, colluding: float, as_json: bool) -> None:
    from ..planning.shuffling import shuffled_data, shuffled_lines

    given = metric, reports, Fraction(str(colluding))
    show(shuffled_data(*given) if as_json else None, shuffled_lines(*given))


def _show_buckets(metric: Metric, devices: int, as_json: bool) -> None:
    from ..planning.buckets import best_buckets
    from ..planning.planner import bucket_lines

    if metric.domain.grid is None:
        raise click.BadParameter("must be a metric of numbers for --buckets", param_hint="METRIC")
    choices = best_buckets(metric.domain.grid, metric.epsilon, devices)
    document = [choice._asdict() for choice in choices] if as_json else None
    show(document, bucket_lines(metric, devices, choices))


def _epsilon(text: str) -> Fraction:
    from client_sdk.mechanisms import parse_epsilon

    return parse_epsilon(text)


def _metric(path: str, name: str) -> Metric:
    registry = with_samples(Registry.from_file(path))
    if name not in registry.metrics:
        names = ", ".join(sorted(registry.metrics))
        raise click.BadParameter(f"must be one of {names}", param_hint="METRIC")
    return registry.metric(name)


@main.command()
@click.option("--mechanism", "wanted", multiple=True, help="Only this mechanism; may be repeated.")
@click.option("--epsilon", default="1", show_default=True, help="ε to claim, per report.")
@click.option(
    "--domain-size", default=16, show_default=True, help="Items, or grid points of a number."
)
@click.option("--draws", default=200_000, show_default=True, help="Reports for either side.")
@click.option("--pairs", default=4, show_default=True, help="Pairs of values that share them.")
@click.option(
    "--device", metavar="COMMAND", help="Attack this program instead: JSON lines in and out."
)
@click.option(
    "--registry", "registry_path", type=click.Path(exists=True, dir_okay=False),
    help="With --device: the registry that the program was built with.",
)  # fmt: skip
@metrics_option
@json_option
@click.pass_context
def audit(
    context: click.Context,
    wanted: tuple[str, ...],
    epsilon: str,
    domain_size: int,
    draws: int,
    pairs: int,
    device: str | None,
    registry_path: str | None,
    metrics: tuple[str, ...],
    as_json: bool,
) -> None:
    """Attack the mechanisms as installed here; exit status 1 if one reveals more than it claims.

    Reports of pairs of values bound ε from below: see
    docs/operate/commands.md#what-hearsay-audit-tests.  --metric goes with --device.
    """
    from ..audit.audit import mechanisms_of, run

    if device is not None or registry_path is not None or metrics:
        if device is None or registry_path is None:
            raise click.UsageError("--device and --registry go together, --metric with them")
        typed = (
            context.get_parameter_source(name) for name in ("wanted", "epsilon", "domain_size")
        )
        if any(source is not ParameterSource.DEFAULT for source in typed):
            raise click.UsageError("a device claims what its registry says, and nothing else")
        registered = load_registry(registry_path)
        chosen = [_metric(registry_path, name) for name in metrics] or list(registered)
        raise SystemExit(_audit_device(device, chosen, draws, pairs, as_json))
    mechanisms = mechanisms_of(wanted, epsilon, domain_size)
    raise SystemExit(run(mechanisms, draws, as_json, click.echo, pairs))


def _audit_device(
    command: str, metrics: list[Metric], draws: int, pairs: int, as_json: bool
) -> int:
    """Audit the reports of the program *command* of *metrics*; return the exit status."""
    from ..audit.audit import tell
    from ..audit.device import Device, audit_device

    with Device(command) as device:
        audits = audit_device(device, metrics, draws, pairs)
    return tell(audits, draws, as_json, click.echo)
