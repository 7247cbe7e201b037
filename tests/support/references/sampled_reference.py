"""Estimates of sketches and of sampled items from their tallies, as derived in their files."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from client_sdk.mechanisms import FrequencyOracle
from client_sdk.mechanisms.deployed._sketch import Sketch
from tests.support.enumeration.formula import CONTEXT

Columns = tuple[list[Decimal], list[Decimal]]


def of_cms(sketch: Sketch, tally: Sequence[int], n: int, p: Decimal, q: Decimal) -> Columns:
    """Return counts and variances from, row by row, reports and ones of each column."""
    width = sketch.columns + 1
    rows = [tally[start : start + width] for start in range(0, len(tally), width)]
    cells = [[CONTEXT.divide(ones - q * row[0], p - q) for ones in row[1:]] for row in rows]
    return _of_cells(sketch, cells, n, CONTEXT.divide(p * q, (p - q) ** 2))


def of_hcms(sketch: Sketch, tally: Sequence[int], n: int, p: Decimal, q: Decimal) -> Columns:
    """Return counts and variances from the sums of signs by row and coefficient."""
    m = sketch.columns
    rows = [tally[start : start + m] for start in range(0, len(tally), m)]
    cells = [
        [
            CONTEXT.divide(
                Decimal(sum(s * (-1) ** (c & x).bit_count() for c, s in enumerate(r))), p - q
            )
            for x in range(m)
        ]
        for r in rows
    ]
    return _of_cells(sketch, cells, n, CONTEXT.divide(Decimal(1), (p - q) ** 2))


def of_dbitflip(
    mechanism: FrequencyOracle, tally: Sequence[int], n: int, p: Decimal, q: Decimal
) -> Columns:
    """Return counts and variances from the draws, then the ones, of each item."""
    k = mechanism.domain_size
    spread = CONTEXT.divide(Decimal(k), Decimal(mechanism.parameters["sampled"]))
    counts = [
        CONTEXT.divide(spread * (ones - q * drawn), p - q)
        for drawn, ones in zip(tally[:k], tally[k:], strict=True)
    ]
    noise = CONTEXT.divide(n * spread * q * (1 - q), (p - q) ** 2)
    held = (min(max(count, Decimal(0)), Decimal(n)) for count in counts)
    return counts, [noise + (spread - 1) * h for h in held]


def of_sampled_item(tally: Sequence[int], n: int, flip: Decimal) -> Columns:
    """Return counts and variances from noes and yeses, in turn, of each item."""
    noise = CONTEXT.divide(flip * (1 - flip), (1 - 2 * flip) ** 2)
    counts, variances = [], []
    for noes, yeses in zip(tally[::2], tally[1::2], strict=True):
        if not (drawn := Decimal(noes + yeses)):
            counts.append(CONTEXT.divide(Decimal(n), Decimal(2)))
            variances.append(n**2 * (noise + 1))
            continue
        share = CONTEXT.divide(CONTEXT.divide(Decimal(yeses), drawn) - flip, 1 - 2 * flip)
        held = min(max(share, Decimal(0)), Decimal(1))
        sampling = held * (1 - held) * (1 - CONTEXT.divide(drawn, Decimal(n)))
        counts.append(n * share)
        variances.append(CONTEXT.divide(n**2 * (noise + sampling), drawn))
    return counts, variances


def _of_cells(sketch: Sketch, cells: list[list[Decimal]], n: int, noise: Decimal) -> Columns:
    """Return counts and variances from the unbiased *cells*; *noise* is that of a report."""
    m, r, items = Decimal(sketch.columns), Decimal(sketch.rows), range(sketch.domain_size)
    scale = CONTEXT.divide(m, m - 1)
    found = [
        sum((row[sketch.cell_of(j, x)] for j, row in enumerate(cells)), Decimal(0)) for x in items
    ]
    counts = [scale * (f - CONTEXT.divide(Decimal(n), m)) for f in found]
    own = scale**2 * n * noise
    squares = sum((count**2 - own for count in counts), Decimal(0))
    squares = max(squares, CONTEXT.divide(Decimal(n) ** 2, Decimal(len(items))))
    variances = []
    for count in counts:
        held = min(max(count, Decimal(0)), Decimal(n))
        crowd = CONTEXT.divide(max(squares - held**2, Decimal(0)), r)
        singles = (n - held) * (1 - CONTEXT.divide(Decimal(1), r))
        variances.append(own + CONTEXT.divide(scale, m) * (crowd + singles))
    return counts, variances
