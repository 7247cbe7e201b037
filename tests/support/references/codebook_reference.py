"""Words and estimates of a codebook, from the definition and in decimals, without numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from hashlib import shake_256
from itertools import pairwise
from statistics import NormalDist
from typing import Any

from client_sdk.mechanisms import Mechanism
from tests.support.enumeration.formula import CONTEXT

UNITS = 700  # of an entry in a standard deviation
PARTS = 256  # equal parts of the normal law
_STEPS = 1_000  # of a smooth function that ends in nothing: exact to the digits of a float


@cache
def entries() -> tuple[int, ...]:
    """Return the mean of the normal law in each of 256 equal parts, in 1/700, rounded."""
    normal = NormalDist()
    ends = [normal.inv_cdf(i / PARTS) for i in range(1, PARTS)]
    heights = [0.0, *map(normal.pdf, ends), 0.0]
    return tuple(round(UNITS * PARTS * (low - high)) for low, high in pairwise(heights))


def word(number: int, length: int) -> list[int]:
    """Return the coordinates of word *number*: each is the sum of two entries."""
    stream = shake_256(b"hearsay codebook" + number.to_bytes(8, "big")).digest(2 * length)
    return [entries()[stream[2 * j]] + entries()[stream[2 * j + 1]] for j in range(length)]


@cache
def mean_of_best(words: int, size: int) -> float:
    """Return the mean of the *size* largest of so many standard normals.

    Source: David, Nagaraja, *Order Statistics*, 3rd edition, 2003, eq. 2.1.6: the law of each.
    The mean is that of z over the chance that fewer than *size* of the others lie above z.
    """
    normal, width, total = NormalDist(), 20 / _STEPS, 0.0
    for step in range(_STEPS):
        z = -10 + width * (step + 0.5)
        above = math.erfc(z / math.sqrt(2)) / 2
        below = math.erfc(-z / math.sqrt(2)) / 2
        fewer = sum(
            math.comb(words - 1, i) * above**i * below ** (words - 1 - i) for i in range(size)
        )
        total += z * normal.pdf(z) * fewer * width
    return total * words / size


def positions(
    mechanism: Mechanism[Any], numbers: Mapping[str, Decimal], reports: Sequence[int]
) -> tuple[list[Decimal], list[Decimal]]:
    """Return the sums of positions and their variances: the sample's, and the codebook's."""
    own, length, n = mechanism.parameters, mechanism.domain_size, len(reports)
    size, words, seeds = own["subset_size"], own["words"], own["seeds"]
    gain = numbers["gain"]
    deviation = CONTEXT.sqrt(CONTEXT.divide(Decimal(2 * sum(x * x for x in entries())), PARTS))
    unit = deviation * Decimal(mean_of_best(words, size)) * gain
    radius = CONTEXT.sqrt(Decimal(length)) if own["cube"] else Decimal(1)
    scale = CONTEXT.divide(radius, 2 * unit)
    noise = CONTEXT.divide(deviation * deviation, unit * unit)
    of_seed = CONTEXT.divide(gain * gain, size) + CONTEXT.divide(1 - gain * gain, words)
    of_codebook = CONTEXT.divide(radius * radius * noise * of_seed, 4 * seeds)
    columns = list(zip(*(word(number, length) for number in reports), strict=True))
    totals = [CONTEXT.divide(n, 2) + sum(column) * scale for column in columns]
    variances = []
    for column in columns:
        mean = CONTEXT.divide(Decimal(sum(column)), n)
        squares = sum(((x - mean) ** 2 for x in column), Decimal(0))
        variances.append(CONTEXT.divide(n * squares, n - 1) * scale * scale + n * n * of_codebook)
    return totals, variances
