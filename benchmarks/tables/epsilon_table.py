"""What ε means: how far one report can be trusted, and how many devices an answer takes.

Run: ``python -m benchmarks epsilon_table``; the README holds its output, and a test compares them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

from benchmarks.lib import page
from client_sdk.mechanisms import ItemMechanism
from client_sdk.privacy.budget import guesses, nano_of, shift
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose

EPSILONS = ("0.5", "1.0", "2.0", "4.0")
POINT = 0.01  # one percentage point
CATEGORIES = 17


def table() -> str:
    """Return the table as Markdown."""
    heads = ("ε per report", "a yes/no report is true with, at most",
             "and shifts anybody's odds by, at most", "devices for ±1 point, yes/no",
             f"devices for ±1 point, {CATEGORIES} items")  # fmt: skip
    rows = []
    for epsilon in EPSILONS:
        nano = nano_of(Fraction(epsilon))
        devices = (f"{_devices(epsilon, items):,}" for items in (2, CATEGORIES))
        rows.append((epsilon, f"{guesses(nano)} %", f"{shift(nano)} : 1", *devices))
    return page.table(heads, rows)


def _devices(epsilon: str, items: int) -> int:
    """Return the devices for a 95 % half-width of one point, rounded up to two digits."""
    _, mechanism = choose(AUTO, ItemMechanism, epsilon, items)
    needed = (NormalDist().inv_cdf(0.975) * mechanism.predict(1) / POINT) ** 2
    magnitude: int = 10 ** (int(math.log10(needed)) - 1)
    return math.ceil(needed / magnitude) * magnitude


def main() -> None:
    """Print the table."""
    print(table())
