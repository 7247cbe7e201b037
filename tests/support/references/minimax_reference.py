"""Sums of positions from minimax symbols, in ``decimal``, by the whole matrix of the channel.

The credits of outputs are found by linear algebra: of all that average to the variance of every
input, those that differ the least from each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

from client_sdk.mechanisms.numbers.minimax import Minimax
from tests.support.enumeration.formula import CONTEXT
from tests.support.references.linear_algebra import dot, inverse


def sum_and_variance(
    mechanism: Minimax, symbols: Sequence[int], numbers: Mapping[str, Decimal]
) -> tuple[Decimal, Decimal]:
    """Return the sum of positions and its variance, in grid steps."""
    bytes_of = bytes.fromhex(f"{mechanism.distances:x}")
    places = [Decimal(-byte) for byte in bytes_of] + [Decimal(byte) for byte in bytes_of[::-1]]
    rows = _channel(len(places), mechanism.width, numbers["inside"])
    unit = 2 * dot(rows[-1], places)  # the last input is the end of the range, half of it away
    places = [CONTEXT.divide(place, unit) for place in places]
    inputs = [dot(row, places) for row in rows]
    noises = [
        dot(row, [y * y for y in places]) - x * x for row, x in zip(rows, inputs, strict=True)
    ]
    credit = _credits(rows, noises)
    n = len(symbols)
    stated = sum((credit[symbol] for symbol in symbols), Decimal(0))
    stated = min(max(stated, n * min(noises)), n * max(noises))
    stated += n * max((b - a) ** 2 for a, b in pairwise(inputs)) / 4
    total = sum((places[symbol] for symbol in symbols), Decimal(n) / 2) * mechanism.top
    return total, min(stated * mechanism.top**2, n * Decimal(mechanism.worst_variance))


def _channel(outputs: int, width: int, inside: Decimal) -> list[list[Decimal]]:
    """Return Pr[output | input], a row for each input."""
    steps = outputs - width
    near, far = CONTEXT.divide(inside, Decimal(width)), CONTEXT.divide(1 - inside, Decimal(steps))
    return [
        [near if i <= output < i + width else far for output in range(outputs)]
        for i in range(steps + 1)
    ]


def _credits(rows: list[list[Decimal]], noises: list[Decimal]) -> list[Decimal]:
    """Return c = u + P'm of P c = noises and sum m = 0, which minimizes the sum of (c - u)^2."""
    zero, one = Decimal(0), Decimal(1)
    system = [[*(dot(row, other) for other in rows), one] for row in rows]
    system.append([*[one] * len(rows), zero])
    *weights, level = (dot(row, [*noises, zero]) for row in inverse(system))
    columns = zip(*rows, strict=True)
    return [level + dot(weights, column) for column in columns]
