"""Tallies of a text metric as a crowd of devices would give them, drawn by numpy.

Each device draws level, row and report with the chances that ``randomize`` has, but from numpy's
generator, seeded, and all devices at once.  A test compares both laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms.composite.pem import PEM, column_of, fingerprint, symbols

_CHUNK: Final = 1 << 19  # devices drawn at once


def tally_of(mechanism: PEM, texts: Sequence[bytes], counts: Sequence[int], seed: int) -> Any:
    """Return the tally of a crowd in which as many devices as *counts* hold each of *texts*."""
    dice = np.random.default_rng(seed)
    held = np.repeat(np.arange(len(texts)), counts)
    tally = np.zeros(mechanism.tally_size, dtype=np.int64)
    cells = cells_of(mechanism, texts)
    for start in range(0, len(held), _CHUNK):
        part = held[start : start + _CHUNK]
        groups = dice.integers(mechanism.levels * mechanism.rows, size=len(part))
        told = _told(mechanism, cells[part, groups], dice)
        tally += np.bincount(groups * mechanism.oracle.points + told, minlength=tally.size)
    return tally


def cells_of(mechanism: PEM, texts: Sequence[bytes]) -> Any:
    """Return the cell of each text in each row of each level, shape (texts, levels * rows)."""
    cells = np.empty((len(texts), mechanism.levels, mechanism.rows), dtype=np.int32)
    for place, text in enumerate(texts):
        for level, length in enumerate(mechanism.lengths):
            prefix = symbols(text, length)
            for row in range(mechanism.rows):
                found = fingerprint(row, prefix)
                cells[place, level, row] = column_of(level, row, found, mechanism.columns)
    return cells.reshape(len(texts), -1)


def _told(mechanism: PEM, cells: Any, dice: Any) -> Any:
    """Return a report of each of *cells*: the number of a point."""
    oracle = mechanism.oracle
    r, t, n = oracle.order, oracle.dimension, len(cells)
    vectors = np.array([r**j + tail for j, tail in map(oracle.vector, range(mechanism.columns))])
    places = np.arange(t)
    items = vectors[cells][:, None] // r**places % r
    leading = np.array([oracle.vector(cell)[0] for cell in range(mechanism.columns)])[cells]
    orthogonal = dice.random(n) < float(oracle.channel.p)
    free = np.where(
        orthogonal, 1 + dice.integers(r ** (t - 1) - 1, size=n), dice.integers(r ** (t - 1), size=n)
    )
    product = np.where(orthogonal, 0, 1 + dice.integers(r - 1, size=n))
    lower = r**leading
    high, low = np.divmod(free, lower)
    digits = (high * r * lower + low)[:, None] // r**places % r
    digit = (product - (digits * items).sum(axis=1)) % r
    digits[np.arange(n), leading] = digit
    return _numbers(oracle, digits)


def _numbers(oracle: Any, digits: Any) -> Any:
    """Return the points of vectors of *digits*, the lowest first."""
    r, t = oracle.order, oracle.dimension
    top = t - 1 - (digits[:, ::-1] != 0).argmax(axis=1)
    inverses = np.array([0, *(pow(head, -1, r) for head in range(1, r))])
    scaled = digits * inverses[digits[np.arange(len(digits)), top]][:, None] % r
    firsts = np.array([(r**j - 1) // (r - 1) for j in range(t)])
    whole = (scaled * r ** np.arange(t)).sum(axis=1)
    return firsts[top] + whole - r**top
