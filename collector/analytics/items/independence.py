"""The table of two answers that were collected apart, as if they were independent.  Pure.

It is no joint: whether the same devices gave both answers is not in the reports, and no analysis
brings it back.  A cell is off by Pr[both] - Pr[one] Pr[other], which these reports do not bound.
"""

from __future__ import annotations

from math import sqrt
from typing import Final

from client_sdk.domains import ItemDomain

from ...estimate import Estimate, normal_quantile, shares
from ..repeats import widened
from ..rows import Row
from ..slices import Slice
from .tables import refused_rows, rows_of

APART: Final = (
    "not a joint number: the two were collected apart, so this is what would be if they were "
    "independent, off by as much as they go together"
)


def products(one: Slice, other: Slice, alpha: float, tables: int = 0) -> list[Row]:
    """Return a row for each item of *one* with each of *other*; intervals are of the noise only.

    Args: tables: whose intervals are to hold at once with those of this one; 0: each for itself.
    """
    first, second = one.metric.name, other.metric.name
    names = [{first: x, second: y} for x in _labels(one) for y in _labels(other)]
    refusal = one.refusal or other.refusal
    if refusal is not None:
        return refused_rows(one, names, alpha, reason=refusal, simultaneous=tables > 0)
    z = normal_quantile(alpha / max(len(names) * tables, 1))
    a, b = (
        widened(each, shares(each.metric.mechanism, each.tally, each.n, alpha))
        for each in (one, other)
    )
    found = [product(x, y, z) for x in a for y in b]
    return rows_of(one, names, found, alpha, simultaneous=tables > 0, note=APART)


def product(x: Estimate, y: Estimate, z: float) -> Estimate:
    """Return the product of two shares whose errors are independent, with *z* standard errors.

    Derived: its variance is x^2 V(y) + y^2 V(x) + V(x) V(y).
    """
    v, w = x.std_error**2, y.std_error**2
    value, error = x.value * y.value, sqrt(x.value**2 * w + y.value**2 * v + v * w)
    return Estimate(value, error, value - z * error, value + z * error)


def _labels(one: Slice) -> tuple[str, ...]:
    assert isinstance(one.metric.domain, ItemDomain)  # noqa: S101 - the verb has asked
    return one.metric.domain.labels
