"""Known common strings are taken out of a sketch, so that they collide with no other.  Pure.

A string that shares a cell with a very common one looks common itself.  As the cells of a candidate
are known, the most common candidates can be told from those that only share their cells, and what
they add to all their cells taken away: the others are then read from what is left.  A cell that
stands out even then holds something common that is no candidate; it is not read.

Source: Högbom, *Aperture Synthesis with a Non-Regular Distribution of Interferometer Baselines*,
    Astronomy and Astrophysics Supplement 1974 (CLEAN): the strongest first, down to the noise.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from .text_sketches import Sketch, law_of, sketch_of, slope_of

SURE: Final = 5.0  # standard errors; 1 in 3.5 million candidates has them by chance
_ROUNDS: Final = 20  # each takes candidates down to half of the strongest: a millionth is left
_REFITS: Final = 4  # of all that were taken, a round
_OF_MEDIAN: Final = 1.2533  # standard errors of a median in those of a mean: √(π/2)
_CLIPS: Final = 5  # times that the spread of cells is taken anew without those that stand out


class Peeled(NamedTuple):
    """A sketch without the candidates that were taken out, and the share taken of each."""

    rest: Sketch
    taken: Any  # float, shape (k,), 0 of most


def peel(sketch: Sketch, cells: Any, n: int) -> Peeled:
    """Take the common ones of some candidates out of *sketch*.

    Args: cells: of the candidates, which are all different, int64, shape (rows, k).
          n: reports on all levels.
    """
    taken, chosen = np.zeros(cells.shape[1]), np.zeros(cells.shape[1], dtype=bool)
    rest = sketch
    for _ in range(_ROUNDS):
        found = np.where(chosen, 0.0, _medians(rest, cells))
        error = _OF_MEDIAN * sqrt(law_of([rest], n).level)
        least = max(SURE * error, float(found.max(initial=0.0)) / 2)
        fresh = found > least
        if not fresh.any():
            break
        chosen |= fresh
        places = np.flatnonzero(chosen)
        own = cells[:, places]
        step = 1 / (1 + len(places) / sketch.mechanism.columns)  # so that collisions cannot echo
        for _ in range(_REFITS):
            more = taken[places] + step * rest.shares(own)
            taken[places] = np.maximum(more, 0.0)
            rest = without(sketch, own, taken[places])
    return Peeled(rest, taken)


def _medians(sketch: Sketch, cells: Any) -> Any:
    """Return the share of each candidate by the median of its rows, shape (k,).

    A candidate that only shares cells has most of its rows to itself, and they say so.
    """
    rows = zip(sketch.counts, sketch.reports, cells, strict=True)
    shares = np.stack([counts[own] / max(int(many), 1) for counts, many, own in rows])
    return np.median(shares, axis=0) - sketch.mass / sketch.mechanism.columns


def without(sketch: Sketch, cells: Any, shares: Any) -> Sketch:
    """Return *sketch* without strings of known cells and shares."""
    counts = sketch.counts.copy()
    for row, reports in enumerate(sketch.reports):
        counts[row] -= reports * np.bincount(cells[row], shares, minlength=counts.shape[1])
    left = sketch_of(
        sketch.mechanism, sketch.level, counts, sketch.reports, sketch.mass - float(shares.sum())
    )
    return replace(left, crowd=min(left.crowd, sketch.crowd))


def clipped(rest: Sketch, cells: Any, taken: Any) -> Sketch:
    """Return what is left of a sketch without the cells that stand out, to either side.

    Args: cells, taken: what was taken out, as in ``Peeled``.
    """
    m, reports = rest.mechanism.columns, np.maximum(rest.reports, 1)[:, None]
    known = np.stack([np.bincount(row, taken, minlength=m) for row in cells])
    own = slope_of(rest.mechanism) * known / reports  # a cell that many are in varies more
    shares = rest.counts / reports
    clean = np.ones(shares.shape, dtype=bool)
    for _ in range(_CLIPS):
        middle = float(shares[clean].mean())
        spread = float(((shares - middle) ** 2 - own)[clean].mean())
        standing = (shares - middle) ** 2 > SURE**2 * (np.maximum(spread, 0.0) + own)
        if (standing == ~clean).all() or standing.all():
            break
        clean = ~standing
    noise = (rest.mechanism.noise + slope_of(rest.mechanism) * middle) / float(reports.mean())
    crowd = min(max((spread - noise) * m, 0.0), rest.crowd)
    return replace(rest, mass=m * middle, crowd=crowd, clean=clean)
