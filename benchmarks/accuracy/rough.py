"""How often intervals of distributions hold, of rough populations and of smooth ones.

Run: ``python -m benchmarks rough``; six minutes.  With ``--write`` the tables go into
docs/evidence/tables/rough.md, between their marks.  Every answer is asked of a verb, its tally
drawn anew from the exact law of the mechanism, from a fixed seed.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from benchmarks.lib.page import PAGES, table, write
from benchmarks.lib.shapes import LEVELS, Held, parts, quantiles, rough, smooth
from client_sdk.registry.metric import SMOOTH

PAGE: Final = PAGES / "evidence" / "tables" / "rough.md"
QUANTILES: Final = [f"p{100 * level:.0f}" for level in LEVELS]
EPSILONS: Final = ("0.5", "1", "2", "4")
DEVICES: Final = 45_000
FEW: Final = 2_000
TIMES: Final = 300  # answers of quantiles
OF_PARTS: Final = 120  # of ranges, cumulative shares and histograms


def main() -> None:
    """Print what goes between the marks of docs/evidence/tables/rough.md, or put it there."""
    made = {"rough": rough_table(), "price": price_table()}
    if "--write" not in sys.argv:
        print("\n\n".join(made.values()))
        return
    write(PAGE, **made)


def rough_table() -> str:
    """Return a row a population and epsilon, and the count of what misses the bar."""
    rows, least, good, misled = [], [], 0, 0
    for kind in rough(DEVICES):
        width = float(kind.numbers[-1] - kind.numbers[0])
        for epsilon in EPSILONS:
            found, shares = quantiles(kind, epsilon, TIMES), parts(kind, epsilon, OF_PARTS)
            declared = quantiles(kind, epsilon, TIMES // 4, SMOOTH)
            cells = (*_cells(found, width), _two(shares), _two(declared))
            rows.append((f"{kind.name}, `{kind.shape}`", epsilon, *cells))
            least += [found.rates.min(), shares.rates.min()]
            good, misled = good + found.good + shares.good, misled + found.misled + shares.misled
    few = [quantiles(kind, e, TIMES // 2).rates for kind in rough(FEW) for e in EPSILONS]
    heads = ("population, shape", "ε", *QUANTILES, "parts: all, least", "declared smooth")
    return (
        f"{table(heads, rows)}\n\nThe least of all rates is {100 * min(least):.1f} %. Of "
        f"{good:,} rows that are called good, {misled:,} miss. "
        f"With {FEW:,} devices the least rate of a quantile is "
        f"{100 * np.min(few):.1f} %, the mean {100 * np.mean(few):.1f} %."
    )


def price_table() -> str:
    """Return a row a smooth population and epsilon: both declarations, and what the first costs."""
    rows = []
    for kind in smooth(DEVICES):
        width = float(kind.numbers[-1] - kind.numbers[0])
        for epsilon in EPSILONS:
            found = {s: quantiles(kind, epsilon, TIMES, s) for s in (kind.shape, SMOOTH)}
            for shape, one in found.items():
                rows.append((f"{kind.name}, `{shape}`", epsilon, *_cells(one, width)))
    return table(("population, shape", "ε", *QUANTILES), rows)


def _cells(found: Held, width: float) -> list[str]:
    """Return the rate and the half-width in percent of the range, a cell a quantile."""
    return [
        f"{100 * rate:.1f} ±{100 * half / width:.2f}"
        for rate, half in zip(found.rates, found.widths, strict=True)
    ]


def _two(found: Held) -> str:
    return f"{100 * np.mean(found.rates):.1f}, {100 * np.min(found.rates):.1f}"
