"""What a metric will cost and tell, before any data exist."""

from __future__ import annotations

from collections.abc import Iterator

from client_sdk.mechanisms import KeyValueMechanism
from client_sdk.privacy.budget import chance, cost_of, epsilon
from client_sdk.privacy.wording import a_period, counted
from client_sdk.registry.metric import Metric
from client_sdk.registry.registry import Registry
from client_sdk.registry.selection import (
    SAME_ERROR,
    Candidate,
    candidates,
    contenders,
    policy_candidates,
)

from .estimation.estimate import expected_half_width, normal_quantile
from .estimation.precision import ALPHA

_HELD = 0.1  # share of the devices that hold a key, for the error of the mean of its numbers


def describe_metrics(registry: Registry) -> Iterator[str]:
    """Yield one line a metric: mechanism, epsilon, bytes, and the interval to expect."""
    yield f"{registry.app}: {counted(len(registry.metrics), 'metric')}"
    for metric in registry:
        yield (
            f"  {metric.name}: {metric.mechanism_name}, "
            f"{privacy(metric)} a report{_bounds(metric)}, "
            f"one {a_period(metric.every)}{_source(metric)}, "
            f"{counted(metric.mechanism.payload_size, 'byte')}, digest {metric.digest.hex()}; "
            f"{metric.expected_devices:,} devices give {plus_minus(metric)}"
        )


def privacy(metric: Metric) -> str:
    """Return ε of a report, and δ if privacy is not pure."""
    delta = metric.mechanism.delta
    return f"ε {metric.epsilon}" + (f" and δ {chance(delta)}" if delta else "")


def _source(metric: Metric) -> str:
    """Return of what the one report of an epoch is made, where it is not of one value."""
    made = metric.aggregation
    return "" if made is None else f", of {made}"


def _bounds(metric: Metric) -> str:
    """Return ε of a value and of a life, where repeated reports have such bounds."""
    policy = metric.policy
    if policy is None or (life := cost_of(metric).life) is None:
        return ""
    return f", ε {policy.oracle.epsilon} per value, charged at most ε {epsilon(life)} for life"


def plus_minus(metric: Metric) -> str:
    """Return the half-width of a 95 % interval with the expected devices, in words."""
    domain, mechanism, devices = metric.domain, metric.mechanism, metric.expected_devices
    if domain.grid:
        reach = expected_half_width(mechanism, devices, ALPHA, domain.extent)
        return f"±{reach:.2g} {domain.unit}"
    points = expected_half_width(mechanism, devices, ALPHA, unit=100)
    shares = f"±{points:.2g} {domain.error_unit}"
    if not domain.numbers or not isinstance(mechanism, KeyValueMechanism):
        return shares
    part = min(normal_quantile(ALPHA) * mechanism.predict_mean(devices, _HELD), 0.5)
    mean = f"±{part * domain.numbers.extent:.2g} {domain.numbers.unit}"
    return f"{shares}, and {mean} for the mean of a key that {100 * _HELD:.0f} % hold"


def compare_mechanisms(metric: Metric, payload_bytes: int) -> Iterator[str]:
    """Yield what each mechanism would cost and tell, the most accurate first.

    Args: payload_bytes: the longest payload that may be sent.
    """
    bits, fixed = 8 * payload_bytes, metric.domain.parameters
    if metric.policy is None:
        found = candidates(metric.family, metric.epsilon, metric.domain.size, bits, fixed)
    else:
        of_value = metric.policy.oracle.epsilon if metric.longitudinal == "two_layer" else None
        found = policy_candidates(metric.domain.size, metric.epsilon, of_value, bits)
    near = contenders(found, bits)
    devices, limit = counted(metric.expected_devices, "device"), counted(payload_bytes, "byte")
    yield f"{metric.name}: {metric.domain.size_in_words()}, ε {metric.epsilon}{_bounds(metric)}"
    if metric.policy is not None:
        yield f"  {metric.policy.name}: {metric.policy.leak}"
    yield f"  in use: {pinned(metric)}; with {devices}, and at most {limit}:"
    for candidate in sorted(found, key=lambda candidate: _error(candidate, metric)):
        verdict = f"; {_reason(near)}" if candidate in near[:1] else ""
        yield f"  {candidate.name}: {_cost(candidate, metric, payload_bytes)}{verdict}"


def pinned(metric: Metric) -> str:
    """Return the lines of a registry that keep the mechanism of *metric* as it is."""
    fixed = metric.domain.parameters
    oracle = metric.mechanism if metric.policy is None else metric.policy.oracle
    own = ", ".join(
        f"{name} = {value}" for name, value in oracle.parameters.items() if name not in fixed
    )
    return f'mechanism = "{metric.mechanism_name}"' + (
        f" and parameters = {{ {own} }}" if own else ""
    )


def _cost(candidate: Candidate, metric: Metric, payload_bytes: int) -> str:
    mechanism = candidate.mechanism
    if mechanism is None:
        return f"cannot serve: {candidate.refusal}"
    error = f"{100 * _error(candidate, metric):.3g} {metric.domain.error_unit}"
    cost = f"error {error}, {counted(mechanism.payload_size, 'byte')}"
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
