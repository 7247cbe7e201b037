"""How close the decoded distribution comes, and how often each quantile's interval covers.

Run: ``python -m benchmarks distribution``; five minutes.  The first table is about real ages, those
of collector/demo/data/age_income.csv; the alternative there is optimized unary encoding over 8 or
16 equal bins or all single years, made consistent by norm-sub and spread evenly within a bin.
Wasserstein-1 is in years.  The second table is about five shapes, two of them rougher than the
intervals assume: a peak narrower than their bell, and the real ages.  The last line compares.
"""

from __future__ import annotations

from math import sqrt
from time import perf_counter
from typing import Any, Final

import numpy as np

from benchmarks.lib.beside import distance, from_bins
from benchmarks.lib.crowds import counted, numbers
from benchmarks.lib.page import AGES, head, row
from benchmarks.lib.tallies import law_of
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from collector.analytics.quantiles import CURVATURE, linear_cdf, quantile_limits, quantiles
from collector.estimation.estimate import quantile_positions
from collector.estimation.histogram import histogram

EPSILONS: Final = ("0.5", "1", "2", "4")
LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
ALPHA: Final = 0.05
LOW, HIGH = 0.94, 0.96  # the bar of coverage
SIZES: Final = (2_000, 48_842)  # devices
RUNS: Final = 30
BINS: Final = (8, 16)
COVERED: Final = (  # epsilon and devices; the last is where intervals begin to miss
    *(("1", 10_000), ("1", 100_000), ("2", 10_000), ("2", 100_000)),
    ("0.5", 2_000),
)
REPLICATIONS: Final = 4_000
RESOLUTION: Final = 128  # bins of the shapes that are formulas


def people(devices: int) -> Any:
    """Return how many of *devices* have each age, in the proportions of the data."""
    persons = counted(AGES, "age", count="persons")
    years = [int(age) for (age,) in persons]
    counts = numbers(persons, min(years), max(years))
    return np.rint(counts * devices / counts.sum()).astype(int)


def shapes(devices: int) -> dict[str, Any]:
    """Return how many of *devices* are in each bin, for every shape by name."""
    x = (np.arange(RESOLUTION) + 0.5) / RESOLUTION
    late = np.maximum(x - 0.23, 0)
    delays = np.where(late, 0.55, 1) * _bell(x, 0.23, 0.0375)
    delays += np.where(late, 0.45 * np.exp(-late / 0.13), 0)
    delays[-1] += 0.02 * delays.sum()  # clamped to the range
    waits = np.exp(-x / 0.2)
    waits[0] += 0.4 * waits.sum()  # no wait at all
    laws = {
        "beta(2, 5)": x * (1 - x) ** 4,
        "two peaks": _bell(x, 0.3, 0.08) + 0.7 * _bell(x, 0.72, 0.07),
        "delays": delays,
        "waits, many 0": waits,
    }
    held = {name: np.rint(law * devices / law.sum()).astype(int) for name, law in laws.items()}
    return {**held, "ages": people(devices)}


def curvature(held: Any) -> float:
    """Return how much a shape curves between its ends, over the most that intervals assume."""
    bends = np.diff(held[1:-1] / held.sum(), n=2)
    return float(np.linalg.norm(bends) * held.size**2.5 / CURVATURE)


def covered(
    mechanism: DistributionMechanism, held: Any, times: int, generator: np.random.Generator
) -> tuple[Any, Any]:
    """Return how often each interval covers, and its mean half-width as a part of the range."""
    n = int(held.sum())
    linear, truth = linear_cdf(mechanism, n), quantile_positions(held / n, LEVELS)
    drawn = law_of(mechanism).drawn(held, times, generator) / n
    found = np.array([quantile_limits(linear, seen, n, LEVELS, ALPHA) for seen in drawn])
    inside = (found[:, 0] <= truth) & (truth <= found[:, 2])
    widths = (found[:, 2] - found[:, 0]).mean(axis=0) / 2 / (mechanism.bins - 1)
    return inside.mean(axis=0), widths


def main() -> None:
    """Print both tables."""
    generator = np.random.default_rng(20260601)
    bins = [f"OUE, {count} bins" for count in BINS]
    print(head("devices", "ε", "EMS", *bins, "OUE, years", "query, ms"))
    for devices in SIZES:
        held = people(devices)
        for epsilon in EPSILONS:
            print(_row(held, epsilon, generator), flush=True)
    print("\n" + head("shape", "ε", "devices", *(f"{level:.0%}" for level in LEVELS)))
    rates = _coverage_table(generator)
    inside = np.mean((rates >= LOW) & (rates <= HIGH))
    noise = sqrt(ALPHA * (1 - ALPHA) / REPLICATIONS)
    print(
        f"\n{inside:.0%} of {rates.size} rates are from {LOW:.0%} to {HIGH:.0%}; they range from "
        f"{rates.min():.1%} to {rates.max():.1%}, mean {rates.mean():.2%}; "
        f"{REPLICATIONS:,} replications, standard error {noise:.2%}"
    )
    most = shapes(max(devices for _, devices in COVERED))
    curved = (f"{name} {curvature(held):.1f}" for name, held in most.items())
    print(f"curvature over what intervals assume: {', '.join(curved)}")


def _bell(x: Any, center: float, deviation: float) -> Any:
    return np.exp(-0.5 * ((x - center) / deviation) ** 2)


def _coverage_table(generator: np.random.Generator) -> Any:
    """Print a row a setting; return all rates."""
    found = []
    for epsilon, devices in COVERED:
        for name, held in shapes(devices).items():
            mechanism = SquareWave(epsilon, held.size)
            rates, widths = covered(mechanism, held, REPLICATIONS, generator)
            pairs = zip(100 * rates, 100 * widths, strict=True)
            cells = (f"{rate:.1f} ±{width:.2f}" for rate, width in pairs)
            print(row(name, epsilon, f"{devices:,}", *cells), flush=True)
            found.append(rates)
    return np.array(found)


def _row(held: Any, epsilon: str, generator: np.random.Generator) -> str:
    mechanism, n = SquareWave(epsilon, held.size), int(held.sum())
    oracles = [OUE(epsilon, bins) for bins in (*BINS, held.size)]
    errors, spent = [], 0.0
    for tally in law_of(mechanism).drawn(held, RUNS, generator):
        decoded = [histogram(mechanism, tally, n)]
        decoded += [next(from_bins(held, oracle, 1, generator)) for oracle in oracles]
        errors.append([distance(shares, held) for shares in decoded])
        started = perf_counter()
        quantiles(mechanism, tally, n, LEVELS, ALPHA)
        spent += perf_counter() - started
    cells = (f"{error:.2f}" for error in np.mean(errors, axis=0))
    return row(f"{n:,}", epsilon, *cells, f"{1000 * spent / RUNS:.1f}")
