"""What a channel made for questions is worth, beside the best of all others and the bound.

Run: ``python -m benchmarks designs``, some minutes; docs/evidence/tables/designs.md is its print.
Errors are those that the laws state, for devices that hold all items alike.  The last table draws
whole reports by the code of the device, for devices of which item i is held by 1/i as many.
"""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any, Final

import numpy as np

from benchmarks.lib import page
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import ItemMechanism
from collector.estimation.estimate import normal_quantile
from collector.planning.design import DEVICES, Design, design, gram, others

EPSILONS: Final = ("0.5", "1", "2", "4")
SIZES: Final = (8, 16, 32, 64)
ASKED: Final = ("quantiles", "ranges", "items")
LARGE: Final = ("1", 128)  # epsilon and items: one design of some minutes
ALPHA: Final = 0.05
REPORTS, RUNS, TALLIES = 100_000, 20, 1_000
SEED: Final = 20261129
_POINTS: Final = 100 * normal_quantile(ALPHA) / DEVICES**0.5


def main() -> None:
    """Print the tables."""
    heads = ("ε", "items", "asked", "design", "bound", "next best", "devices saved", "one item")
    rows, drawn = [], list[tuple[str, ...]]()
    for epsilon, size in (*product(EPSILONS, SIZES), LARGE):
        for asked in ASKED if size in SIZES[:2] else ASKED[:1]:
            rows.append(_row(epsilon, size, asked, drawn))
    print(page.table(heads, rows))
    print()
    own_heads = ("ε", "items", "measured error", "by the formula", "intervals hold", "by the law")
    print(page.table(own_heads, drawn))


def _row(epsilon: str, size: int, asked: str, drawn: list[tuple[str, ...]]) -> tuple[str, ...]:
    questions = gram({asked: 1}, size)
    begun = time.process_time()
    made = design(Fraction(epsilon), size, questions)
    seconds = time.process_time() - begun
    name, error = next(iter(others(Fraction(epsilon), size, questions).items()))
    print(f"<!-- {epsilon} {size} {asked}: {seconds:.0f} s -->", flush=True)
    if asked == "quantiles" and size == SIZES[1]:
        drawn.append((epsilon, str(size), *_drawn(made)))
    return (
        epsilon,
        str(size),
        asked,
        f"±{_POINTS * made.error:.2f}",
        f"±{floor(100 * _POINTS * made.bound) / 100:.2f}" if made.bound else "–",
        f"`{name}` ±{_POINTS * error:.2f}",
        f"{(error / made.error) ** 2:.2f} ×",
        f"±{_POINTS * made.mechanism.predict(1):.2f}",
    )


def _drawn(made: Design) -> tuple[str, ...]:
    """Return measured and stated error of the shares up to an item, and coverage, drawn twice.

    Whole reports by the code of the device; and many more tallies by its exact law.
    """
    mechanism: ItemMechanism = made.mechanism
    size, chance = mechanism.domain_size, system_randomness()
    counts = np.round(REPORTS / np.arange(1, size + 1) / (1 / np.arange(1, size + 1)).sum())
    counts[0] += REPORTS - counts.sum()
    weights = np.tril(np.ones((size, size)))[:-1]
    truth = weights @ counts / REPORTS

    def judged(tally: Any) -> tuple[Any, Any]:
        shares = mechanism.debias(tally, REPORTS, np).totals / REPORTS
        variances = mechanism.sum_variances(weights, np, tally=tally, n=REPORTS, shares=shares)
        return weights @ shares - truth, variances

    def whole() -> Any:
        held = (item for item, count in enumerate(counts) for _ in range(int(count)))
        return mechanism.tally(b"".join(mechanism.randomize(item, chance) for item in held), np)

    errors, stated = np.transpose([judged(whole()) for _ in range(RUNS)], (1, 0, 2))
    law, random = mechanism.enumerated(np), np.random.default_rng(SEED)
    assert law is not None
    chances = law.chances / law.chances.sum(axis=1, keepdims=True)
    reports = random.multinomial(counts.astype(int), chances, (TALLIES, size)).sum(axis=1)
    others, likely = np.transpose([judged(tally) for tally in reports @ law.cells], (1, 0, 2))
    z = normal_quantile(ALPHA)
    inside = [np.abs(e) <= z * np.sqrt(v) for e, v in ((errors, stated), (others, likely))]
    return (
        f"{100 * np.sqrt(np.mean(errors**2)):.3f} points",
        f"{100 * np.sqrt(np.mean(stated)):.3f}",
        *(f"{100 * np.mean(each):.1f} %" for each in inside),
    )
