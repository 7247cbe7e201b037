"""Slices of devices whose reports are perturbed anew each time, from the law of one report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from benchmarks.lib.crowds import REGISTRY
from benchmarks.lib.tallies import Bits, Law, Points, law_of, law_of_key_values
from collector.analytics.verb import Slice

Draw: TypeAlias = Callable[[int, np.random.Generator], Iterator[list[Slice]]]


@dataclass(frozen=True)
class AtRandom:
    """So many *devices*, drawn anew each time from a population with these *shares* of values."""

    devices: int
    shares: Any


@cache
def law(name: str) -> Law | Bits | Points:
    """Return the law of the reports of the metric *name*."""
    metric = REGISTRY.metric(name)
    return law_of_key_values(metric) if metric.type == "key_value" else law_of(metric.mechanism)


def drawn(name: str, groups: Sequence[tuple[Mapping[str, str], Any]]) -> Draw:
    """Return the draw of one slice for each group: its dimensions, and devices by value.

    Devices are the same each time, but for those that are ``AtRandom``.
    """
    metric = REGISTRY.metric(name)

    def draw(times: int, generator: np.random.Generator) -> Iterator[list[Slice]]:
        tallies = []
        for _, held in groups:
            counts = held
            if isinstance(held, AtRandom):
                counts = generator.multinomial(held.devices, held.shares, times)
            tallies.append((counts.sum(axis=-1), law(name).drawn(counts, times, generator)))
        for i in range(times):
            yield [
                Slice(metric, dimensions, int(np.broadcast_to(n, times)[i]), tally[i], (0,))
                for (dimensions, _), (n, tally) in zip(groups, tallies, strict=True)
            ]

    return draw


def rounded(name: str, held: Sequence[Any]) -> Draw:
    """Return the draw of devices that hold one key each, by key and number.

    Each rounds its number to one of both ends by chance, as devices do.
    """
    metric = REGISTRY.metric(name)

    def draw(times: int, generator: np.random.Generator) -> Iterator[list[Slice]]:
        parts = [np.arange(one.size) / (one.size - 1) for one in held]
        high = np.array(
            [
                generator.binomial(k, x, (times, k.size)).sum(axis=1)
                for k, x in zip(held, parts, strict=True)
            ]
        ).T
        n = np.array([one.sum() for one in held])
        tallies = law(name).drawn(np.hstack([n - high, high]), times, generator)
        for tally in tallies:
            yield [Slice(metric, {}, int(n.sum()), tally, (0,))]

    return draw


def counts_only(name: str, counts: Mapping[tuple[tuple[str, str], ...], int]) -> Draw:
    """Return the draw of slices whose verb counts reports, whatever they say."""
    metric = REGISTRY.metric(name)

    def draw(times: int, generator: np.random.Generator) -> Iterator[list[Slice]]:
        del generator  # nothing is left to chance
        nothing = np.zeros(metric.mechanism.tally_size, dtype=np.int64)
        for _ in range(times):
            yield [Slice(metric, dict(d), n, nothing, (0,)) for d, n in counts.items()]

    return draw
