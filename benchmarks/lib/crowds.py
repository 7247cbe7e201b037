"""Real people, flights, visits and accidents, counted, and their reports drawn anew each time."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from benchmarks.lib.page import DEMO, ROOT
from benchmarks.lib.tallies import Bits, Law, Points, law_of, law_of_key_values
from client_sdk.registry import Registry
from client_sdk.registry.types.joint import PairDomain
from collector.analytics.verb import Slice

EXAMPLES: Final = ROOT / "examples" / "data"
REGISTRY: Final = Registry.from_text((ROOT / "benchmarks" / "answers.toml").read_text("utf-8"))

VISITORS: Final = 50_000  # of 989,818, in proportion
CARRIERS: Final = ("AA", "MQ", "OO", "UA", "WN")
AGES, HOURS, PAGES = (17, 90), (1, 99), (1, 50)  # the ranges of the metrics
WAITS: Final = (0, 60)  # minutes
LONG: Final = 20  # minutes
MOST_PAGES: Final = 200  # 200 stands for 200 and more
SIDE: Final = 32  # cells of the grid


def counted(path: Path, *columns: str, count: str = "count") -> dict[tuple[str, ...], int]:
    """Return the counts of a file by the values of *columns*, others summed over."""
    found: dict[tuple[str, ...], int] = defaultdict(int)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[tuple(row[column] for column in columns)] += int(row[count])
    return dict(found)


def numbers(counts: Mapping[tuple[str, ...], int], low: int, high: int) -> Any:
    """Return how many hold each whole number from *low* to *high*, what lies beyond clamped."""
    held = np.zeros(high - low + 1, dtype=np.int64)
    for (text,), devices in counts.items():
        held[min(max(int(text), low), high) - low] += devices
    return held


def scaled(held: Any, devices: int) -> Any:
    """Return *devices* in the proportions of *held*, by largest remainders."""
    exact = np.asarray(held, dtype=float) * devices / np.sum(held)
    whole = np.floor(exact).astype(np.int64)
    rest = np.argsort(whole - exact, kind="stable")[: devices - int(whole.sum())]
    whole[rest] += 1
    return whole


def visits(most: int = MOST_PAGES) -> Any:
    """Return visitors by the pages that they saw, from 1 to *most* and more."""
    return numbers(counted(EXAMPLES / "visits_page_views.csv", "page_views"), 1, most)


def ages() -> Any:
    """Return persons by age."""
    return numbers(counted(EXAMPLES / "age_hours.csv", "age"), *AGES)


def hours() -> Any:
    """Return persons by their hours of work a week."""
    return numbers(counted(EXAMPLES / "age_hours.csv", "hours_per_week"), *HOURS)


def first_pages() -> Any:
    """Return VISITORS by the first page of their visit, in the order of the metric's items."""
    counts = counted(DEMO / "first_page.csv", "first_page", count="visitors")
    labels = REGISTRY.metric("first_page").domain.labels
    return scaled([counts[(label,)] for label in labels], VISITORS)


def waits(carrier: str | None = None, most: int = WAITS[1]) -> Any:
    """Return flights by minutes from the gate to take-off."""
    counts = counted(EXAMPLES / "flights_taxi_out.csv", "carrier", "minutes")
    one = Counter[tuple[str, ...]]()
    for (name, minutes), flights in counts.items():
        one[(minutes,)] += flights if carrier in (None, name) else 0
    return numbers(one, 0, most)


def long_waits() -> dict[str, Any]:
    """Return of each carrier the flights that waited not long, and long."""
    found = {carrier: waits(carrier) for carrier in CARRIERS}
    return {
        carrier: np.array([held[: LONG + 1].sum(), held[LONG + 1 :].sum()])
        for carrier, held in found.items()
    }


def months() -> dict[str, Any]:
    """Return of each month of 2015 the flights of each carrier."""
    counts = counted(EXAMPLES / "flights_by_month.csv", "month", "carrier")
    names = sorted({month for month, _ in counts})
    return {month: np.array([counts[month, one] for one in CARRIERS]) for month in names}


def households() -> Any:
    """Return persons by marital status and income, in the order of the metric's items."""
    counts = counted(EXAMPLES / "marital_income.csv", "marital_status", "income")
    domain = REGISTRY.metric("household").domain
    assert isinstance(domain, PairDomain)
    (first, second) = domain.parts.values()
    return np.array([counts.get((a, b), 0) for a in first for b in second])


def accidents() -> Any:
    """Return accidents by cell, row by row."""
    counts = counted(EXAMPLES / "accidents_grid.csv", "row", "column")
    held = np.zeros(SIDE * SIDE, dtype=np.int64)
    for (row, column), found in counts.items():
        held[SIDE * int(row) + int(column)] += found
    return held


def dealt(periods: int) -> Any:
    """Return of VISITORS by the pages they saw in which of *periods*: each page by chance in one.

    Shape (visitors, periods), booleans; the same at every call.
    """
    pages = np.repeat(np.arange(1, MOST_PAGES + 1), scaled(visits(), VISITORS))
    return np.random.default_rng(5).multinomial(pages, [1 / periods] * periods) > 0


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
