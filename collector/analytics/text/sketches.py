"""Shares of strings from what the reports of a text metric say: sketches of prefixes, one a level.

Every level whose prefixes are longer than a string tells of the string itself, so its share is
estimated from the reports of all these levels together (``shares_of``).

A string that shares a cell with a very common one looks common itself.  As the cells of a candidate
are known, the most common candidates can be told from those that only share their cells, and what
they add to all their cells taken away: the others are then read from what is left (``peel``).  A
cell that stands out even then holds something common that is no candidate; it is not read.  Pure.

Source: Högbom, *Aperture Synthesis with a Non-Regular Distribution of Interferometer Baselines*,
    Astronomy and Astrophysics Supplement 1974 (CLEAN): the strongest first, down to the noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import END, TextMechanism

from ...estimation.arrays import Bools, Floats, Ints, Numbers
from ...estimation.estimate import Estimate

SURE: Final = 5.0  # standard errors; 1 in 3.5 million candidates has them by chance
_ROUNDS: Final = 20  # each takes candidates down to half of the strongest: a millionth is left
_REFITS: Final = 4  # of all that were taken, a round
_OF_MEDIAN: Final = 1.2533  # standard errors of a median in those of a mean: √(π/2)
_CLIPS: Final = 5  # times that the spread of cells is taken anew without those that stand out
LIKELY: Final = 4.0  # standard errors of noise above which a candidate is looked at for peeling


@dataclass(frozen=True)
class Law:
    """A share f is estimated from ``reports`` with the variance level + slope f + bend f(1-f).

    The level is noise, and collisions with other strings; the bend, that only a sample of the
    devices reported there.
    """

    reports: float
    level: float
    slope: float
    bend: float

    def variance(self, shares: Floats, less: Numbers = 1.0) -> Floats:
        """Return the variance of estimates of true *shares* from *less* times the reports."""
        f = np.clip(shares, 0, 1)
        return (self.level + self.slope * f + self.bend * f * (1 - f)) / less

    def limits(self, shares: Floats, z: float, less: Numbers = 1.0) -> tuple[Floats, Floats]:
        """Return the limits of shares whose unbiased estimates are *shares*.

        A share f is inside if the estimate lies within z standard errors of it, taken at f itself:
        (t - f)^2 <= z^2 (level + (slope + bend) f - bend f^2), a quadratic.
        Source: Wilson, JASA 1927: the score interval; derived here for prefix sketches.
        """
        squared = z * z / less
        square = 1 + squared * self.bend
        middle = (shares + squared * (self.slope + self.bend) / 2) / square
        rest = (shares**2 - squared * self.level) / square
        reach = np.sqrt(np.maximum(middle**2 - rest, 0.0))
        return middle - reach, middle + reach


@dataclass(frozen=True)
class Sketch:
    """The reports of one level.

    ``mass`` is the share of the devices that the counts are of, 1 unless known strings were taken
    away; ``crowd`` estimates the sum of the squared shares of all prefixes that they are of.
    Cells that are not ``clean`` hold something common that nobody knows, and are not read.
    """

    mechanism: TextMechanism
    level: int
    counts: Floats  # holders, float, shape (rows, columns)
    reports: Ints  # int64, shape (rows,)
    mass: float
    crowd: float
    clean: Bools | None = None  # bool, shape (rows, columns); None: all of them

    @property
    def n(self) -> int:
        """The reports on this level."""
        return int(self.reports.sum())

    def cells(self, fingerprints: Ints) -> Ints:
        """Return the columns of fingerprints, both int64, shape (rows, …)."""
        columns_at = self.mechanism.columns_at
        return np.stack([columns_at(self.level, row, own) for row, own in enumerate(fingerprints)])

    def shares(self, cells: Iterable[Ints]) -> Floats:
        """Return the shares of the strings with these cells, one array a row: unbiased."""
        m = self.mechanism.columns
        held: Floats = sum(counts[own] for counts, own in zip(self.counts, cells, strict=True))
        return m / (m - 1) * (held / max(self.n, 1) - self.mass / m)

    def read(self, cells: Ints) -> tuple[Floats, Floats]:
        """Return the shares of strings from clean cells, and how many reports each is from.

        Args: cells: int64, shape (rows, k).
        """
        if self.clean is None:
            return self.shares(cells), np.full(cells.shape[1], float(self.n))
        m, held, used = self.mechanism.columns, np.zeros(cells.shape[1]), np.zeros(cells.shape[1])
        for row, own in enumerate(cells):
            good = self.clean[row][own]
            held += np.where(good, self.counts[row][own], 0.0)
            used += self.reports[row] * good
        shares = m / (m - 1) * (held / np.maximum(used, 1) - self.mass / m)
        return np.where(used > 0, shares, 0.0), used


def sketches_of(mechanism: TextMechanism, tally: Ints, n: int) -> list[Sketch]:
    """Return what the *tally* of *n* reports says, by level.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    holders = mechanism.holders(tally, n, np)
    return [
        _sketch_of(mechanism, level, counts, reports, 1.0)
        for level, (counts, reports) in enumerate(zip(holders.counts, holders.reports, strict=True))
    ]


