"""What a metric will cost and tell, before any data exist."""

from __future__ import annotations

from collections.abc import Iterator

from client_sdk.mechanism_choice import SAME_ERROR, Candidate, candidates, contenders
from client_sdk.metric import ItemDomain, Metric
from client_sdk.registry import Registry

from .estimate import expected_half_width

_ALPHA = 0.05


def describe_metrics(registry: Registry) -> Iterator[str]:
    """Yield one line a metric: mechanism, epsilon, bytes, and the interval to expect."""
    yield f"{registry.app}: {len(registry.metrics)} metrics"
    for metric in registry:
        yield (
            f"  {metric.name}: {metric.mechanism_name}, {privacy(metric)} per {_period(metric)}, "
            f"{metric.mechanism.payload_size} bytes, digest {metric.digest.hex()}; "
            f"{metric.expected_devices} devices give {plus_minus(metric)}"
        )


def privacy(metric: Metric) -> str:
    """Return ε of a report, and δ if privacy is not pure."""
    delta = metric.mechanism.delta
    return f"ε {metric.epsilon}" + (f" and δ {float(delta):g}" if delta else "")


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


def compare_mechanisms(metric: Metric, payload_bytes: int) -> Iterator[str]:
    """Yield what each mechanism would cost and tell, the most accurate first.

    Args: payload_bytes: the longest payload that may be sent.
    """
    items, size = isinstance(metric.domain, ItemDomain), metric.domain.size
    found = candidates(metric.family, metric.epsilon, size, 8 * payload_bytes)
    near = contenders(found, 8 * payload_bytes)
    devices = f"{metric.expected_devices} devices"
    yield f"{metric.name}: {size} {'items' if items else 'grid points'}, ε {metric.epsilon}"
    yield f"  in use: {pinned(metric)}; with {devices}, and at most {payload_bytes} bytes:"
    for candidate in sorted(found, key=lambda candidate: _error(candidate, metric)):
        verdict = f"; {_reason(near)}" if candidate in near[:1] else ""
        yield f"  {candidate.name}: {_cost(candidate, metric, payload_bytes)}{verdict}"


def pinned(metric: Metric) -> str:
    """Return the lines of a registry that keep the mechanism of *metric* as it is."""
    own = ", ".join(f"{name} = {value}" for name, value in metric.mechanism.parameters.items())
    return f'mechanism = "{metric.mechanism_name}"' + (
        f" and parameters = {{ {own} }}" if own else ""
    )


def _cost(candidate: Candidate, metric: Metric, payload_bytes: int) -> str:
    mechanism = candidate.mechanism
    if mechanism is None:
        return f"cannot serve: {candidate.refusal}"
    points = 100 * _error(candidate, metric)
    unit = "points an item" if isinstance(metric.domain, ItemDomain) else "% of the range"
    cost = f"error {points:.3g} {unit}, {mechanism.payload_size} bytes"
    if not mechanism.automatic:
        return f"{cost}; only by name"
    return f"{cost}; too long" if mechanism.payload_size > payload_bytes else cost


def _error(candidate: Candidate, metric: Metric) -> float:
    """Return the standard error to expect from the expected devices; infinite for a refusal."""
    mechanism = candidate.mechanism
    return mechanism.predict(metric.expected_devices) if mechanism else float("inf")


def _reason(near: list[Candidate]) -> str:
    """Return why the first of *near*, whose errors are as good as equal, comes first."""
    if len(near) == 1:
        return "auto takes it: smallest predicted error"
    rules = ("shortest payload", "cheapest fold", "smaller error", "first by name")
    first, second = near[0].costs, near[1].costs
    deciding = next(rule for rule, a, b in zip(rules, first, second, strict=True) if a != b)
    same = f"{100 * (SAME_ERROR - 1):.0f} %"
    return f"auto takes it: {deciding} of {len(near)} within {same} of the smallest error"
