"""How far the mechanism that ``auto`` takes is from the optimum, predicted and measured.

The optimum is subset selection at its best integer size, without a limit on the report.  Errors are
mean squares over all items, so the frequencies' sum of 1 is taken in and the data do not matter.

Source: Ye, Barg, IEEE Transactions on Information Theory 2018: subset selection, its p and q, and
    that its risk is the asymptotic minimax one.

Run: ``python -m benchmarks accuracy``; some minutes, as every setting is drawn too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks.lib import page
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import MAX_DOMAIN_SIZE, ItemMechanism, Mechanism
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import MAX_AUTO_PAYLOAD, candidates, choose

EPSILONS: Final = ("0.5", "1", "2", "3", "4", "5")  # nats per report
DOMAIN_SIZES: Final = (
    *(2, 3, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024),
    *(2048, 4096, 8000),
)
BAR: Final = 1.05  # mean square error of ``auto`` over that of the optimum
LARGE_EPSILONS: Final = ("6", "7", "8", "9", "10", "11", "12")  # where few metrics should be
LARGE_SIZES: Final = (500, 1_500, 4_034, 10_000, 23_847, 63_460, 155_672, 423_162, 1_000_000)
# Domain sizes in units of e^ε + 1, in which the hardest settings of every epsilon are the same.
MULTIPLES: Final = tuple(1.1**step for step in range(-8, 47))
DENSE_STEP: Final = 1.05  # ratio of the domain sizes of the sweep beyond 128

# Every ε that a metric may have, and sizes that step by some 8 %, besides the smallest.
GRID_EPSILONS: Final = tuple(f"{0.1 * 160 ** (step / 199):.4f}" for step in range(200))
GRID_SIZES: Final = tuple(sorted({round(2 * 50_000 ** (step / 149)) for step in range(150)}))
FAIR_ERROR: Final = (
    1.02  # standard error over that of ``auto``, within which another may be cheaper
)
FAIR_FOLD: Final = 4  # but not by more than this in the steps of a fold

REPORTS: Final = 200  # a run; the formula holds for any number
SAMPLES: Final = 20_000  # squared errors a setting; they leave a standard error of about 1 %
RUNS: Final = 20  # at least


def optimum(epsilon: float, domain_size: int) -> float:
    """Return the mean square error of a share, times the reports, of the best subset size."""
    odds = math.exp(epsilon)
    centre = int(domain_size / (odds + 1))  # the risk is convex around it
    sizes = range(max(centre - 3, 1), min(centre + 4, domain_size))
    return min(_risk(size, domain_size, odds) for size in sizes)


def predicted(epsilon: str, domain_size: int) -> tuple[Mechanism[Any], float]:
    """Return what ``auto`` takes, and its predicted mean square error over the optimum's."""
    _, mechanism = choose(AUTO, ItemMechanism, epsilon, domain_size)
    return mechanism, mechanism.predict(1) ** 2 / optimum(float(epsilon), domain_size)


