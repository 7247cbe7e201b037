"""What the reports of a text metric say: sketches of prefixes, one a level.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from client_sdk.mechanisms import TextMechanism


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

    def variance(self, shares: Any, less: Any = 1.0) -> Any:
        """Return the variance of estimates of true *shares* from *less* times the reports."""
        f = np.clip(shares, 0, 1)
        return (self.level + self.slope * f + self.bend * f * (1 - f)) / less

    def limits(self, shares: Any, z: float, less: Any = 1.0) -> tuple[Any, Any]:
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
    counts: Any  # holders, float, shape (rows, columns)
    reports: Any  # int64, shape (rows,)
    mass: float
    crowd: float
    clean: Any = None  # bool, shape (rows, columns); None: all of them

    @property
    def n(self) -> int:
        """The reports on this level."""
        return int(self.reports.sum())

    def cells(self, found: Any) -> Any:
        """Return the columns of fingerprints, both int64, shape (rows, …)."""
        columns_at = self.mechanism.columns_at
        return np.stack([columns_at(self.level, row, own) for row, own in enumerate(found)])

    def shares(self, cells: Iterable[Any]) -> Any:
        """Return the shares of the strings with these cells, one array a row: unbiased."""
        m = self.mechanism.columns
        held = sum(counts[own] for counts, own in zip(self.counts, cells, strict=True))
        return m / (m - 1) * (held / max(self.n, 1) - self.mass / m)

    def read(self, cells: Any) -> tuple[Any, Any]:
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


def sketches_of(mechanism: TextMechanism, tally: Any, n: int) -> list[Sketch]:
    """Return what the *tally* of *n* reports says, by level.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    found = mechanism.holders(tally, n, np)
    return [
        sketch_of(mechanism, level, counts, reports, 1.0)
        for level, (counts, reports) in enumerate(zip(found.counts, found.reports, strict=True))
    ]


def sketch_of(
    mechanism: TextMechanism, level: int, counts: Any, reports: Any, mass: float
) -> Sketch:
    """Return the sketch of *counts*, with the squared shares that they show."""
    m, slope = mechanism.columns, slope_of(mechanism)
    known = np.maximum(reports, 1)
    squares = (counts**2).sum(axis=1) - known * (m * mechanism.noise + slope * mass + 1)
    crowd = (squares / known**2 - mass**2 / m) * m / (m - 1)
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
    slope = scale**2 * max(slope_of(mechanism), 0.0) / total
    parts = zip(levels, reports, strict=True)
    crowd = sum((many / total) ** 2 * level.crowd for level, many in parts)
    collisions = scale / m * (crowd / mechanism.rows + 1 / total)
    level = scale**2 * mechanism.noise / total + slope / m + collisions
    return Law(total, level, slope, max(1 / total - 1 / max(n, 1), 0.0))


def slope_of(mechanism: TextMechanism) -> float:
    """Return s = (1-p-q)/(p-q): by how much a cell that all devices are in varies more."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    return (1 - p - q) / (p - q)
