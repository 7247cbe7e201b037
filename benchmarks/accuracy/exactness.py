"""How much of ε the channels as built leave unspent, and that none exceeds it.

Run: ``python -m benchmarks exactness``; docs/evidence/tables/exactness.md
holds its output, and a test compares them.
A likelihood ratio is a fraction, compared here with a rational below e^ε.  ``spent`` is its
logarithm, rounded up at 80 digits; Laplace and Gaussian noise have their scale from ε itself.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, Final

from benchmarks.lib import page
from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import Mechanism, load, names
from client_sdk.mechanisms.exact import exp_floor

EPSILONS: Final = ("0.01", "0.1", "0.5", "1", "2", "3", "4", "5", "8", "16")  # nats per report
DOMAIN_SIZES: Final = (2, 16, 128, 1_024)  # items or grid points
BAR: Final = 40  # what is left must be at most 2^-BAR nats


@cache
def settings(name: str) -> tuple[Mechanism[Any], ...]:
    """Return mechanism *name* at every setting that it can have."""
    found = []
    for epsilon, size in product(EPSILONS, DOMAIN_SIZES):
        with suppress(InvalidParameterError):
            found.append(load(name)(epsilon, size))
    return tuple(found)


def exceeds(mechanism: Mechanism[Any]) -> bool:
    """Return whether some report may be more than e^ε likelier under another value."""
    ratio = getattr(mechanism, "likelihood_ratio", None)
    over = ratio is not None and ratio > exp_floor(mechanism.epsilon)
    return over or mechanism.spent > mechanism.epsilon


def bits_left(left: Fraction) -> int:
    """Return the largest k with *left* <= 2^-k, for *left* above 0."""
    k = left.denominator.bit_length() - left.numerator.bit_length() + 1
    while left * 2**k > 1:
        k -= 1
    return k


def table() -> str:
    """Return the table as Markdown."""
    left: dict[int, list[str]] = {}
    for name in names():
        most = max(mechanism.epsilon - mechanism.spent for mechanism in settings(name))
        left.setdefault(bits_left(most) if most > 0 else 0, []).append(name)
    built = [mechanism for name in names() for mechanism in settings(name)]
    rows = [
        (f"≤ 2^-{bits}" if bits else "nothing", ", ".join(some))
        for bits, some in sorted(left.items())
    ]
    shown = page.table(("most that is left of ε", "mechanisms"), rows)
    return f"{shown}\n\nAbove ε: {sum(map(exceeds, built))} of {len(built):,} settings."


def met() -> bool:
    """Return whether no channel exceeds ε, and none leaves more than the bar."""
    every = [mechanism for name in names() for mechanism in settings(name)]
    return not any(map(exceeds, every)) and all(
        m.epsilon - m.spent <= Fraction(1, 1 << BAR) for m in every
    )


def main() -> None:
    """Print the table and its verdict."""
    print(table())
    print(f"\nbar: never above ε, and at most 2^-{BAR} nats below it: {page.verdict(met())}")