def _sketch_of(
    mechanism: TextMechanism, level: int, counts: Floats, reports: Ints, mass: float
) -> Sketch:
    """Return the sketch of *counts*, with the squared shares that they show."""
    m, slope = mechanism.columns, _slope_of(mechanism)
    divisors = np.maximum(reports, 1)
    squares = (counts**2).sum(axis=1) - divisors * (m * mechanism.noise + slope * mass + 1)
    crowd = (squares / divisors**2 - mass**2 / m) * m / (m - 1)
    mean = float((crowd * reports).sum()) / max(float(reports.sum()), 1)
    return Sketch(mechanism, level, counts, reports, mass, min(max(mean, 0.0), 1.0))


def law_of(levels: Sequence[Sketch], n: int) -> Law:
    """Return with which variance a share is estimated from some *levels* of *n* reports in all.

    Derived: of the response, [w + s c] a report for a cell that a share c of the devices is in,
    w = q(1-q)/(p-q)^2, s = (1-p-q)/(p-q); of collisions, as in ``_sketch.py``.
    """
    mechanism = levels[0].mechanism
    m, scale = mechanism.columns, mechanism.columns / (mechanism.columns - 1)
    reports = [max(level.n, 1) for level in levels]
    total = float(sum(reports))
    slope = scale**2 * max(_slope_of(mechanism), 0.0) / total
    parts = zip(levels, reports, strict=True)
    crowd = sum((many / total) ** 2 * level.crowd for level, many in parts)
    collisions = scale / m * (crowd / mechanism.rows + 1 / total)
    level = scale**2 * mechanism.noise / total + slope / m + collisions
    return Law(total, level, slope, max(1 / total - 1 / max(n, 1), 0.0))