def measured(epsilon: str, domain_size: int) -> tuple[float, float]:
    """Return the measured ratio to the optimum of what ``auto`` takes, and that ratio's error.

    The population is Zipf's, fixed; randomness is the operating system's.
    """
    _, mechanism = choose(AUTO, ItemMechanism, epsilon, domain_size)
    people, randomness = population(domain_size, REPORTS), system_randomness()
    truth = np.bincount(people, minlength=domain_size)
    runs = max(RUNS, SAMPLES // domain_size)
    squares = []
    for _ in range(runs):
        column = b"".join(mechanism.randomize(item, randomness) for item in people)
        totals = mechanism.debias(mechanism.tally(column, np), REPORTS, np).totals
        squares.append(float(((totals - truth) ** 2).mean()) / REPORTS)
    best = optimum(float(epsilon), domain_size)
    return float(np.mean(squares)) / best, float(np.std(squares)) / best / math.sqrt(runs)


def population(domain_size: int, people: int) -> list[int]:
    """Return the items of *people*, most common first, by Zipf's law with exponent 1.1."""
    weights = 1 / np.arange(1, domain_size + 1) ** 1.1
    edges = np.rint(np.cumsum(weights) / weights.sum() * people).astype(int)
    return [int(item) for item in np.searchsorted(edges, np.arange(people), side="right")]


def dense_sizes() -> list[int]:
    """Return every domain size up to 128, then steps of 5 % up to 8,000."""
    sizes, size = list(range(2, 129)), 128.0
    while (size := size * DENSE_STEP) < DOMAIN_SIZES[-1]:
        sizes.append(round(size))
    return sizes


def heading(epsilons: Sequence[str] = EPSILONS) -> str:
    """Return the head of a table: one row a domain size, one column an epsilon."""
    return page.head("items", *(f"ε = {epsilon}" for epsilon in epsilons))


def table(sizes: Sequence[int] = DOMAIN_SIZES, epsilons: Sequence[str] = EPSILONS) -> str:
    """Return the predicted ratios as Markdown; a mechanism without one has 1.000."""
    lines = [heading(epsilons)]
    for size in sizes:
        ratios = (predicted(epsilon, size) for epsilon in epsilons)
        cells = (
            f"{mechanism.name} {ratio:.3f}".removesuffix(" 1.000") for mechanism, ratio in ratios
        )
        lines.append(page.row(f"{size:,}", *cells))
    return "\n".join(lines)


def worst() -> str:
    """Return the worst predicted ratio of a dense sweep, against the bar."""
    sizes = (*dense_sizes(), *DOMAIN_SIZES)
    ratio, epsilon, size = max(
        (predicted(epsilon, size)[1], epsilon, size) for epsilon in EPSILONS for size in sizes
    )
    verdict = page.verdict(ratio <= BAR)
    settings = f"{len(EPSILONS) * len(dense_sizes()):,} settings"
    return (
        f"worst of {settings}: {ratio:.3f} at ε = {epsilon}, {size:,} items; bar {BAR}: {verdict}"
    )


def large_sizes(epsilon: str) -> list[int]:
    """Return domain sizes up to 8 million around e^ε, where mechanisms take turns."""
    sizes = (round((math.exp(float(epsilon)) + 1) * multiple) for multiple in MULTIPLES)
    return [size for size in sizes if size < MAX_DOMAIN_SIZE // 2]


def worst_of_large() -> str:
    """Return the worst predicted ratio of the large epsilons, against the bar."""
    settings = [(epsilon, size) for epsilon in LARGE_EPSILONS for size in large_sizes(epsilon)]
    ratio, epsilon, size = max((predicted(*setting)[1], *setting) for setting in settings)
    verdict = page.verdict(ratio <= BAR)
    return (
        f"worst of {len(settings):,} settings: {ratio:.3f} at ε = {epsilon}, {size:,} items;"
        f" bar {BAR}: {verdict}"
    )


def overpaid(epsilon: str, domain_size: int) -> float:
    """Return the steps of a fold of what ``auto`` takes, over the least within FAIR_ERROR of it."""
    _, taken = choose(AUTO, ItemMechanism, epsilon, domain_size)
    others = candidates(ItemMechanism, epsilon, domain_size, automatic=True)
    near = (
        each.fold_steps
        for each in others
        if each.fits(MAX_AUTO_PAYLOAD) and each.error <= FAIR_ERROR * taken.predict(1)
    )
    return taken.fold_steps / min(near)


def worst_of_grid() -> str:
    """Return the worst predicted ratio and the worst price of a fold over the grid."""
    settings = [(epsilon, size) for epsilon in GRID_EPSILONS for size in GRID_SIZES]
    ratio, epsilon, size = max((predicted(*setting)[1], *setting) for setting in settings)
    price = max(overpaid(*setting) for setting in settings)
    verdict = page.verdict(ratio <= BAR and price <= FAIR_FOLD)
    return (
        f"worst of {len(settings):,} settings, ε from 0.1 to 16 and 2 to 100,000 items: {ratio:.3f}"
        f" at ε = {epsilon}, {size:,} items; bar {BAR}; a fold of {price:.1f} times the steps of"
        f" another within {FAIR_ERROR} of its error; bar {FAIR_FOLD}: {verdict}"
    )


def main() -> None:
    """Print the predicted ratios, their worst, and the measured ratios."""
    print(table(), worst(), table(LARGE_SIZES, LARGE_EPSILONS), worst_of_large(), sep="\n\n")
    print(f"\n{worst_of_grid()}\n")
    print(heading(), flush=True)
    deviations = []
    for size in DOMAIN_SIZES:
        found = [measured(epsilon, size) for epsilon in EPSILONS]
        for epsilon, (ratio, error) in zip(EPSILONS, found, strict=True):
            deviations.append((ratio - predicted(epsilon, size)[1]) / error)
        cells = (f"{ratio:.3f} ({error:.3f})" for ratio, error in found)
        print(page.row(f"{size:,}", *cells), flush=True)
    farthest = max(deviations, key=abs)
    print(f"\nmeasured beside predicted: {farthest:+.1f} standard errors ", end="")
    print(f"at the most, of {len(deviations)}")


def _risk(size: int, k: int, odds: float) -> float:
    p = size * odds / (size * odds + k - size)
    q = (p * (size - 1) + (1 - p) * size) / (k - 1)
    return q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (k * (p - q))
