"""Metrics, and tallies of stated populations: expected ones, and those drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import DistributionMechanism, Mechanism
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.verb import Slice
from tests.support.device.registries import CATEGORY, NUMBER, file_with
from tests.support.enumeration.seeded import SeededRandomness

ROUGH: Final = {**NUMBER, "mechanism": '"square_wave"', "min": "0", "max": "47", "step": "1"}
WAVE: Final = {**ROUGH, "shape": '"smooth"'}


def metric_of(fields: dict[str, str], **changes: str | None) -> Metric:
    """Return the metric of a registry with these fields, some of them changed."""
    return Registry.from_text(file_with(fields, **changes)).metric("m")


def reported(metric: Metric, values: Iterable[object], seed: str) -> tuple[Any, int]:
    """Return the tally of devices that hold *values* and randomize by *seed*, and its reports."""
    randomness = SeededRandomness(seed.encode())
    payloads = [metric.mechanism.randomize(metric.encode(value), randomness) for value in values]
    return metric.mechanism.tally(b"".join(payloads), np), len(payloads)


def category(*labels: str, mechanism: str = "grr", **changes: str | None) -> Metric:
    """Return a category of *labels*."""
    values = "[" + ", ".join(f'"{label}"' for label in labels) + "]"
    return metric_of(CATEGORY, values=values, mechanism=f'"{mechanism}"', **changes)


def law_of(mechanism: Mechanism[Any]) -> Any:
    """Return the chance of each cell of the tally by what a device holds: a row an item or bin."""
    if isinstance(mechanism, DistributionMechanism):
        law = mechanism.spread(np.eye(mechanism.bins), np)
    else:
        assert isinstance(mechanism, GRR)
        p, q = float(mechanism.channel.p), float(mechanism.channel.q)
        law = np.full((mechanism.domain_size,) * 2, q) + np.eye(mechanism.domain_size) * (p - q)
    return law / law.sum(axis=1, keepdims=True)


def drawn(mechanism: Mechanism[Any], held: Sequence[int], trials: int, seed: int) -> Any:
    """Return *trials* tallies of devices of which so many hold each item, or sit in each bin."""
    generator = np.random.default_rng(seed)
    law = law_of(mechanism)
    parts = [generator.multinomial(k, row, trials) for k, row in zip(held, law, strict=True) if k]
    return np.sum(parts, axis=0, dtype=np.int64)


def expected(mechanism: Mechanism[Any], held: Sequence[int]) -> tuple[Any, int]:
    """Return the tally that these devices give on average, rounded, and its reports."""
    cells = np.rint(np.array(held) @ law_of(mechanism)).astype(np.int64)
    return cells, int(cells.sum())


def slice_of(
    metric: Metric, held: Sequence[int], dimensions: Mapping[str, str] | None = None
) -> Slice:
    """Return the slice with the expected tally of these devices."""
    tally, n = expected(metric.mechanism, held)
    return Slice(metric, dimensions or {}, n, tally, (0,))
