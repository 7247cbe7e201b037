"""Known common strings are taken out of a sketch, so that they collide with no other.  Pure.

A string that shares a cell with a very common one looks common itself.  As the cells of a candidate
are known, the most common candidates can be told from those that only share their cells, and what
they add to all their cells taken away: the others are then read from what is left.

Source: Högbom, *Aperture Synthesis with a Non-Regular Distribution of Interferometer Baselines*,
    Astronomy and Astrophysics Supplement 1974 (CLEAN): the strongest first, down to the noise.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from .text_sketches import Sketch, law_of, sketch_of

SURE: Final = 5.0  # standard errors; 1 in 3.5 million candidates has them by chance
_ROUNDS: Final = 20  # each takes candidates down to half of the strongest: a millionth is left
_REFITS: Final = 4  # of all that were taken, a round


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
        found = np.where(chosen, 0.0, rest.shares(cells))
        least = max(SURE * sqrt(law_of([rest], n).level), float(found.max(initial=0.0)) / 2)
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


def without(sketch: Sketch, cells: Any, shares: Any) -> Sketch:
    """Return *sketch* without strings of known cells and shares."""
    counts = sketch.counts.copy()
    for row, reports in enumerate(sketch.reports):
        counts[row] -= reports * np.bincount(cells[row], shares, minlength=counts.shape[1])
    left = sketch_of(
        sketch.mechanism, sketch.level, counts, sketch.reports, sketch.mass - float(shares.sum())
    )
    return replace(left, crowd=min(left.crowd, sketch.crowd))
