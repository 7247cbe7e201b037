"""Counts of RAPPOR by least squares that may not be negative, in decimals.

The answer is not trusted but checked: it is the least squares exactly where no item with a positive
count has a slope and no item at 0 would gain by rising (Karush, Kuhn, Tucker).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext

from client_sdk.mechanisms.deployed.rappor import RAPPOR
from tests.support.enumeration.formula import CONTEXT
from tests.support.references.linear_algebra import dot, inverse

_NOTHING = Decimal("1e-40")  # what rounding at 60 digits leaves of a zero


def counts_and_variances(
    mechanism: RAPPOR, tally: Sequence[int], one: Decimal, zero: Decimal
) -> tuple[list[Decimal], list[Decimal]]:
    """Return counts and variances from, cohort by cohort, reports and ones of each bit.

    Args: one, zero: the chances of a 1 for a bit that is 1 and for one that is 0.
    """
    with localcontext(CONTEXT):
        width, items = mechanism.bits + 1, range(mechanism.domain_size)
        cohorts = [tally[start : start + width] for start in range(0, len(tally), width)]
        n = sum(cohort[0] for cohort in cohorts)
        held = [(ones - zero * c[0]) / (one - zero) for c in cohorts for ones in c[1:]]
        sizes = [c[0] for c in cohorts for _ in c[1:]]
        columns = [
            [
                Decimal(c[0]) / n if bit in mechanism.filter_of(j, item) else Decimal(0)
                for j, c in enumerate(cohorts)
                for bit in range(mechanism.bits)
            ]
            for item in items
        ]
        gram = [[dot(a, b) for b in columns] for a in columns]
        counts = _non_negative(gram, [dot(a, held) for a in columns])
        noise = [_noise(h, r, one, zero) for h, r in zip(held, sizes, strict=True)]
        noisy = [[a * v for a, v in zip(column, noise, strict=True)] for column in columns]
        weighted = [[dot(a, b) for b in columns] for a in noisy]
        variances = [weighted[i][i] / gram[i][i] ** 2 for i in items]
        chosen = [i for i in items if counts[i]]
        inner = [[weighted[i][j] for j in chosen] for i in chosen]
        for i, row in zip(
            chosen, inverse([[gram[i][j] for j in chosen] for i in chosen]), strict=True
        ):
            variances[i] = dot(row, [dot(line, row) for line in inner])
        return counts, variances


def _noise(held: Decimal, reports: int, one: Decimal, zero: Decimal) -> Decimal:
    """Return the variance of a debiased bit."""
    ones = min(max(held, Decimal(0)), Decimal(reports))
    spread = ones * one * (1 - one) + (reports - ones) * zero * (1 - zero)
    return spread / (one - zero) ** 2


def _non_negative(gram: list[list[Decimal]], moments: list[Decimal]) -> list[Decimal]:
    """Return the x >= 0 of the least |Ax - y|^2, given AᵀA and Aᵀy, an item at a time."""
    free: list[int] = []
    while True:
        solved = inverse([[gram[i][j] for j in free] for i in free])
        found = [dot(row, [moments[j] for j in free]) for row in solved]
        x = [Decimal(0)] * len(moments)
        for i, value in zip(free, found, strict=True):
            x[i] = value
        if found and min(found) < 0:
            free.remove(free[found.index(min(found))])
            continue
        slopes = [m - dot(row, x) for m, row in zip(moments, gram, strict=True)]
        best = max(range(len(x)), key=slopes.__getitem__)
        if slopes[best] <= _NOTHING:
            assert all(abs(slopes[i]) <= _NOTHING for i in free)
            return x
        free.append(best)
