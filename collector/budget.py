"""What a registry costs a device, as a table: ε of a report, of a week, of a year and for life."""

from __future__ import annotations

from collections.abc import Iterator

from client_sdk.core.limits import DEFAULT_CAP_LIFETIME, DEFAULT_CAP_WEEK
from client_sdk.privacy.budget import WEEK, YEAR, Cost, chance, cost_of, costs_together, epsilon
from client_sdk.registry.metric import Metric
from client_sdk.registry.registry import Registry

from .core.text_tables import table_lines


def budget_lines(registry: Registry) -> Iterator[str]:
    """Yield the costs of *registry* as a table, and how they compare with the default caps."""
    together = costs_together(registry)
    yield f"{registry.app}: the most that a device is charged, in ε"
    spans = f"any {WEEK} days", f"any {YEAR} days", "for life"
    heads = ("metric", "asked again", "every", "a report", *spans)
    total = ("all together", "", "", "", *_amounts(together))
    yield from table_lines([heads, *map(_cells, registry), total], "<<<>>>>", indent="  ")
    for metric in registry:
        if metric.mechanism.delta:
            yield f"  {metric.name} also costs δ {chance(metric.mechanism.delta)} a report"
    yield (
        f"the SDK's default caps are {DEFAULT_CAP_WEEK} in any seven days and"
        f" {DEFAULT_CAP_LIFETIME} for life, of all metrics together"
    )


def _cells(metric: Metric) -> tuple[str, ...]:
    names = metric.name, metric.longitudinal, metric.every
    return *names, epsilon(metric.most_nano), *_amounts(cost_of(metric))


def _amounts(cost: Cost) -> tuple[str, ...]:
    return epsilon(cost.week), epsilon(cost.year), epsilon(cost.life)
