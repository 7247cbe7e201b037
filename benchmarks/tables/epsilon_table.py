"""What ε means: how far one report can be trusted, and how many devices an answer takes.

Run: ``python -m benchmarks epsilon_table``; the README holds its output, and a test compares them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

from client_sdk.privacy.budget import guesses, nano_of, shift
from client_sdk.registry.selection import AUTO, choose

EPSILONS = ("0.5", "1.0", "2.0", "4.0")
POINT = 0.01  # one percentage point
CATEGORIES = 17


def table() -> str:
    """Return the table as Markdown."""
    lines = [
        "| ε per report | a yes/no report is true with, at most "
        "| and shifts anybody's odds by, at most "
        f"| devices for ±1 point, yes/no | devices for ±1 point, {CATEGORIES} items |",
        "|---|---|---|---|---|",
    ]
    for epsilon in EPSILONS:
        nano = nano_of(Fraction(epsilon))
        lines.append(
            f"| {epsilon} | {guesses(nano)} % | {shift(nano)} : 1 "
            f"| {_devices(epsilon, 2):,} | {_devices(epsilon, CATEGORIES):,} |"
        )
    return "\n".join(lines)


def _devices(epsilon: str, items: int) -> int:
    """Return the devices for a 95 % half-width of one point, rounded up to two digits."""
    _, mechanism = choose(AUTO, True, epsilon, items)
    needed = (NormalDist().inv_cdf(0.975) * mechanism.predict(1) / POINT) ** 2
    magnitude: int = 10 ** (int(math.log10(needed)) - 1)
    return math.ceil(needed / magnitude) * magnitude


def main() -> None:
    """Print the table."""
    print(table())
