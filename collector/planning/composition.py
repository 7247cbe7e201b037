"""What several windows of shuffled reports reveal together: their losses, convolved.  Pure.

Each window has a profile: the divergence at every ε, or a bound of it, in both directions.  A pair
of laws with a profile nowhere lower dominates it, and pairs side by side dominate the windows side
by side.  So the losses of dominating pairs are added up: their laws are convolved.

Source: Zhu, Dong, Wang, *Optimal Accounting of Differential Privacy via Characteristic Function*,
    AISTATS 2022, for profiles that dominate, and their composition; Doroshenko, Ghazi, Kamath,
    Kumar, Manurangsi, *Connect the Dots*, PoPETs 2022, for the laws on a grid.
Derived: with H(t) = ∫ (P - tQ)+ of the pair, H is convex, and the hull below points that are not
    below it is not either.  A profile h that is linear between t_i has Q(P/Q = t_i) = its bend at
    t_i, P = t_i Q, and what H has at the last point is where Q is none: a loss without bound.
    Below 1 it is H(t) = 1 - t + t h(1/t), as that of (Q, P) has the same bound.
    A test convolves randomized response so, of which the sum is known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

_SPARE: Final = 1e-3  # of delta: what may be lost beyond the ends of the laws, in all
_FINE: Final = 0.15  # steps of the grid in standard deviations of the calmest window
_MOST: Final = 20_000  # steps of a law, beyond which the grid is made coarser
_UP: Final = 1 + 1e-9  # for rounding


@dataclass(frozen=True)
class Profile:
    """Bounds *deltas* of the divergence at ascending *epsilons*, the first of which is 0.

    They hold in both directions.  Beyond the last the divergence is that of the last at most.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]


def composed(profiles: Sequence[Profile], delta: float) -> float:
    """Return an ε that holds, but for *delta*, of one window of each of *profiles* together."""
    counts = Counter(profiles)
    step = _step(counts)
    losses = _Losses.none(step)
    spare = delta * _SPARE / (4 * len(profiles))
    for profile, times in counts.items():
        losses = losses.plus(_law(profile, step).times(times, spare), spare)
    return losses.epsilon_at(delta / _UP) * _UP


def _step(counts: Counter[Profile]) -> float:
    """Return the step of a grid on which the calmest window has several and all fit together."""
    calmest = min(_deviation(profile) for profile in counts)
    widest = sum(times * profile.epsilons[-1] for profile, times in counts.items())
    return max(calmest * _FINE, 2 * widest / _MOST)


def _deviation(profile: Profile) -> float:
    """Return about the standard deviation of the loss: of a normal one, by its divergence at 0."""
    return max(profile.deltas[0] * math.sqrt(2 * math.pi), profile.epsilons[-1] / 64)


@lru_cache(maxsize=256)
def _law(profile: Profile, step: float) -> _Losses:
    """Return the losses of a pair that dominates *profile*, on multiples of *step*.

    Below 1, H less 1 - t is computed, whose bends are the same but for that at 1: no digit is lost.
    """
    last = math.ceil(profile.epsilons[-1] / step)
    above = np.exp(np.array(profile.epsilons))
    deltas = np.array(profile.deltas)
    below = np.concatenate(([0.0], 1 / above[::-1]))
    heights = np.concatenate(([0.0], deltas[::-1] / above[::-1]))
    grid = np.exp(step * np.arange(-last, last + 1))
    upper = np.interp(grid[last:], *_hull(above, deltas))
    lower = np.interp(grid[: last + 1], *_hull(below, heights))
    slopes = np.concatenate((
        lower[:1] / grid[:1],
        np.diff(lower) / np.diff(grid[: last + 1]),
        np.diff(upper) / np.diff(grid[last:]),
        [0.0],
    ))  # fmt: skip
    bends = np.diff(slopes)
    bends[last] += 1.0
    return _Losses(-last, np.maximum(bends, 0.0) * grid, float(upper[-1]), step)


def _hull(x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
    """Return the corners of the lower convex hull of points, of ascending *x*."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


@dataclass(frozen=True)
class _Losses:
    """The law of a loss under the first value: *masses* from *first* steps on, and *endless*."""

    first: int
    masses: _Floats
    endless: float  # the chance of a loss without bound
    step: float

    @classmethod
    def none(cls, step: float) -> _Losses:
        """Return the law of no loss."""
        return cls(0, np.ones(1), 0.0, step)

    def plus(self, other: _Losses, spare: float) -> _Losses:
        """Return the law of both losses together, rounded up by a chance of *spare* at most."""
        masses = np.convolve(self.masses, other.masses)
        endless = self.endless + other.endless
        return _Losses(self.first + other.first, masses, endless, self.step)._cut(spare)

    def times(self, count: int, spare: float) -> _Losses:
        """Return the law of *count* such losses together."""
        result, power = _Losses.none(self.step), self
        while count:
            if count & 1:
                result = result.plus(power, spare)
            count >>= 1
            if count:
                power = power.plus(power, spare)
        return result

    def _cut(self, spare: float) -> _Losses:
        """Take the highest losses for endless ones, and the lowest for the lowest that is left."""
        upper = np.cumsum(self.masses[::-1])[::-1]
        lower = np.cumsum(self.masses)
        end = int(np.count_nonzero(upper > spare))
        begin = min(int(np.count_nonzero(lower <= spare)), max(end - 1, 0))
        kept = self.masses[begin:end].copy()
        kept[0] += self.masses[:begin].sum()
        endless = self.endless + float(self.masses[end:].sum())
        return _Losses(self.first + begin, kept, endless, self.step)

    def epsilon_at(self, delta: float) -> float:
        """Return the least ε of a divergence of *delta* at most, to a part of a step."""
        losses = self.step * (self.first + np.arange(self.masses.size))

        def divergence(epsilon: float) -> float:
            above = losses > epsilon
            gain = -np.expm1(epsilon - losses[above])
            return self.endless + float(self.masses[above] @ gain)

        low, high = 0.0, max(float(losses[-1]), 0.0)
        if divergence(high) > delta:
            return math.inf
        for _ in range(40):
            middle = (low + high) / 2
            if divergence(middle) <= delta:
                high = middle
            else:
                low = middle
        return high
