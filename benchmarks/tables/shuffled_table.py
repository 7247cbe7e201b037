"""What shuffled reports tell: our bound, what an attack reaches, and the bound done by hand.

Run: ``python -m benchmarks shuffled_table``; docs/ask/shuffled.md holds its output, and a test
compares them.
"""

from __future__ import annotations

import math
from typing import Final

from benchmarks.lib.page import table
from collector.core.text_tables import above
from collector.planning.amplification import Crossing, closed_form, reached, shuffled

CROWDS: Final = ((1_000, 1e-6), (10_000, 1e-6), (100_000, 1e-8), (1_000_000, 1e-8))
EPSILONS: Final = (1.0, 2.0, 4.0)
ITEMS: Final = 16
HEADS: Final = (
    "reports", "δ", "ε of a report", "by hand", "any mechanism", f"`grr` of {ITEMS}",
    f"attack on `grr` of {ITEMS}", "two reports", "attack on two reports",
)  # fmt: skip


def shuffled_table() -> str:
    """Return bounds and attacks as Markdown."""
    rows = []
    for devices, delta in CROWDS:
        for epsilon in EPSILONS:
            rest = math.exp(epsilon) + ITEMS - 1
            grr = Crossing(math.exp(epsilon) / rest, 1 / rest, 1 / rest)
            bounds = (
                closed_form(epsilon, devices, delta),
                shuffled(epsilon, devices, delta).epsilon,
                shuffled(epsilon, devices, delta, math.expm1(epsilon) / rest).epsilon,
            )
            attack = reached(grr, devices, delta)
            truth = 1 / (1 + math.exp(-epsilon))
            two = shuffled(epsilon, devices, delta, two=True).epsilon
            ends = above(two), _below(reached(Crossing(truth, 1 - truth, 0.5), devices, delta))
            cells = (*map(above, bounds), _below(attack), *ends)
            rows.append((f"{devices:,}", f"{delta:g}", f"{epsilon:g}", *cells))
    return table(HEADS, rows)


def _below(number: float) -> str:
    """Return *number* with three digits, rounded down: an attack reaches no more than it does."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return f"{math.floor(number / unit) * unit:.3g}"


def main() -> None:
    """Print the table."""
    print(shuffled_table())
