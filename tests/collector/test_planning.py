"""The plan of a registry says what each metric costs and tells."""

from __future__ import annotations

from collector.estimate import expected_half_width
from collector.planning import describe_metrics, plus_minus
from tests.support.uploads import registry

REGISTRY = registry()


def test_every_metric_has_a_line_with_what_it_costs() -> None:
    first, *lines = describe_metrics(REGISTRY)

    assert first == "test: 5 metrics"
    assert [line.split(":")[0].strip() for line in lines] == list(REGISTRY.metrics)
    assert all("ε 1 per " in line and "digest " in line for line in lines)


def test_an_item_is_planned_in_points() -> None:
    metric = REGISTRY.metric("page")

    points = 100 * expected_half_width(metric.mechanism, metric.expected_devices, 0.05, 1.0)

    assert plus_minus(metric) == f"±{points:.2g} points per item"


def test_a_number_is_planned_in_its_unit() -> None:
    assert plus_minus(REGISTRY.metric("age")) == "±2.2 years"
