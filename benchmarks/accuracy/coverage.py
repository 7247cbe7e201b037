"""How often 95 % intervals hold the truth: shares exactly, means in 20,000 replications.

Run: ``python -m benchmarks coverage``; a minute or two.  Supports of an item are the sum of
Binomial(c, p) and Binomial(n - c, q), whose law is summed up.  Tallies of means are drawn as what
they are: symbols a multinomial of their enumerated law, noise its own distribution.  20,000 have a
standard error of 0.15 points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from benchmarks.lib.page import table, verdict
from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import (
    Channel,
    FrequencyOracle,
    MeanMechanism,
    SetMechanism,
    load,
    names,
)
from client_sdk.mechanisms.numbers._sums import SumReports
from client_sdk.mechanisms.numbers._symbols import SymbolReports
from client_sdk.mechanisms.numbers.discrete_gaussian import NOISE_UNIT, DiscreteGaussian
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from client_sdk.registry.types.numbers import NumberDomain
from collector.estimation.estimate import is_pure, linear_limits, mean, score_limits
from collector.estimation.few import FEW, are_few
from tests.support.enumeration.enumeration import distribution

Oracle: TypeAlias = FrequencyOracle | SetMechanism
Limits: TypeAlias = Callable[[Channel, Any, int, float], tuple[Any, Any]]
Population: TypeAlias = Mapping[int, int]  # devices by the grid point that they hold

REPLICATIONS: Final = 20_000
ALPHA: Final = 0.05
LOW, HIGH = 0.94, 0.96  # the bar

EXPECTED_SUPPORTS: Final = 50  # n q and n (1-q); below, counts are too coarse for any exact level
LEAST_REPORTS: Final = 1_000
SHARES: Final = (0.0, 0.002, 0.05, 0.4)  # of the devices that hold the item
SETTINGS: Final = (("0.5", 4), ("1", 16), ("1", 128), ("2", 256), ("4", 64))  # ε and items

FEW_KINDS: Final = (
    ("grr", 2),
    ("grr", 16),
    ("grr", 200),
    ("grr", 1_000),
    ("oue", 200),
    ("sue", 64),
    ("olh", 1_000),
    ("subset_selection", 200),
)
FEW_EPSILONS: Final = ("0.5", "1", "2", "4", "6", "8", "10", "12", "14", "16")
FEW_REPORTS: Final = (100, 300, 1_000, 5_000, 20_000, 100_000)
HOLDERS: Final = (0.0, 0.01, 0.1, 1.0)  # of the devices
LIES: Final = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 9.9, 10.0, 30.0)  # expected among 1,000 reports
CLOSE: Final = 1e-9  # of a device

POINTS: Final = NumberDomain(Fraction(0), Fraction(100), Fraction(1), "points")
EPSILONS: Final = ("0.5", "1", "4")  # of the means
POPULATIONS: Final[tuple[Population, ...]] = ({30: 600}, {0: 200, 33: 250, 100: 150})
BLOCK: Final = 1_000  # replications drawn at once
FARTHEST: Final = 12  # standard deviations; Gaussian noise beyond them is left out


def oracles() -> list[Oracle]:
    """Return every mechanism with the pure estimator, at every setting that it can have."""
    found: list[Oracle] = []
    for name in names():
        if not issubclass(load(name), FrequencyOracle | SetMechanism):
            continue
        for epsilon, size in SETTINGS:
            try:
                oracle = load(name)(epsilon, size)
            except InvalidParameterError:
                continue
            if is_pure(oracle):
                found.append(oracle)
    return found


def enough(oracle: Oracle) -> int:
    """Return the least reports that expect EXPECTED_SUPPORTS from devices without the item."""
    q = float(oracle.channel.q)
    return max(LEAST_REPORTS, round(EXPECTED_SUPPORTS / min(q, 1 - q)))


def estimates(channel: Channel, holders: int, n: int) -> tuple[Any, Any]:
    """Return the unbiased counts of an item that *holders* of *n* devices hold, and their chances.

    Each binomial law is cut off FARTHEST standard deviations from its mean: 1e-32 is missing.
    """
    p, q = float(channel.p), float(channel.q)
    (least, held), (others, law) = _binomial(holders, p), _binomial(n - holders, q)
    chances = np.convolve(held, law)
    supports = least + others + np.arange(chances.size)
    return (supports - n * q) / (p - q), chances


def _binomial(n: int, p: float) -> tuple[int, Any]:
    """Return the least outcome that matters, and the chances from there on."""
    reach = FARTHEST * math.sqrt(n * p * (1 - p)) + FARTHEST
    least, most = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    hits = np.arange(least, most + 1)
    ways = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in hits]
    logs = np.array(ways) + hits * math.log(p) + (n - hits) * math.log1p(-p)
    return least, np.exp(logs)


def item_coverage(oracle: Oracle, share: float) -> float:
    """Return with which chance the interval holds the count of an item."""
    n = enough(oracle)
    return coverage(oracle.channel, round(share * n), n).chance


class Cover(NamedTuple):
    """With which chance an interval holds a count, and its mean half-width in devices."""

    chance: float
    half: float


def coverage(
    channel: Channel, holders: int, n: int, limits: Limits = score_limits, alpha: float = ALPHA
) -> Cover:
    """Return the exact coverage of intervals of a count of *holders* among *n* devices."""
    found, chances = estimates(channel, holders, n)
    low, high = limits(channel, found, n, alpha)
    held = (low - CLOSE <= holders) & (holders <= high + CLOSE)
    return Cover(float(chances @ held), float(chances @ (high - low)) / 2)


def score_without_skew(channel: Channel, totals: Any, n: int, alpha: float) -> tuple[Any, Any]:
    """Return Wilson's limits, which take a few lies for normal noise."""
    p, q = float(channel.p), float(channel.q)
    return linear_limits(totals, n * q * (1 - q) / (p - q) ** 2, (1 - p - q) / (p - q), alpha)


