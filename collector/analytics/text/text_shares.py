"""Shares of strings that somebody names, from the prefix sketches of a text metric.  Pure.

Every level whose prefixes are longer than a string tells of the string itself, so its share is
estimated from the reports of all these levels together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import END, TextMechanism

from ...estimation.estimate import Estimate
from .peeling import clipped, peel
from .text_sketches import Sketch, law_of

LIKELY: Final = 4.0  # standard errors of noise above which a candidate is looked at for peeling


def prefixes(mechanism: TextMechanism, texts: Sequence[bytes]) -> Iterator[Any]:
    """Yield, level by level, the fingerprints of the prefixes of *texts*.

    Each is int64, of shape (rows, texts).
    """
    lengths, rows = mechanism.lengths, mechanism.rows
    ends = np.array([len(text) for text in texts], dtype=np.int64)
    width = max(lengths)
    padded = b"".join(text[:width].ljust(width, b"\0") for text in texts)
    table = np.frombuffer(padded, dtype=np.uint8).reshape(len(texts), width)
    found, done = np.zeros((rows, len(texts)), dtype=np.int64), 0
    for length in lengths:
        for place in range(done, length):
            extra = np.where(ends == place, END, table[:, place].astype(np.int64) + 1)
            going = ends >= place
            for row in range(rows):
                longer = mechanism.extended(row, found[row], extra, 1)
                found[row] = np.where(going, longer, found[row])
        done = length
        yield found


def shares_of(levels: Sequence[Sketch], texts: Sequence[bytes], z: float) -> list[Estimate]:
    """Return the share of each of *texts*, all different, with its interval of ±*z* errors."""
    mechanism, n = levels[0].mechanism, sum(level.n for level in levels)
    firsts = np.array([mechanism.first_level(len(text)) for text in texts], dtype=np.int64)
    totals, used, rests = np.zeros(len(texts)), np.zeros(len(texts)), []
    all_found = prefixes(mechanism, texts)
    for level, found in zip(levels, all_found, strict=True):
        shares, reports, rest = cleared(level, found, n)
        reports = np.where(firsts <= level.level, reports, 0.0)
        totals += shares * reports
        used += reports
        rests.append(rest)
    estimates: dict[int, Estimate] = {}
    for first in set(firsts.tolist()):
        law, places = law_of(rests[first:], n), np.flatnonzero(firsts == first)
        part = np.maximum(used[places], 1.0) / law.reports
        values = totals[places] / np.maximum(used[places], 1.0)
        columns = (values, np.sqrt(law.variance(values, part)), *law.limits(values, z, part))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        estimates |= {
            place: Estimate(*row) for place, row in zip(places.tolist(), rows, strict=True)
        }
    return [estimates[place] for place in range(len(texts))]


def cleared(level: Sketch, found: Any, n: int) -> tuple[Any, Any, Sketch]:
    """Return the shares of prefixes at *level*, from how many reports each, and what is left.

    What is left of the level is without the common ones of them.

    Args: found: fingerprints, int64, shape (rows, k).
    """
    cells = level.cells(found)
    raw = level.shares(cells)
    noise = sqrt(law_of([replace(level, crowd=0.0)], n).level)
    likely = np.flatnonzero(raw > LIKELY * noise)
    _, firsts = np.unique(found[:, likely], axis=1, return_index=True)
    likely = likely[firsts]
    rest, taken = peel(level, cells[:, likely], n)
    rest = clipped(rest, cells[:, likely], taken)
    shares, used = rest.read(cells)
    shares[likely] += taken
    return shares, used, rest