def _slope_of(mechanism: TextMechanism) -> float:
    """Return s = (1-p-q)/(p-q): by how much a cell that all devices are in varies more."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    return (1 - p - q) / (p - q)


class Residue(NamedTuple):
    """A sketch without the candidates that were taken out, and the share taken of each."""

    rest: Sketch
    taken: Floats  # float, shape (k,), 0 of most


def peel(sketch: Sketch, cells: Ints, n: int) -> Residue:
    """Take the common ones of some candidates out of *sketch*.

    Args: cells: of the candidates, which are all different, int64, shape (rows, k).
          n: reports on all levels.
    """
    taken, chosen = np.zeros(cells.shape[1]), np.zeros(cells.shape[1], dtype=bool)
    rest = sketch
    for _ in range(_ROUNDS):
        medians = np.where(chosen, 0.0, _medians(rest, cells))
        error = _OF_MEDIAN * sqrt(law_of([rest], n).level)
        least = max(SURE * error, float(medians.max(initial=0.0)) / 2)
        fresh = medians > least
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
    return Residue(rest, taken)


def _medians(sketch: Sketch, cells: Ints) -> Floats:
    """Return the share of each candidate by the median of its rows, shape (k,).

    A candidate that only shares cells has most of its rows to itself, and they say so.
    """
    rows = zip(sketch.counts, sketch.reports, cells, strict=True)
    shares = np.stack([counts[own] / max(int(many), 1) for counts, many, own in rows])
    medians: Floats = np.median(shares, axis=0)
    return medians - sketch.mass / sketch.mechanism.columns


def without(sketch: Sketch, cells: Ints, shares: Floats) -> Sketch:
    """Return *sketch* without strings of known cells and shares."""
    counts = sketch.counts.copy()
    for row, reports in enumerate(sketch.reports):
        counts[row] -= reports * np.bincount(cells[row], shares, minlength=counts.shape[1])
    rest = _sketch_of(
        sketch.mechanism, sketch.level, counts, sketch.reports, sketch.mass - float(shares.sum())
    )
    return replace(rest, crowd=min(rest.crowd, sketch.crowd))


def clipped(rest: Sketch, cells: Ints, taken: Floats) -> Sketch:
    """Return what is left of a sketch without the cells that stand out, to either side.

    Args: cells, taken: what was taken out, as in ``Residue``.
    """
    m, reports = rest.mechanism.columns, np.maximum(rest.reports, 1)[:, None]
    counts_taken = np.stack([np.bincount(row, taken, minlength=m) for row in cells])
    own = _slope_of(rest.mechanism) * counts_taken / reports  # a cell that many are in varies more
    shares = rest.counts / reports
    clean = np.ones(shares.shape, dtype=bool)
    for _ in range(_CLIPS):
        middle = float(shares[clean].mean())
        spread = float(((shares - middle) ** 2 - own)[clean].mean())
        noise = (rest.mechanism.noise + _slope_of(rest.mechanism) * middle) / float(reports.mean())
        standing = (shares - middle) ** 2 > SURE**2 * (max(spread, noise) + own)
        if (standing == ~clean).all() or standing.all():
            break
        clean = ~standing
    crowd = min(max((spread - noise) * m, 0.0), rest.crowd)
    return replace(rest, mass=m * middle, crowd=crowd, clean=clean)


def prefixes(mechanism: TextMechanism, texts: Sequence[bytes]) -> Iterator[Ints]:
    """Yield, level by level, the fingerprints of the prefixes of *texts*.

    Each is int64, of shape (rows, texts).
    """
    lengths, rows = mechanism.lengths, mechanism.rows
    ends = np.array([len(text) for text in texts], dtype=np.int64)
    width = max(lengths)
    padded = b"".join(text[:width].ljust(width, b"\0") for text in texts)
    table = np.frombuffer(padded, dtype=np.uint8).reshape(len(texts), width)
    fingerprints, done = np.zeros((rows, len(texts)), dtype=np.int64), 0
    for length in lengths:
        for place in range(done, length):
            extra = np.where(ends == place, END, table[:, place].astype(np.int64) + 1)
            going = ends >= place
            for row in range(rows):
                longer = mechanism.extended(row, fingerprints[row], extra, 1)
                fingerprints[row] = np.where(going, longer, fingerprints[row])
        done = length
        yield fingerprints


def shares_of(levels: Sequence[Sketch], texts: Sequence[bytes], z: float) -> list[Estimate]:
    """Return the share of each of *texts*, all different, with its interval of ±*z* errors."""
    return measured(levels, texts, [z] * len(levels)).estimates


class Measured(NamedTuple):
    """The shares of strings."""

    estimates: list[Estimate]
    reports: Floats  # that each is from, float, shape (k,)
    rests: list[Sketch]  # what was read, by level


def measured(levels: Sequence[Sketch], texts: Sequence[bytes], z: Sequence[float]) -> Measured:
    """Return the share of each of *texts*, all different, and from what it was read.

    Args: z: the standard errors of intervals, by the first level that tells of a string.
    """
    mechanism, n = levels[0].mechanism, sum(level.n for level in levels)
    firsts = np.array([mechanism.first_level(len(text)) for text in texts], dtype=np.int64)
    totals, used, rests = np.zeros(len(texts)), np.zeros(len(texts)), []
    by_level = prefixes(mechanism, texts)
    for level, fingerprints in zip(levels, by_level, strict=True):
        shares, reports, rest = cleared(level, fingerprints, n)
        reports = np.where(firsts <= level.level, reports, 0.0)
        totals += shares * reports
        used += reports
        rests.append(rest)
    estimates: dict[int, Estimate] = {}
    for first in set(firsts.tolist()):
        law, places = law_of(rests[first:], n), np.flatnonzero(firsts == first)
        part = np.maximum(used[places], 1.0) / law.reports
        values = totals[places] / np.maximum(used[places], 1.0)
        limits = law.limits(values, z[first], part)
        columns = (values, np.sqrt(law.variance(values, part)), *limits)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        estimates |= {
            place: Estimate(*row) for place, row in zip(places.tolist(), rows, strict=True)
        }
    return Measured([estimates[place] for place in range(len(texts))], used, rests)


def cleared(level: Sketch, fingerprints: Ints, n: int) -> tuple[Floats, Floats, Sketch]:
    """Return the shares of prefixes at *level*, from how many reports each, and what is left.

    What is left of the level is without the common ones of them.

    Args: fingerprints: fingerprints, int64, shape (rows, k).
    """
    cells = level.cells(fingerprints)
    raw = level.shares(cells)
    noise = sqrt(law_of([replace(level, crowd=0.0)], n).level)
    likely = np.flatnonzero(raw > LIKELY * noise)
    _, firsts = np.unique(fingerprints[:, likely], axis=1, return_index=True)
    likely = likely[firsts]
    rest, taken = peel(level, cells[:, likely], n)
    rest = clipped(rest, cells[:, likely], taken)
    shares, used = rest.read(cells)
    shares[likely] += taken
    return shares, used, rest
