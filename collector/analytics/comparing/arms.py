"""Which dimensions look like arms of an experiment, into which devices are put by lot.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from client_sdk.registry.metric import Metric

ARMS: Final = frozenset(
    {"arm", "arms", "experiment", "group", "groups", "treatment", "variant", "variants"}
)
CONTROL: Final = "control"
CONTROLS: Final = (CONTROL, "off", "a", "old")


def are_arms(dimension: str, values: Collection[str]) -> bool:
    """Return whether *values* of *dimension* are arms, as far as their names tell."""
    return dimension.lower() in ARMS or CONTROL in values


def arms_of(metric: Metric) -> list[str]:
    """Return the dimensions of *metric* whose values are arms, as far as their names tell."""
    return [name for name, values in metric.segments.items() if are_arms(name, values)]


def control_of(values: Sequence[str]) -> str:
    """Return the arm of *values* that others are held against if none is chosen."""
    return next((name for name in CONTROLS if name in values), values[0])
