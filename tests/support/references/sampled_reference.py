"""Estimates of sketches and of sampled items from their tallies, as derived in their files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from client_sdk.mechanisms import FrequencyOracle, Mechanism
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


def of_sampled_attribute(
    mechanism: Mechanism[Any], odds: Decimal, supported: Sequence[Sequence[int]]
) -> Columns:
    """Return counts and variances from the items that reports support, attribute by attribute.

    *odds* are those of an item to be told of by its holders.
    """
    size, n, counts, variances = mechanism.domain_size, Decimal(len(supported)), [], []
    starts = mechanism.parameters["starts"]
    firsts = [*(item for item in range(size) if starts >> item & 1), size]
    for first, end in itertools.pairwise(firsts):
        k = Decimal(end - first)
        reports = [items for items in supported if first <= items[0] < end]
        m = Decimal(len(reports))
        w = _best_subset(odds, int(k))
        p = CONTEXT.divide(w * odds, w * odds + k - w)
        q = CONTEXT.divide(p * (w - 1) + (1 - p) * w, k - 1)
        noise = CONTEXT.divide(q * (1 - q), (p - q) ** 2)
        for item in range(first, end):
            if not reports:
                counts.append(CONTEXT.divide(n, k))
                variances.append(n**2 * (noise + 1))
                continue
            seen = Decimal(sum(item in items for items in reports))
            share = CONTEXT.divide(CONTEXT.divide(seen, m) - q, p - q)
            held = min(max(share, Decimal(0)), Decimal(1))
            coins = held * p * (1 - p) + (1 - held) * q * (1 - q)
            sampling = held * (1 - held) * (1 - CONTEXT.divide(m, n))
            counts.append(n * share)
            spread = CONTEXT.divide(coins, (p - q) ** 2) + sampling
            variances.append(CONTEXT.divide(n**2 * spread, m))
    return counts, variances


def _best_subset(odds: Decimal, k: int) -> Decimal:
    """Return the size of subsets with the least mean variance, of those that fit 56 bits.

    The variance falls up to the best of all sizes, so it is that one, or the largest that fits.
    """

    def variance(w: Decimal) -> Decimal:
        p = CONTEXT.divide(w * odds, w * odds + k - w)
        q = CONTEXT.divide(p * (w - 1) + (1 - p) * w, Decimal(k - 1))
        slope = CONTEXT.divide(1 - p - q, k * (p - q))
        return CONTEXT.divide(q * (1 - q), (p - q) ** 2) + slope

    best = min(map(Decimal, range(1, k)), key=variance)
    return Decimal(max(w for w in range(1, int(best) + 1) if math.comb(k, w) <= 1 << 56))


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


def of_sampled_number(
    mechanism: Mechanism[Any], numbers: Mapping[str, Decimal], reports: Sequence[int]
) -> Columns:
    """Return n times the means of each coordinate's positions, and n^2 times their variance.

    The positions are those of Wang et al., ICDE 2019: of a window of ``width`` outputs, after
    which come the two of Duchi's bit.  The variance is that of a sample, and at least half
    that of the noise where it is the least: at an end of the range, or in its middle.
    """
    steps, width = mechanism.parameters["steps"], mechanism.parameters["width"]
    size, n, gain = mechanism.domain_size, len(reports), numbers["gain"]
    half, outputs = CONTEXT.divide(Decimal(1), 2), steps + width if steps > 1 else 0
    places = [
        CONTEXT.divide(Decimal(2 * j + 1 - outputs), 2 * numbers["kept"] * steps)
        for j in range(outputs)
    ]
    places += [-gain / 2, gain / 2]
    columns: list[list[Decimal]] = [[] for _ in range(size)]
    for report in reports:
        columns[report // len(places)].append(places[report % len(places)])
    least = CONTEXT.divide(_least_noise(numbers, steps, width, outputs), 2)
    totals, variances = [], []
    for column in columns:
        m = max(len(column), 1)
        mean = CONTEXT.divide(sum(column, Decimal(0)), m)
        squares = sum(((place - mean) ** 2 for place in column), Decimal(0))
        scatter = max(CONTEXT.divide(squares, max(m - 1, 1)), least)
        error = CONTEXT.divide(scatter, m) if column else scatter + 1
        totals.append(n * (half + mean))
        variances.append(n * n * error)
    return totals, variances


def _least_noise(numbers: Mapping[str, Decimal], steps: int, width: int, outputs: int) -> Decimal:
    """Return the less of the variances at an end of the range and in its middle."""
    bit = CONTEXT.divide(numbers["gain"] ** 2, 4)
    if not outputs:
        return bit - CONTEXT.divide(Decimal(1), 4)
    kept, inside, coin = (numbers[name] for name in ("kept", "inside", "coin"))
    within = CONTEXT.divide(kept * (width**2 - 1), 12)
    outside = CONTEXT.divide((1 - inside) * outputs * (outputs**2 - 1), 12 * steps)
    constant = CONTEXT.divide(within + outside, (kept * steps) ** 2)
    least = []
    for apart, rounding in ((CONTEXT.divide(Decimal(1), 4), 0), (Decimal(0), steps % 2)):
        blur = CONTEXT.divide(Decimal(rounding), 4 * steps**2)
        window = constant + CONTEXT.divide(apart + blur, kept)
        least.append(coin * window + (1 - coin) * bit - apart)
    return min(least)
