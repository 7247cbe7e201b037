"""How close the decoded distribution comes, and how often each quantile's interval covers.

Run: ``python -m benchmarks distribution``; five minutes.  The first table is about real ages, those
of collector/demo/data/age_income.csv; the alternative there is optimized unary encoding over 8 or
16 equal bins or all single years, made consistent by norm-sub and spread evenly within a bin.
Wasserstein-1 is in years.  The second table is about five shapes, two of them rougher than the
intervals assume: a peak narrower than their bell, and the real ages.  The last line compares.
"""

from __future__ import annotations

import csv
from math import sqrt
from time import perf_counter
from typing import Any, Final

import numpy as np

from benchmarks.lib.page import AGES
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from collector.analytics.postprocess import simplex_l2
from collector.analytics.quantiles import CURVATURE, linear_cdf, quantile_limits, quantiles
from collector.estimation.estimate import cumulative, histogram, quantile_positions

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
    with AGES.open(encoding="utf-8") as file:
        rows = [(int(row["age"]), int(row["persons"])) for row in csv.DictReader(file)]
    first = min(age for age, _ in rows)
    counts = np.zeros(max(age for age, _ in rows) - first + 1)
    for age, persons in rows:
        counts[age - first] += persons
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


def wasserstein(found: Any, truth: Any) -> float:
    """Return the Wasserstein-1 distance of two distributions over years."""
    return float(np.abs(cumulative(found) - cumulative(truth)).sum())


def tallies(
    mechanism: DistributionMechanism, held: Any, times: int, generator: np.random.Generator
) -> Any:
    """Return tallies of one honest report of each device, shape (times, symbols)."""
    laws = mechanism.spread(np.eye(mechanism.bins), np)
    laws /= laws.sum(axis=1, keepdims=True)
    return sum(generator.multinomial(n, law, times) for n, law in zip(held, laws, strict=True))


def binned(held: Any, bins: int, epsilon: str, generator: np.random.Generator) -> Any:
    """Return the distribution over years from unary encoding over *bins* equal bins."""
    n = int(held.sum())
    of_year = np.arange(held.size) * bins // held.size
    counts = np.bincount(of_year, weights=held, minlength=bins).astype(int)
    oracle = OUE(epsilon, bins)
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    supports = generator.binomial(counts, p) + generator.binomial(n - counts, q)
    shares = simplex_l2(oracle.debias(supports, n, np).totals / n)
    return shares[of_year] / np.bincount(of_year)[of_year]


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
    drawn = tallies(mechanism, held, times, generator) / n
    found = np.array([quantile_limits(linear, seen, n, LEVELS, ALPHA) for seen in drawn])
    inside = (found[:, 0] <= truth) & (truth <= found[:, 2])
    widths = (found[:, 2] - found[:, 0]).mean(axis=0) / 2 / (mechanism.bins - 1)
    return inside.mean(axis=0), widths


def main() -> None:
    """Print both tables."""
    generator = np.random.default_rng(20260601)
    columns = " | ".join(f"OUE, {b} bins" for b in BINS)
    print(f"| devices | ε | EMS | {columns} | OUE, years | query, ms |")
    print("|" + "---|" * (5 + len(BINS)))
    for devices in SIZES:
        held = people(devices)
        for epsilon in EPSILONS:
            print(_row(held, epsilon, generator), flush=True)
    print(f"\n| shape | ε | devices | {' | '.join(f'{q:.0%}' for q in LEVELS)} |")
    print("|" + "---|" * (3 + len(LEVELS)))
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
            cells = zip(100 * rates, 100 * widths, strict=True)
            columns = " | ".join(f"{rate:.1f} ±{width:.2f}" for rate, width in cells)
            print(f"| {name} | {epsilon} | {devices:,} | {columns} |", flush=True)
            found.append(rates)
    return np.array(found)


def _row(held: Any, epsilon: str, generator: np.random.Generator) -> str:
    mechanism, n = SquareWave(epsilon, held.size), int(held.sum())
    truth, errors, spent = held / n, [], 0.0
    for tally in tallies(mechanism, held, RUNS, generator):
        decoded = [histogram(mechanism, tally, n)]
        decoded += [binned(held, b, epsilon, generator) for b in (*BINS, held.size)]
        errors.append([wasserstein(found, truth) for found in decoded])
        started = perf_counter()
        quantiles(mechanism, tally, n, LEVELS, ALPHA)
        spent += perf_counter() - started
    cells = " | ".join(f"{error:.2f}" for error in np.mean(errors, axis=0))
    return f"| {n:,} | {epsilon} | {cells} | {1000 * spent / RUNS:.1f} |"