def few_lies() -> Iterator[tuple[Oracle, int]]:
    """Yield oracles and numbers of reports of which few are expected to lie, in either way."""
    for name, size in FEW_KINDS:
        for epsilon in FEW_EPSILONS:
            try:
                oracle = cast("Oracle", load(name)(epsilon, size))
            except InvalidParameterError:
                continue
            yield from ((oracle, n) for n in FEW_REPORTS if are_few(oracle.channel, n))


def mean_coverage(mechanism: MeanMechanism, population: Population) -> float:
    """Return in which part of the replications the interval holds the mean of *population*."""
    n = sum(population.values())
    truth = sum(point * devices for point, devices in population.items()) / n
    found = (mean(mechanism, POINTS, tally, n, ALPHA) for tally in tallies(mechanism, population))
    return sum(one.ci_low <= truth <= one.ci_high for one in found) / REPLICATIONS


def tallies(mechanism: MeanMechanism, population: Population) -> Iterator[Any]:
    """Yield the tally of every replication."""
    chance = np.random.default_rng([*population, round(1_000 * mechanism.epsilon)])
    if isinstance(mechanism, SumReports):
        for _ in range(REPLICATIONS // BLOCK):
            yield from _sums(mechanism, population, chance)
        return
    symbols = cast("SymbolReports", mechanism)
    total = np.zeros((REPLICATIONS, symbols.tally_size), dtype=np.int64)
    for point, devices in population.items():
        law = distribution(lambda rnd, v=point: symbols.draw(Fraction(v), rnd))  # type: ignore[misc]  # bound now
        chances = np.array([float(law.pmf.get(s, Fraction(0))) for s in range(symbols.tally_size)])
        total += chance.multinomial(devices, chances / chances.sum(), size=REPLICATIONS)
    yield from total


def _sums(mechanism: SumReports, population: Population, chance: np.random.Generator) -> Any:
    """Return BLOCK tallies of noisy positions, counted in units."""
    units = np.repeat(list(population), list(population.values())) / float(mechanism.unit)
    shape = (BLOCK, units.size)
    reports = np.floor(units + chance.random(shape)).astype(np.int64)  # rounded at random
    reports += _noise(mechanism, chance, shape)
    squares = (reports**2).sum(axis=1)  # below 2^32, so the high half stays 0
    return np.stack([reports.sum(axis=1), squares, np.zeros_like(squares)], axis=1)


def _noise(mechanism: SumReports, chance: np.random.Generator, shape: tuple[int, int]) -> Any:
    if isinstance(mechanism, DiscreteLaplace):  # the difference of two geometric numbers
        stop = 1 - np.exp(-1 / float(mechanism.scale))
        return chance.geometric(stop, shape) - chance.geometric(stop, shape)
    variance = cast("DiscreteGaussian", mechanism).noise / NOISE_UNIT
    reach = int(FARTHEST * variance**0.5)
    noise = np.arange(-reach, reach + 1)
    weights = np.exp(-(noise**2) / (2 * variance))
    return chance.choice(noise, p=weights / weights.sum(), size=shape)


def item_table() -> str:
    """Return the coverage of the shares of items as Markdown, in percent: a row a mechanism."""
    rows: dict[str, list[str]] = {}
    for oracle in oracles():
        cells = (f"{100 * item_coverage(oracle, share):.1f}" for share in SHARES)
        rows.setdefault(oracle.name, []).append(f"{enough(oracle):,}: {', '.join(cells)}")
    heads = (f"ε {epsilon}, {size} items" for epsilon, size in SETTINGS)
    return table(("mechanism", *heads), ((name, *cells) for name, cells in rows.items()))


def mean_table() -> str:
    """Return the coverage of means as Markdown, in percent."""
    rows = []
    for name in names():
        kind = load(name)
        if not issubclass(kind, MeanMechanism):
            continue
        for epsilon in EPSILONS:
            mechanism = kind(epsilon, POINTS.size)
            found = (mean_coverage(mechanism, population) for population in POPULATIONS)
            rows.append((name, epsilon, *(f"{100 * share:.1f}" for share in found)))
    return table(("mechanism", "ε", "devices hold the same", "devices differ"), rows)


def few_table() -> str:
    """Return coverage and half-width by the lies to expect, and the least of all settings."""
    rows = []
    for lies in LIES:
        q = Fraction(lies) / LEAST_REPORTS
        for name, p in (("boolean", 1 - q), ("unary", Fraction(1, 2))):
            found = [
                coverage(Channel(p, q), round(share * LEAST_REPORTS), LEAST_REPORTS)
                for share in HOLDERS
            ]
            cells = [f"{100 * one.chance:.1f} ±{one.half:.1f}" for one in found]
            rows.append((f"{lies:g}", name, *cells))
    heads = ("none" if not share else f"{share:.0%}" for share in HOLDERS)
    least = [
        coverage(oracle.channel, round(share * n), n).chance
        for oracle, n in few_lies()
        for share in HOLDERS
    ]
    return (
        f"{table(('lies', 'reports', *heads), rows)}\n\nBar: {1 - ALPHA:.0%} wherever fewer than "
        f"{FEW} lies are expected. Of {len(least):,} settings the least covers "
        f"{100 * min(least):.2f} %: {verdict(min(least) >= 1 - ALPHA)}."
    )


def main() -> None:
    """Print the tables."""
    print(item_table(), end="\n\n", flush=True)
    print(few_table(), end="\n\n", flush=True)
    print(mean_table())
