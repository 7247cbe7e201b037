"""How sure it is that somebody holds a string that a search came to.  Pure.

Sure are strings whose interval lies above 0: all intervals hold at once.  Of the others some are
likely (``likely``): as many as let noise make up a tenth of them, in expectation.  Both ask for the
law of the share of a string that nobody holds far in its tails, where no normal law will do.
``Noise`` takes it from the sketch: the cells of such a string are uniform, and independent from row
to row, so what it gathers is the sum of a cell of each row, drawn blindly, and the law of that is
the convolution of what the rows hold: noise, and the strings that it may share a cell with.
Nothing is drawn.  An interval has room for this law and for the normal one, whose variance grows
with the share.

Source: Benjamini and Hochberg, JRSS B 1995: the rate of false discoveries, by stepping up.  The law
    is a permutation test of the hash, derived here; the fast Fourier transform convolves cells
    rounded to a ``STEPS``-th of the standard deviation of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...estimation.arrays import Floats, Numbers
from ...estimation.estimate import Estimate
from .search import Plan, Search
from .sketches import Sketch, measured

FALSE: Final = 0.1  # of the strings that are likely, expected to be noise at most
STEPS: Final = 128  # a standard deviation; 36 rows are rounded by 0.014 of it
_SIZE: Final = 1 << 13  # steps: 32 standard deviations to either side
_FURTHEST: Final = _SIZE // 8  # steps of a cell; more is as good as certain
Shares = dict[bytes, Estimate]


def sorted_out(levels: Sequence[Sketch], plan: Plan, search: Search) -> tuple[Shares, Shares]:
    """Return the strings that somebody holds for sure, and those that are likely."""
    own = measured(levels, search.texts, [plan.z_of(many) for many in search.looked_up])
    firsts = np.array([plan.mechanism.first_level(len(text)) for text in search.texts], dtype=int)
    chances, shares = np.ones(firsts.size), dict(zip(search.texts, own.estimates, strict=True))
    for first in set(firsts.tolist()):
        noise, places = Noise.of(own.rests[first:]), np.flatnonzero(firsts == first)
        least, most = noise.limits(plan.tail_of(search.looked_up[first]))
        values = np.array([own.estimates[place].value for place in places.tolist()])
        chances[places] = noise.tails(values * own.reports[places])
        for place, reports in zip(places.tolist(), own.reports[places].tolist(), strict=True):
            text, share = search.texts[place], own.estimates[place]
            low = min(share.ci_low, share.value - most / max(reports, 1))
            high = max(share.ci_high, share.value - least / max(reports, 1))
            shares[text] = Estimate(share.value, share.std_error, low, high)
    sure = {text: share for text, share in shares.items() if share.ci_low > 0}
    pairs = zip(search.texts, chances.tolist(), strict=True)
    others = {text: chance for text, chance in pairs if text not in sure}
    ranked = sorted(others, key=lambda text: (others[text], text))
    taken = likely(list(others.values()), sum(search.looked_up))
    return sure, {text: shares[text] for text in ranked[:taken]}


def likely(tails: Sequence[float], looked_up: int) -> int:
    """Return how many strings are likely, those of the smallest *tails*: chances to be noise.

    Of all *looked_up* noise gives looked_up times the largest tail that is taken: a tenth
    (``FALSE``) of the strings taken, at most.  Those that are sure are no part of this, as they
    would let others in.
    """
    ranked = enumerate(sorted(tails), start=1)
    return max((k for k, tail in ranked if tail * looked_up <= k * FALSE), default=0)


@dataclass(frozen=True)
class Noise:
    """The law of what blindly drawn cells gather, one a row: shares times reports."""

    step: float  # 0 if nothing is left to chance
    upper: Floats  # the chance of each number of steps or more, from -_SIZE / 2 on

    @classmethod
    def of(cls, levels: Sequence[Sketch]) -> Noise:
        """Return the law of what *levels* hold."""
        cells = np.concatenate([_above_mean(level) for level in levels])
        step = float(np.sqrt(cells.var(axis=1).sum())) / STEPS
        if step == 0:
            return cls(step, np.zeros(0))
        places = np.rint(cells / step).clip(-_FURTHEST, _FURTHEST).astype(np.int64) % _SIZE
        waves = np.ones(_SIZE // 2 + 1, dtype=complex)
        for row in places:
            waves *= np.fft.rfft(np.bincount(row, minlength=_SIZE) / row.size)
        law = np.roll(np.fft.irfft(waves, _SIZE), _SIZE // 2).clip(0)
        return cls(step, np.cumsum(law[::-1])[::-1])

    def tails(self, sums: Numbers) -> Floats:
        """Return the chance that blindly drawn cells gather each of *sums* or more."""
        if not self.step:
            return np.where(np.asarray(sums) > 0, 0.0, 1.0)
        steps = np.rint(np.asarray(sums) / self.step).clip(-_SIZE // 2, _SIZE // 2 - 1)
        return self.upper[steps.astype(np.int64) + _SIZE // 2]

    def limits(self, tail: float) -> tuple[float, float]:
        """Return what less and what more is gathered than with a chance of *tail* each."""
        if not self.step:
            return 0.0, 0.0
        least = int(np.searchsorted(-self.upper, tail - 1, side="right")) - 1
        most = int(np.searchsorted(-self.upper, -tail))
        return (least - _SIZE // 2) * self.step, (most - _SIZE // 2) * self.step


def _above_mean(level: Sketch) -> Floats:
    """Return by how much each cell of a level lifts the sum, shape (rows, columns)."""
    m = level.mechanism.columns
    lifted = (level.counts - level.reports[:, None] * level.mass / m) * m / (m - 1)
    return lifted if level.clean is None else np.where(level.clean, lifted, 0.0)
