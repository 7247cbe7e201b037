"""The weighted sets of items whose channel errs least: a convex program, and what bounds it.  Pure.

Source: Kairouz, Oh, Viswanath, JMLR 2016 (the best rows of a channel take two values, in the ratio
e^ε); Boyd, Vandenberghe, *Convex Optimization*, 2004 (barrier method, duality).  What follows from
them is derived here.

A row of the channel is z r, r being e^ε for the items of a set and 1 for all others.  Where all
items are equally common, the mean square error of the questions with Gram matrix V is
tr(V M^-1)/n less a constant, M = d sum of z r r'/(r' 1).  M is linear in the weights z, so the
least error over all sets is a convex program: z >= 0, and columns that add up to 1.  Sets are taken
into it as long as one is found that its multipliers say would lower the error.

With G = d M^-1 V M^-1, multipliers m and s the largest (r'Gr/(r'1) - m'r)/(r'1) over all sets, no
channel of any kind has a smaller tr(V M^-1) than tr(V M^-1)^2 / (sum of m + d s).  Derived: the
error is convex and of degree -1 in M.  A row of more than two values is a sum of rows of two, which
M is no smaller of, as r r'/(r'1) is convex and of degree 1.  The bound holds for decoders that are
linear and unbiased.  It is known only if all sets were looked at, which is done up to 16 items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_HEAVIEST: Final = 65_535
_STARTS: Final = 300  # sets, drawn at random, from which better ones are looked for
_ENOUGH: Final = 1e-4  # part of the error that a further set would save
_USED: Final = 1e-6  # chance of a report below which its set is left out
_THINNED: Final = 0.85  # part of the sets that stay when they are made fewer
_EVERY: Final = 12  # items of which every set is tried


class Program:
    """The best weights of given *sets*, booleans of shape (sets, items)."""

    def __init__(self, sets: Array, odds: float, questions: Array) -> None:
        """Find the weights.

        Args: odds: e^ε.  questions: their Gram matrix, shape (items, items).
        """
        self.sets, self._odds, self._questions = sets, odds, questions
        self._rows = self._row_of(sets)
        self._single = sets.sum(axis=1) == 1
        size = sets.shape[1]
        self._scaled = self._rows * np.sqrt(size / self._rows.sum(axis=1))[:, None]
        self._weights, self._multipliers = self._solve()
        inverse = self._inverse(self._weights)
        self.value = float((questions * inverse).sum())
        self._slope = size * inverse @ questions @ inverse
        self.chances = self._weights * self._rows.sum(axis=1) / size

    def joined(self, new: Sequence[Array]) -> Program:
        """Return the program of the sets in use, of single items and *new* ones."""
        kept = (self.chances > _USED) | self._single
        sets = np.unique(np.vstack([self.sets[kept], *new]), axis=0)
        return Program(sets, self._odds, self._questions)

    def thinned(self, limit: int) -> Program:
        """Return the program of *limit* sets at most: the rarest go, a few at a time.

        Those of single items stay: with them all items can be covered alike, whatever else goes.
        """
        program = self
        while (others := np.count_nonzero(~program._single)) > limit:
            kept = max(limit, int(_THINNED * others)) + np.count_nonzero(program._single)
            ranks = np.where(program._single, -math.inf, -program.chances)
            sets = program.sets[np.argsort(ranks)[:kept]]
            program = Program(sets, self._odds, self._questions)
        return program

    def _row_of(self, sets: Array) -> Array:
        return 1 + (self._odds - 1) * sets

    def _inverse(self, weights: Array) -> Array:
        return np.linalg.inv((self._scaled * weights[:, None]).T @ self._scaled)

    def _solve(self) -> tuple[Array, Array]:
        """Return weights and multipliers: Newton steps for a falling weight of the barrier."""
        count, size = self._rows.shape
        weights, multipliers = np.full(count, 1 / self._rows.sum(axis=0).mean()), np.zeros(size)
        barrier = float((self._questions * self._inverse(weights)).sum()) / count
        least = barrier * 1e-7
        while barrier > least:
            for _ in range(50):
                step, multipliers, decrement = self._newton(weights, barrier)
                falls = step < 0
                room = 0.95 * float((-weights[falls] / step[falls]).min(initial=math.inf))
                weights = weights + min(1.0, room) * step
                if room > 1 and decrement < 1e-3 * barrier:
                    break
            barrier /= 10
        return weights, multipliers

    def _newton(self, weights: Array, barrier: float) -> tuple[Array, Array, float]:
        """Return the step, the multipliers after it, and how much of the error it promises."""
        inverse, scaled = self._inverse(weights), self._scaled
        half = scaled @ inverse
        slopes = half @ self._questions @ half.T
        gradient = -np.diag(slopes) - barrier / weights
        curvature = 2 * slopes * (half @ scaled.T) + np.diag(barrier / weights**2)
        curvature += 1e-12 * np.trace(curvature) / len(weights) * np.eye(len(weights))
        solved = np.linalg.solve(curvature, np.column_stack([self._rows, gradient]))
        lacking = self._rows.T @ weights - 1
        multipliers = np.linalg.solve(
            self._rows.T @ solved[:, :-1], lacking - self._rows.T @ solved[:, -1]
        )
        step = -(solved[:, -1] + solved[:, :-1] @ multipliers)
        return step, multipliers, float(step @ curvature @ step)

    def excess(self, sets: Array) -> Array:
        """Return how much each of *sets* breaks what holds of all sets at the optimum."""
        rows = self._row_of(sets)
        squares = np.einsum("si,ij,sj->s", rows, self._slope, rows, optimize=True)
        excess: Array = squares / rows.sum(axis=1) - rows @ self._multipliers
        return excess

    def better(self, starts: Array) -> list[Array]:
        """Return the sets that lower the error, best first: of all, or near *starts*."""
        size = starts.shape[1]
        tried = _every_set(size) if size <= _EVERY else np.unique(self._climbed(starts), axis=0)
        tried = tried[tried.any(axis=1) & ~tried.all(axis=1)]
        excess = self.excess(tried)
        order = np.argsort(-excess)
        return [tried[i] for i in order if excess[i] > _ENOUGH * self.value]

    def _climbed(self, starts: Array) -> Array:
        """Return *starts* after the changes of one item, while these raise ``excess``."""
        sets, gain = starts.copy(), self._odds - 1
        diagonal = np.diag(self._slope)
        for _ in range(4 * sets.shape[1]):
            rows = self._row_of(sets)
            products = rows @ self._slope
            squares, sums = (rows * products).sum(axis=1), rows.sum(axis=1)
            change = gain * (1 - 2 * sets)
            after = (squares[:, None] + 2 * change * products + change**2 * diagonal) / (
                sums[:, None] + change
            )
            after -= (rows @ self._multipliers)[:, None] + change * self._multipliers
            now = squares / sums - rows @ self._multipliers
            item = after.argmax(axis=1)
            (rising,) = np.nonzero(after[np.arange(len(sets)), item] > now + 1e-12)
            if not len(rising):
                break
            sets[rising, item[rising]] ^= True
        return sets

    def bound(self) -> float:
        """Return what no channel's tr(V M^-1) is below."""
        size, most = self.sets.shape[1], 0.0
        sets = _every_set(size)
        for part in np.array_split(sets, max(1, len(sets) // 8_192)):
            most = max(most, float((self.excess(part) / self._row_of(part).sum(axis=1)).max()))
        return self.value**2 / float(self._multipliers.sum() + size * most)

    def table(self) -> list[tuple[int, int]]:
        """Return weight and items of the sets that are used, as integers."""
        parts = np.round(self._weights / self._weights.max() * _HEAVIEST).astype(int)
        bits = [sum(1 << int(item) for item in np.flatnonzero(row)) for row in self.sets]
        return [(int(part), items) for part, items in zip(parts, bits, strict=True) if part]


def first_sets(domain_size: int) -> Array:
    """Return runs of neighbouring items of some lengths, and each item alone."""
    item = np.arange(domain_size)
    lengths = {1, *(max(1, domain_size // part) for part in (2, 3, 4, 8))}
    runs = [(item - first) % domain_size < length for length in lengths for first in item]
    return np.unique(np.array(runs), axis=0)


def starts(chance: np.random.Generator, program: Program, domain_size: int) -> Array:
    """Return sets at random, waves along the order, and the sets in use."""
    sizes = 0.02 + 0.7 * chance.random((_STARTS, 1))
    scattered = chance.random((_STARTS, domain_size)) < sizes
    places = np.arange(domain_size) / domain_size
    phases, periods = 2 * math.pi * chance.random((_STARTS, 1)), chance.random((_STARTS, 1))
    waves = np.cos(math.pi * domain_size * periods * places + phases)
    return np.vstack([
        scattered,
        waves > 1.6 * chance.random((_STARTS, 1)) - 0.6,
        program.sets[program.chances > _ENOUGH],
    ])  # fmt: skip


def _every_set(domain_size: int) -> Array:
    """Return all sets but the empty and the whole one."""
    numbers = np.arange(1, (1 << domain_size) - 1)
    return (numbers[:, None] >> np.arange(domain_size) & 1).astype(bool)
