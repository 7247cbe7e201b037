"""What a registry costs and answers before any data exist: lines for people.  Pure.

Its metrics and mechanisms with the error to expect; problems and warnings of a valid registry;
and what it costs a device: ε of a report, of a week, of a year and for life.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import ceil, tanh
from typing import Final

from client_sdk.core.limits import (
    DEFAULT_CAP_DELTA,
    DEFAULT_CAP_LIFETIME,
    DEFAULT_CAP_REPORT,
    DEFAULT_CAP_WEEK,
    EXPIRES_SOON,
)
from client_sdk.mechanisms import DistributionMechanism, KeyValueMechanism
from client_sdk.privacy.budget import (
    FORGED_WEEKS,
    WEEK,
    YEAR,
    Cost,
    chance,
    cost_of,
    costs_together,
    delta_of_a_year,
    epsilon,
    nano_of,
)
from client_sdk.privacy.wording import a_period, counted
from client_sdk.registry.contract import Registry
from client_sdk.registry.keys import AUTO, SMOOTH
from client_sdk.registry.lock import chosen_parameters, parameters_text
from client_sdk.registry.metric import Metric
from client_sdk.registry.selection import (
    SAME_ERROR,
    Candidate,
    candidates,
    contenders,
    payload_limit,
    policy_candidates,
)

from ..analytics.poisoning.influence import FAKES, mean_reach
from ..core.text_tables import table_lines
from ..estimation.estimate import normal_quantile
from ..estimation.precision import ALPHA, drawn, half_width, in_words, still_needed, wished

_HELD = 0.1  # share of the devices that hold a key, for the error of the mean of its numbers
_FRAGILE: Final = 5  # times the least reach of a report; those of bounded noise have below 4
_USELESS: Final = 0.25  # half-width as a part of all that the answer can be


def describe_metrics(registry: Registry) -> Iterator[str]:
    """Yield one line a metric: mechanism, epsilon, bytes, and the interval to expect."""
    yield f"{registry.app}: {counted(len(registry.metrics), 'metric')}"
    for metric in registry:
        yield (
            f"  {metric.name}: {metric.mechanism_name}, "
            f"{privacy(metric)} a report{_bounds(metric)}, "
            f"one {a_period(metric.every)}{_source(metric)}, "
            f"{counted(metric.mechanism.payload_size, 'byte')}, digest {metric.digest.hex()}; "
            f"{metric.expected_devices:,} devices give {plus_minus(metric)}{_of_sample(metric)}"
            f"{_never(metric)}"
        )


def _never(metric: Metric) -> str:
    """Return what can never be asked of numbers as they are reported."""
    if metric.domain.grid is None or isinstance(metric.mechanism, DistributionMechanism):
        return ""
    return "; answers mean and sum, not quantiles"


def _of_sample(metric: Metric) -> str:
    """Return which part of the devices reports, and how many reports that is."""
    if metric.sample.share >= 1:
        return ""
    share = f"{100 * metric.sample.share:.3g} %"
    return f" from {counted(metric.expected_reports, 'report')}, as {share} of the devices report"


def privacy(metric: Metric) -> str:
    """Return ε of a report, and δ if privacy is not pure."""
    delta = metric.mechanism.delta
    return f"ε {metric.epsilon}" + (f" and δ {chance(delta)}" if delta else "")


def _source(metric: Metric) -> str:
    """Return of what the one report of an epoch is made, where it is not of one value."""
    aggregation = metric.aggregation
    return "" if aggregation is None else f": {aggregation}"


def _bounds(metric: Metric) -> str:
    """Return ε of a value and of a life, where repeated reports have such bounds."""
    policy = metric.policy
    if policy is None or (life := cost_of(metric).life) is None:
        return ""
    return f", ε {policy.oracle.epsilon} per value, charged at most ε {epsilon(life)} for life"


def plus_minus(metric: Metric) -> str:
    """Return the half-width of a 95 % interval with the expected devices, in words."""
    domain, mechanism, devices = metric.domain, metric.mechanism, metric.expected_reports
    if domain.grid:
        reach = domain.extent * half_width(mechanism, devices, ALPHA, drawn(metric))
        return f"±{_figures(reach)} {domain.unit}"
    points = 100 * half_width(mechanism, devices, ALPHA, drawn(metric))
    shares = f"±{_figures(points)} {domain.error_unit}"
    if not domain.numbers or not isinstance(mechanism, KeyValueMechanism):
        return shares
    part = min(normal_quantile(ALPHA) * mechanism.predict_mean(devices, _HELD), 0.5)
    mean = f"±{_figures(part * domain.numbers.extent)} {domain.numbers.unit}"
    return f"{shares}, and {mean} for the mean of a key that {100 * _HELD:.0f} % hold"


def _figures(number: float, digits: int = 2) -> str:
    """Return *number* with so many figures, and never as a power of ten."""
    return f"{Decimal(f'{number:.{digits}g}'):,f}"


def compare_mechanisms(metric: Metric, payload_bytes: int | None = None) -> Iterator[str]:
    """Yield the cost and precision of each mechanism, the most accurate first.

    Args: payload_bytes: the longest payload that may be sent; that of ``auto`` by default.
    """
    family = metric.domain.encodes.family
    if payload_bytes is None:
        payload_bytes = payload_limit(family) // 8
    bits, fixed = 8 * payload_bytes, metric.domain.parameters
    if metric.policy is None:
        choices = candidates(family, metric.epsilon, metric.domain.size, bits, fixed)
    else:
        of_value = metric.policy.oracle.epsilon if metric.longitudinal == "two_layer" else None
        choices = policy_candidates(metric.domain.size, metric.epsilon, of_value, bits)
    near = contenders(choices, bits)
    least = min((choice.error for choice in choices if choice.fits(bits)), default=0)
    devices, limit = counted(metric.expected_devices, "device"), counted(payload_bytes, "byte")
    yield f"{metric.name}: {metric.domain.size_in_words()}, ε {metric.epsilon}{_bounds(metric)}"
    if metric.policy is not None:
        yield f"  {metric.policy.name}: {metric.policy.leak}"
    yield f"  in use: {pinned(metric)}; with {devices}, and at most {limit}:"
    for candidate in sorted(choices, key=lambda candidate: _error(candidate, metric)):
        verdict = f"; {_reason(near, least)}{_unless(metric)}" if candidate in near[:1] else ""
        yield f"  {candidate.name}: {_cost(candidate, metric, payload_bytes)}{verdict}"


def _unless(metric: Metric) -> str:
    return ", unless ask names quantiles" if metric.domain.grid else ""


def pinned(metric: Metric) -> str:
    """Return the lines of a registry that keep the mechanism of *metric* as it is."""
    own = parameters_text(metric)
    return f'mechanism = "{metric.mechanism_name}"' + (
        f" and parameters = {own}" if chosen_parameters(metric) else ""
    )


def left_open(text: str, registry: Registry) -> list[str]:
    """Return the metrics of *registry* of which its *text* leaves a choice to the release."""
    entries = tomllib.loads(text)["metrics"]
    return [
        metric.name
        for metric in registry
        if entries[metric.name].get("mechanism", AUTO) == AUTO
        or (chosen_parameters(metric) and "parameters" not in entries[metric.name])
    ]


def _cost(candidate: Candidate, metric: Metric, payload_bytes: int) -> str:
    mechanism = candidate.mechanism
    if mechanism is None:
        return f"cannot serve: {candidate.refusal}"
    error = f"{_figures(100 * _error(candidate, metric), 3)} {metric.domain.error_unit}"
    cost = f"error {error}, {counted(mechanism.payload_size, 'byte')}"
    if not mechanism.automatic:
        return f"{cost}; only by name"
    return f"{cost}; too long" if mechanism.payload_size > payload_bytes else cost


def _error(candidate: Candidate, metric: Metric) -> float:
    """Return the standard error to expect from the expected devices; infinite for a refusal."""
    mechanism = candidate.mechanism
    return mechanism.predict(metric.expected_reports) if mechanism else float("inf")


def _reason(near: list[Candidate], least: float) -> str:
    """Return why the first of *near*, whose errors are about equal, comes first."""
    if near[0].error > least * SAME_ERROR:
        return "auto takes it: less error is not worth the costlier fold"
    if len(near) == 1:
        return "auto takes it: smallest predicted error"
    rules = ("shortest payload", "cheapest fold", "smaller error", "first by name")
    first, second = near[0].costs, near[1].costs
    deciding = next(rule for rule, a, b in zip(rules, first, second, strict=True) if a != b)
    same = f"{100 * (SAME_ERROR - 1):.0f} %"
    return f"auto takes it: {deciding} of {len(near)} within {same} of the smallest error"


def problems(registry: Registry) -> Iterator[str]:
    """Yield one line for each thing that is legal, and only right if it is declared."""
    for metric in registry:
        if metric.robust and (halves := _reached(metric)) > _FRAGILE * _least(metric):
            yield (
                f"metrics.{metric.name}.mechanism={metric.mechanism_name}: must not be a mechanism"
                f" by which 1 % of fake devices move a mean by {100 * FAKES * halves / 2:.0f} % of"
                " the range; name minimax, hybrid or duchi, or declare robust = false where no"
                " device can lie"
            )


def expiring(registry: Registry, today: date, days: int) -> Iterator[str]:
    """Yield one line for each metric that has expired, or will within *days* of *today*."""
    for metric in registry:
        left = (metric.expires - today).days
        if left < 0:
            yield f"{metric.name}: expired on {metric.expires}: devices record nothing"
        elif left <= days:
            yield f"{metric.name}: expires in {counted(left, 'day')}, on {metric.expires}"


def warnings(registry: Registry, today: date, soon: int = EXPIRES_SOON) -> Iterator[str]:
    """Yield one line for each thing that is legal and unlikely to be meant.

    Args: soon: days within which an expiry is reported.
    """
    yield from expiring(registry, today, soon)
    for metric in registry:
        yield from (f"{metric.name}: {text}" for text in _of_metric(metric))
    week = registry.panel_week
    if week is not None and week > nano_of(Fraction(DEFAULT_CAP_WEEK)):
        yield (
            f"panel.week is ε {epsilon(week)}, above the default cap of"
            f" {DEFAULT_CAP_WEEK}: no client starts unless the application raises caps.week"
        )
    for cost in _above_the_default_caps(registry):
        yield f"all metrics together can cost {cost}: devices refuse the rest"


def _above_the_default_caps(registry: Registry) -> Iterator[str]:
    """Yield what a device that reports everything is charged beyond the SDK's own caps."""
    together, delta = costs_together(registry, registry.panel_week), delta_of_a_year(registry)
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


