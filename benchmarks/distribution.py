"""How close the decoded distribution of real ages comes, and how often its quantiles are covered.

Run: ``python -m benchmarks distribution``; one minute.  Ages of collector/demo_data/age_income.csv.
The alternative is optimized unary encoding over 8 or 16 equal bins or all single years, made
consistent by norm-sub and spread evenly within a bin.  Wasserstein-1 is in years.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms.oue import OUE
from client_sdk.mechanisms.square_wave import SquareWave
from collector.distribution import cumulative, fit, histogram, quantile_positions, quantiles

DATA: Final = Path(__file__).parent.parent / "collector" / "demo_data" / "age_income.csv"
EPSILONS: Final = ("0.5", "1", "2", "4")
LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
SIZES: Final = (2_000, 48_842)  # devices
RUNS: Final = 30
BINS: Final = (8, 16)


def people(devices: int) -> Any:
    """Return how many of *devices* have each age, in the proportions of the data."""
    with DATA.open(encoding="utf-8") as file:
        rows = [(int(row["age"]), int(row["persons"])) for row in csv.DictReader(file)]
    first = min(age for age, _ in rows)
    counts = np.zeros(max(age for age, _ in rows) - first + 1)
    for age, persons in rows:
        counts[age - first] += persons
    return np.rint(counts * devices / counts.sum()).astype(int)


def wasserstein(found: Any, truth: Any) -> float:
    """Return the Wasserstein-1 distance of two distributions over years."""
    return float(np.abs(cumulative(found) - cumulative(truth)).sum())


def square_wave_tally(mechanism: SquareWave, held: Any, generator: np.random.Generator) -> Any:
    """Return the tally of one honest report of each device."""
    matrix = mechanism.channel_matrix(np)
    laws = (matrix / matrix.sum(axis=0)).T
    return sum(generator.multinomial(n, law) for n, law in zip(held, laws, strict=True))


def binned(held: Any, bins: int, epsilon: str, generator: np.random.Generator) -> Any:
    """Return the distribution over years from unary encoding over *bins* equal bins."""
    n = int(held.sum())
    of_year = np.arange(held.size) * bins // held.size
    counts = np.bincount(of_year, weights=held, minlength=bins).astype(int)
    oracle = OUE(epsilon, bins)
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    supports = generator.binomial(counts, p) + generator.binomial(n - counts, q)
    shares = norm_sub(oracle.debias(supports, n, np).totals / n)
    return shares[of_year] / np.bincount(of_year)[of_year]


def norm_sub(shares: Any) -> Any:
    """Return *shares* less a constant, cut off at 0, so that they sum to 1."""
    ordered = np.sort(shares)[::-1]
    shifts = (np.cumsum(ordered) - 1) / np.arange(1, shares.size + 1)
    return np.maximum(shares - shifts[np.flatnonzero(ordered > shifts)[-1]], 0)


def main() -> None:
    """Print both tables."""
    generator = np.random.default_rng(20260601)
    headings = "EMS | EM | " + " | ".join(f"OUE, {b} bins" for b in BINS) + " | OUE, years"
    print(
        f"| devices | ε | {headings} | quantiles covered of {RUNS * len(LEVELS)} | ± p50, years |"
    )
    print("|" + "---|" * (7 + len(BINS)))
    for devices in SIZES:
        held = people(devices)
        for epsilon in EPSILONS:
            print(_row(held, epsilon, generator), flush=True)


def _row(held: Any, epsilon: str, generator: np.random.Generator) -> str:
    mechanism, n = SquareWave(epsilon, held.size), int(held.sum())
    truth, places = held / n, quantile_positions(held / n, LEVELS)
    errors, covered, width = [], 0, 0.0
    for _ in range(RUNS):
        tally = square_wave_tally(mechanism, held, generator)
        decoded = [histogram(mechanism, tally, n), fit(mechanism, tally, smooth=False)]
        decoded += [binned(held, b, epsilon, generator) for b in (*BINS, held.size)]
        errors.append([wasserstein(found, truth) for found in decoded])
        found = quantiles(mechanism, tally, n, LEVELS, 0.05, generator)
        covered += sum(
            q.ci_low <= place <= q.ci_high for q, place in zip(found, places, strict=True)
        )
        width += (found[2].ci_high - found[2].value) / RUNS
    cells = " | ".join(f"{error:.2f}" for error in np.mean(errors, axis=0))
    return f"| {n:,} | {epsilon} | {cells} | {covered} | {width:.1f} |"


if __name__ == "__main__":
    main()
