"""Sums of positions from square wave symbols, by the textbook in ``decimal``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from client_sdk.mechanisms import DistributionMechanism
from tests.support.enumeration.formula import CONTEXT


def sum_and_variance(
    mechanism: DistributionMechanism, symbols: Sequence[int], numbers: Mapping[str, Decimal]
) -> tuple[Decimal, Decimal]:
    """Return the sum of positions and its variance, from moments summed over the symbols' law."""
    n, near, far = len(symbols), numbers["near"], numbers["far"]
    last, reach = mechanism.bins - 1, mechanism.parameters["reach"]

    def moment(power: int, centre: int) -> Decimal:
        every = range(-reach, last + reach + 1)
        chances = (near if abs(y - centre) <= reach else far for y in every)
        return sum((c * y**power for c, y in zip(chances, every, strict=True)), Decimal(0))

    offset, extra = moment(1, 0), moment(2, 0)
    slope = CONTEXT.divide(moment(1, last) - offset, Decimal(last))
    reports = [symbol - reach for symbol in symbols]
    total = CONTEXT.divide(sum(reports) - n * offset, slope)
    squares = CONTEXT.divide(sum(y * y for y in reports) - n * extra, slope)
    inside = min(max(total, Decimal(0)), Decimal(n * last))
    squares = min(max(squares, CONTEXT.divide(inside * inside, Decimal(n))), inside * last)
    means = slope**2 * squares + 2 * slope * offset * inside + n * offset**2
    noise = CONTEXT.divide(slope * squares + n * extra - means, slope**2)
    step = CONTEXT.divide(Decimal(mechanism.top), Decimal(last))
    return total * step, (noise + CONTEXT.divide(Decimal(n), Decimal(4))) * step**2