def _of_metric(metric: Metric) -> Iterator[str]:
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
            f'{metric.mechanism_name} does not answer; ask = ["quantiles"] does'
        )
    yield from _of_need(metric)
    reach = half_width(metric.mechanism, metric.expected_reports, ALPHA, drawn(metric))
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
    reach = half_width(metric.mechanism, metric.expected_reports, ALPHA, drawn(metric))
    if metric.need is None or reach <= wished(metric):
        return
    yield f"{devices:,} devices give {in_words(metric, reach)}, above its need; {_missing(metric)}"


def _missing(metric: Metric) -> str:
    """Return how many more devices the need takes, or the usual precision where none is."""
    more, wish = still_needed(metric, metric.expected_reports), in_words(metric, wished(metric))
    if more is None:
        return f"no number gives {wish}"
    return f"{wish} takes {ceil(more / metric.sample.share):,} more"


def budget_lines(registry: Registry) -> Iterator[str]:
    """Yield the costs of *registry* as a table, and how they compare with the default caps."""
    together = costs_together(registry, registry.panel_week)
    yield f"{registry.app}: the most that a device is charged, in ε"
    spans = f"any {WEEK} days", f"any {YEAR} days", "for life"
    heads = ("metric", "asked again", "every", "a report", *spans)
    total = ("all together", "", "", "", *_amounts(together))
    yield from table_lines([heads, *map(_cells, registry), total], "<<<>>>>", indent="  ")
    for metric in registry:
        if metric.mechanism.delta:
            yield f"  {metric.name} also costs δ {chance(metric.mechanism.delta)} a report"
    if registry.panel_week is not None:
        yield (
            "a panel draws which metrics a device reports; all together stay within its"
            f" ε {epsilon(registry.panel_week)} in any {WEEK} days"
        )
    yield (
        f"the SDK's default caps are {DEFAULT_CAP_WEEK} in any seven days and"
        f" {DEFAULT_CAP_LIFETIME} for life, of all metrics together"
    )
    panel = registry.panel_week
    week = nano_of(Fraction(DEFAULT_CAP_WEEK)) if panel is None else panel
    what = "that cap" if panel is None else "the panel's week"
    yield (
        "if a person sets the clock of a device and restarts it over and over, any seven days can"
        f" cost at most ε {epsilon(FORGED_WEEKS * week)}: {FORGED_WEEKS} times {what}"
    )


def _cells(metric: Metric) -> tuple[str, ...]:
    names = metric.name, metric.longitudinal, metric.every
    return *names, epsilon(metric.most_nano), *_amounts(cost_of(metric))


def _amounts(cost: Cost) -> tuple[str, ...]:
    return epsilon(cost.week), epsilon(cost.year), epsilon(cost.life)
