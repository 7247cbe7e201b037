"""What a metric will cost and tell, before any data exist."""

from __future__ import annotations

from collections.abc import Iterator

from client_sdk.metric import ItemDomain, Metric
from client_sdk.registry import Registry

from .estimate import expected_half_width

_ALPHA = 0.05


def describe_metrics(registry: Registry) -> Iterator[str]:
    """Yield one line a metric: mechanism, epsilon, bytes, and the interval to expect."""
    yield f"{registry.app}: {len(registry.metrics)} metrics"
    for metric in registry:
        yield (
            f"  {metric.name}: {metric.mechanism_name}, ε {metric.epsilon} per {_period(metric)}, "
            f"{metric.mechanism.payload_size} bytes, digest {metric.digest.hex()}; "
            f"{metric.expected_devices} devices give {plus_minus(metric)}"
        )


def plus_minus(metric: Metric) -> str:
    """Return the half-width of a 95 % interval with the expected devices, in words."""
    if isinstance(metric.domain, ItemDomain):
        points = expected_half_width(metric.mechanism, metric.expected_devices, _ALPHA, unit=100)
        return f"±{points:.2g} points per item"
    extent = float(metric.domain.maximum - metric.domain.minimum)
    reach = expected_half_width(metric.mechanism, metric.expected_devices, _ALPHA, extent)
    return f"±{reach:.2g} {metric.domain.unit}"


def _period(metric: Metric) -> str:
    return "lifetime" if metric.every == "once" else metric.every
