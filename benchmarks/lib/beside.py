"""What other ways of asking would give: binned numbers, and answers that were collected apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

import numpy as np

from benchmarks.lib.crowds import VISITORS, ages, households, months, scaled, visits, waits
from benchmarks.lib.page import named_once, table
from benchmarks.lib.questions import SEED
from benchmarks.lib.tallies import law_of
from client_sdk.mechanisms import DistributionMechanism, FrequencyOracle
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from collector.analytics.postprocess import simplex_l2
from collector.estimation.histogram import MAX_ROUNDS, TOLERANCE, histogram

EPSILONS: Final = ("0.5", "1", "2", "4")
BINS: Final = (8, 16, 32, 64)
RUNS: Final = 100
PERCENT: Final = 100


def populations() -> dict[str, Any]:
    """Return devices by number, of three real populations."""
    return {
        "minutes to take-off, 0 to 119": waits(most=119),
        "age, 17 to 90": ages(),
        "pages of a visit, 1 to 100": scaled(visits(most=100), VISITORS),
    }


def wasserstein_table(runs: int = RUNS) -> str:
    """Return the mean Wasserstein-1 distance by way, in the unit of the numbers; the best bold."""
    heads = ("numbers", "devices", "ε", "Square Wave", "smoothed as published",
             *(f"{bins} bins" for bins in BINS))  # fmt: skip
    rows = []
    for (name, held), epsilon in product(populations().items(), EPSILONS):
        found = [of_wave(held, epsilon, runs, way) for way in (histogram, as_published)]
        found += [of_bins(held, bins, epsilon, runs) for bins in BINS]
        cells = (f"{x:.2f}" if x > min(found) else f"**{x:.2f}**" for x in found)
        rows.append((name, f"{held.sum():,}", epsilon, *cells))
    return table(heads, named_once(rows, 2))


def of_wave(held: Any, epsilon: str, runs: int, decoded: Callable[..., Any]) -> float:
    """Return the distance of the histogram that Square Wave and a decoder give."""
    mechanism, n = SquareWave(epsilon, held.size), int(held.sum())
    tallies = law_of(mechanism).drawn(held, runs, np.random.default_rng(SEED))
    return float(np.mean([distance(decoded(mechanism, t, n), held) for t in tallies]))


def as_published(mechanism: DistributionMechanism, tally: Any, n: int) -> Any:
    """Return the shares of EM that smooths with (1, 2, 1)/4 after each round, whatever the bins."""
    shares, before = np.full(mechanism.bins, 1 / mechanism.bins), -np.inf
    for _ in range(MAX_ROUNDS):
        law = mechanism.spread(shares, np)
        likelihood = float(tally @ np.log(law)) / n
        if abs(likelihood - before) < TOLERANCE * abs(likelihood):
            break
        before = likelihood
        wide = np.pad(shares * mechanism.gather(tally / n / law, np), 1, "edge")
        shares = (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
    return shares


def of_bins(held: Any, bins: int, epsilon: str, runs: int) -> float:
    """Return that of equal bins, reported by GRR or OUE, whichever has the smaller error."""
    every = from_bins(held, best(epsilon, bins), runs, np.random.default_rng(SEED))
    return float(np.mean([distance(shares, held) for shares in every]))


def from_bins(
    held: Any, oracle: FrequencyOracle, times: int, generator: np.random.Generator
) -> Iterator[Any]:
    """Yield shares of numbers: of equal bins made consistent by norm-sub, spread evenly within."""
    n, place = int(held.sum()), np.arange(held.size) * oracle.domain_size // held.size
    counts = np.bincount(place, weights=held).astype(np.int64)
    for tally in law_of(oracle).drawn(counts, times, generator):
        shares = simplex_l2(oracle.debias(tally, n, np).totals / n)
        yield (shares / np.bincount(place))[place]


def best(epsilon: str, items: int) -> FrequencyOracle:
    """Return GRR or OUE, whichever has the smaller predicted error."""
    oracles: list[FrequencyOracle] = [GRR(epsilon, items), OUE(epsilon, items)]
    return min(oracles, key=lambda one: one.predict(1))


def distance(found: Any, held: Any) -> float:
    """Return the Wasserstein-1 distance of shares from the truth, in steps of the numbers."""
    return float(np.abs(np.cumsum(found) - np.cumsum(held / held.sum())).sum())


def tables() -> dict[str, Any]:
    """Return devices by two answers, of two real populations: one associated, one hardly."""
    return {
        "marital status, income": households().reshape(-1, 2),
        "month, carrier": np.array(list(months().values())),
    }


def joint_table(runs: int = RUNS) -> str:
    """Return the mean total variation distance of tables of two answers, by way, in points."""
    heads = ("answers", "devices, cells", "ε", "declared pair, raw", "declared pair, `norm_sub`",
             "one of both, by chance", "both, half of ε each")  # fmt: skip
    rows = []
    for name, held in tables().items():
        size = f"{held.sum():,}, {held.size}"
        truth = held / held.sum()
        for epsilon in EPSILONS:
            ways = zip(*(_ways(held, epsilon, seed) for seed in range(runs)), strict=True)
            found = [PERCENT * np.mean([_variation(x, truth) for x in way]) for way in ways]
            cells = (f"{x:.1f}" if x > min(found) else f"**{x:.1f}**" for x in found)
            rows.append((name, size, epsilon, *cells))
        apart = np.outer(truth.sum(axis=1), truth.sum(axis=0))
        floor = PERCENT * _variation(apart, truth)
        rows.append((name, size, "no noise", "0.0", "0.0", f"{floor:.1f}", f"{floor:.1f}"))
    return table(heads, named_once(rows, 2))


def _ways(held: Any, epsilon: str, seed: int) -> list[Any]:
    """Return the table as every way tells it, once."""
    generator = np.random.default_rng([SEED, seed])
    pair = _shares(held.ravel(), epsilon, generator)
    return [
        pair.reshape(held.shape),
        simplex_l2(pair).reshape(held.shape),
        _sampled(held, epsilon, generator),
        _split(held, epsilon, generator),
    ]


def _shares(held: Any, epsilon: str, generator: np.random.Generator) -> Any:
    """Return unbiased shares from one report of each device."""
    oracle = best(epsilon, held.size)
    (tally,) = law_of(oracle).drawn(held, 1, generator)
    n = int(held.sum())
    return oracle.debias(tally, n, np).totals / n


def _sampled(held: Any, epsilon: str, generator: np.random.Generator) -> Any:
    """Return the product of both margins, each device telling one of both answers."""
    rows = generator.binomial(held, 0.5)
    sides = rows.sum(axis=1), (held - rows).sum(axis=0)
    return np.outer(*(simplex_l2(_shares(side, epsilon, generator)) for side in sides))


def _split(held: Any, epsilon: str, generator: np.random.Generator) -> Any:
    """Return the product of both margins, each device telling both at half of ε each."""
    half = str(float(epsilon) / 2)
    sides = held.sum(axis=1), held.sum(axis=0)
    return np.outer(*(simplex_l2(_shares(side, half, generator)) for side in sides))


def _variation(found: Any, truth: Any) -> float:
    return float(np.abs(found - truth).sum() / 2)
