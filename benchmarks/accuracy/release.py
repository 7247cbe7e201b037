"""What post-processing and releases cost and give, on real ages: docs/evidence/tables/release.md.

Run: ``python -m benchmarks release``; a minute.  People are the 48,842 of
collector/demo/data/age_income.csv.  Reports of the worked example are made by the devices' own
code from a fixed seed, so that the page can be printed again; those of the repeated runs are drawn
from the exact law of the mechanism.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any, Final

import numpy as np

from benchmarks.lib.crowds import counted, numbers
from benchmarks.lib.page import AGES, named_once, table
from benchmarks.lib.tallies import law_of
from client_sdk.mechanisms import FrequencyOracle, ItemMechanism
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose
from client_sdk.registry.types.numbers import NumberDomain
from collector.analytics.postprocess import OF_PARTS, apply, simplex_l2
from collector.estimation.estimate import normal_quantile, shares
from collector.estimation.histogram import histogram
from collector.planning.buckets import best_buckets, bias_of
from tests.support.crowds.analyses import slope, two_means
from tests.support.enumeration.seeded import SeededRandomness

FIRST, YEARS, WIDTH = 17, 75, 5  # ages 17 to 91, in ranges of five years
EPSILON: Final = "1"
ALPHA: Final = 0.05
TAIL: Final = 10  # ranges from 67 years on
RUNS: Final = 1_000
RESCALED: Final = "cut, rescaled"  # the usual cleanup, which is not offered
ITEMS, REPORTS = 1_024, 100_000  # of the example with a long tail
POINTS: Final = 100  # a share of 1 in points


def people() -> tuple[Any, Any]:
    """Return how many persons have each age from FIRST on, and how many of them earn over 50K."""
    held, last = counted(AGES, "age", "income_over_50k", count="persons"), FIRST + YEARS - 1
    rich: dict[tuple[str, ...], int] = {
        (age,): persons for (age, over), persons in held.items() if over == "true"
    }
    return numbers(counted(AGES, "age", count="persons"), FIRST, last), numbers(rich, FIRST, last)


def to_eighty() -> Any:
    """Return persons by age over a range of 80 years, which many numbers of buckets divide."""
    return np.concatenate([people()[0], np.zeros(80 - YEARS, dtype=np.int64)])


def in_ranges(counts: Any, width: int = WIDTH) -> Any:
    """Return counts of years as counts of ranges of *width* years."""
    return counts.reshape(-1, width).sum(axis=1)


def rescaled(values: Any) -> Any:
    """Return what is cut off at 0 and divided by its sum."""
    kept = np.maximum(values, 0)
    return kept / kept.sum()


def every_way(values: Any, errors: Any, n: int) -> dict[str, Any]:
    """Return the shares post-processed in every way, and in the one that is not offered."""
    return {
        **{name: apply(name, values, errors, n) for name in OF_PARTS},
        RESCALED: rescaled(values),
    }


def example() -> list[tuple[str, float, float, dict[str, Any]]]:
    """Return of each range its name, true share, standard error, and shares by post-processing."""
    held = in_ranges(people()[0])
    n = int(held.sum())
    _, oracle = choose(AUTO, ItemMechanism, EPSILON, held.size)
    randomness = SeededRandomness(b"docs/release.md")
    payloads = [
        oracle.randomize(item, randomness)
        for item, devices in enumerate(held)
        for _ in range(devices)
    ]
    estimates = shares(oracle, oracle.tally(b"".join(payloads), np), n, ALPHA)
    errors = np.array([estimate.std_error for estimate in estimates])
    ways = every_way(np.array([estimate.value for estimate in estimates]), errors, n)
    return [
        (
            f"{FIRST + WIDTH * i} to {FIRST + WIDTH * i + WIDTH - 1}",
            float(held[i] / n),
            float(errors[i]),
            {name: float(values[i]) for name, values in ways.items()},
        )
        for i in range(held.size)
    ]


def example_table(rows: list[tuple[str, float, float, dict[str, Any]]]) -> str:
    """Return the worked example as a table, in points; the last row sums or says how far off."""
    n = int(people()[0].sum())
    heads = ("years", "true", "raw", "`norm_sub`, `simplex_l2`", "`base_cut`",
             "`simplex_l1`, devices")  # fmt: skip
    lines = [
        (
            name,
            f"{POINTS * true:.2f}",
            f"{POINTS * ways['raw']:.2f} ± {POINTS * normal_quantile(ALPHA) * error:.2f}",
            *(f"{POINTS * ways[way]:.2f}" for way in ("norm_sub", "base_cut")),
            f"{ways['simplex_l1'] * n:,.0f}",
        )
        for name, true, error, ways in rows
    ]
    sums = [sum(ways[way] for *_, ways in rows) for way in ("raw", "norm_sub", "base_cut")]
    texts = (f"{POINTS * total:.2f}" for total in sums)
    whole = sum(ways["simplex_l1"] for *_, ways in rows) * n
    return table(heads, [*lines, ("sum", "100.00", *texts, f"{whole:,.0f}")])


def error_table(held: Any, runs: int, sums: dict[str, Any]) -> str:
    """Return errors by post-processing: of one item, and error and bias of *sums* of items."""
    n, truth = int(held.sum()), held / held.sum()
    oracle = OUE(EPSILON, held.size)
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    error = sqrt(q * (1 - q) / n) / (p - q)  # of an item that nobody holds
    found: dict[str, list[Any]] = {}
    for row in drawn_shares(oracle, held, runs, np.random.default_rng(1)):
        for name, way in every_way(row, np.full(held.size, error), n).items():
            found.setdefault(name, []).append(way)
    heads = [f"{name}, true {POINTS * truth[which].sum():.1f}" for name, which in sums.items()]
    lines = []
    for name, ways in found.items():
        off = np.array(ways) - truth
        cells = [f"{POINTS * sqrt(np.mean(off**2)):.2f}"]
        for which in sums.values():
            of_sum = off[:, which].sum(axis=1)
            cells.append(
                f"{POINTS * sqrt(np.mean(of_sum**2)):.2f}, bias {POINTS * of_sum.mean():+.2f}"
            )
        label = name if name == RESCALED else f"`{name}`"
        lines.append((label, *cells))
    return table(("", "one item", *heads), lines)


def bucket_table() -> str:
    """Return the best number of buckets for real ages, planned from a bell and from the ages."""
    held = to_eighty()
    domain = NumberDomain(Fraction(FIRST), Fraction(FIRST + held.size - 1), Fraction(1), "years")
    lines = []
    for epsilon in ("0.5", "1", "2", "4"):
        for n in (10_000, 100_000):
            by_bell = best_buckets(domain, epsilon, n)[0]
            best = best_buckets(domain, epsilon, n, held.tolist())[0]
            errors = f"{best.bias:.3f}", f"{best.noise:.3f}"
            lines.append((epsilon, f"{n:,}", by_bell.buckets, best.buckets, *errors))
    return table(("ε", "devices", "best by a bell", "best by the ages", "bias", "noise"), lines)


def measured_buckets(runs: int) -> str:
    """Return predicted and measured errors of histograms of ages, by number of buckets."""
    held = to_eighty()
    n, years = int(held.sum()), held.size
    density = years * held / n
    cumulative = np.concatenate([[0.0], np.cumsum(held) / n])
    lines = []
    for k in (4, 8, 10, 16, 20, 40, 80):
        oracle = OUE(EPSILON, k)
        raw = drawn_shares(oracle, in_ranges(held, years // k), runs, np.random.default_rng(2))
        errors = [
            np.mean([np.mean((np.repeat(way * k, years // k) - density) ** 2) for way in ways])
            for ways in (raw, map(simplex_l2, raw))
        ]
        cells = (bias_of(cumulative, k), (k * oracle.predict(n)) ** 2, *errors)
        lines.append((k, *(f"{cell:.3f}" for cell in cells)))
    return table(("buckets", "bias", "noise", "measured, raw", "measured, `norm_sub`"), lines)


def analysis_table(runs: int) -> str:
    """Return what a regression and a clustering find in the truth and in releases (deviation)."""
    held, rich = people()
    lines = []
    ages = np.arange(FIRST, FIRST + YEARS)
    generator = np.random.default_rng(3)
    for epsilon in ("1", "2", "4"):
        joint = np.column_stack([in_ranges(held - rich), in_ranges(rich)]).ravel()
        x = np.repeat(FIRST + WIDTH * np.arange(joint.size // 2) + (WIDTH - 1) / 2, 2)
        y = np.tile([0, 1], joint.size // 2)
        raw = drawn_shares(GRR(epsilon, joint.size), joint, runs, generator)
        slopes = [slope(x, y, simplex_l2(each)) for each in raw]
        true = f"{POINTS * slope(x, y, joint):.3f}"
        found = f"{POINTS * np.mean(slopes):.3f} ({POINTS * np.std(slopes):.3f})"
        lines.append(("points of income over 50K a year of age", epsilon, true, found))
    for epsilon in ("1", "2", "4"):
        wave = SquareWave(epsilon, held.size)
        drawn = law_of(wave).drawn(held, runs // 10, generator)
        histograms = (histogram(wave, tally, int(held.sum())) for tally in drawn)
        centres = np.array([two_means(ages, shares)[:2] for shares in histograms])
        true = " and ".join(f"{centre:.1f}" for centre in two_means(ages, held)[:2])
        means = zip(centres.mean(axis=0), centres.std(axis=0), strict=True)
        found = " and ".join(f"{mean:.1f} ({error:.1f})" for mean, error in means)
        lines.append(("two clusters of ages, centres", epsilon, true, found))
    return table(("analysis", "ε", "true", "in the release"), named_once(lines, 1))


def main() -> None:
    """Print the tables of docs/evidence/tables/release.md."""
    held = in_ranges(people()[0])
    print("### a worked example\n")
    print(example_table(example()))
    print(f"\n### errors over {RUNS:,} runs, in points\n")
    tail = np.arange(TAIL, held.size)
    print(error_table(held, RUNS, {"67 and older": tail, "27 to 41": np.arange(2, 5)}))
    ranks = 1 / np.arange(1, ITEMS + 1)
    many = np.rint(REPORTS * ranks / ranks.sum()).astype(np.int64)
    print(f"\n### {ITEMS:,} items, {many.sum():,} devices\n")
    wanted = {"the first": np.arange(1), "the second half": np.arange(ITEMS // 2, ITEMS)}
    print(error_table(many, RUNS // 10, wanted))
    print("\n### buckets\n")
    print(bucket_table())
    print()
    print(measured_buckets(RUNS // 5))
    print("\n### analyses\n")
    print(analysis_table(RUNS // 5))


def drawn_shares(
    oracle: FrequencyOracle, held: Any, runs: int, generator: np.random.Generator
) -> Any:
    """Return unbiased shares from the exact law of GRR or OUE, shape (runs, items)."""
    supports = law_of(oracle).drawn(held, runs, generator)
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    return (supports / int(held.sum()) - q) / (p - q)
