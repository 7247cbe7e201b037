"""Square wave: a number is reported near the truth more often than anywhere else, by a flat step.

Source: Li, Wang, Lopuhaä-Zwakenberg, Skoric, Li, *Estimating Numerical Distributions under Local
    Differential Privacy*, SIGMOD 2020: the square wave and the half-width b that maximises the
    mutual information of value and report.  The discrete channel is derived here, not theirs.
Proof: bin i of ``bins`` reports one of bins + 2b symbols.  The 2b+1 symbols i … i+2b share the
    probability P, the bins-1 others share 1-P, whatever i, so a symbol has one of two chances and
    their ratio is P (bins-1) / ((1-P)(2b+1)).  P is (2b+1)e^ε/((2b+1)e^ε+bins-1) rounded down to
    the grid, hence at most e^ε.  Rounding a position to a bin before is a mixture: no further loss.

The symbol o stands for the bin o - b, which may lie up to b beyond either end.  E[report | i] is
linear in i, and E[report^2 | i] in i^2, so sums of positions and of squares are unbiased in closed
form; the distribution needs an iterative decoder, which is the collector's.

Draws: round(x, bins - 1) with the rest in lowest terms, the bin i; true(inside), then i +
    uniform(2b + 1); else uniform(bins - 1), from i on 2b + 1 higher.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Debiased, EpsilonLike, Numpy
from ..exact import THRESHOLD_BITS, exp_floor, floor_to_grid
from ..families import DistributionMechanism, Scatter, largest_spread

_MAX_BINS: Final = 1024  # input bins; what the source's authors use
_USUAL_BINS: Final = 128  # input bins; more only widen intervals of the distribution, as their root


@dataclass(frozen=True, init=False)
class SquareWave(DistributionMechanism):
    """Square wave of half-width ``reach`` bins.  A report is a bin, or one beyond the ends."""

    name = "square_wave"
    constants = ("inside",)

    bins: int
    reach: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        bins: int | None = None,
        reach: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Round positions to *bins* bins; take b = *reach*, or the integer nearest to the optimum.

        Args:   bins: from 2 to domain_size and MAX_BINS.  reach: from 0 to MAX_BINS.
        """
        self.prepare(epsilon, domain_size, precision)
        count = min(domain_size, _USUAL_BINS) if bins is None else bins
        self.fix("bins", count, least=2, most=min(domain_size, _MAX_BINS))
        b = _best_reach(self.epsilon, self.bins) if reach is None else reach
        self.fix("reach", b, least=0, most=_MAX_BINS)
        self.validate()

    def validate(self) -> None:
        """Refuse a step that the grid cannot tell from a flat law, or that spends too much."""
        if not 0 < self.far < self.near < 1:
            raise self.no_channel()
        super().validate()

    @property
    def window(self) -> int:
        """Symbols near a bin, 2b + 1."""
        return 2 * self.reach + 1

    @property
    def symbols(self) -> int:
        """Every bin, and b beyond either end."""
        return self.bins + 2 * self.reach

    @cached_property
    def inside(self) -> Fraction:
        """P, the chance of a symbol near the bin, rounded down to the grid."""
        weight = self.window * exp_floor(self.epsilon)
        return floor_to_grid(weight / (weight + self.bins - 1), self.precision)

    @cached_property
    def near(self) -> Fraction:
        """The chance of each symbol within b of the bin."""
        return self.inside / self.window

    @cached_property
    def far(self) -> Fraction:
        """The chance of each other symbol."""
        return (1 - self.inside) / (self.bins - 1)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return near / far, exactly."""
        return self.near / self.far

    def channel_law(self, position: int) -> Sequence[Fraction]:
        """Return near for the symbols of the window, far for the others."""
        before, after = [self.far] * position, [self.far] * (self.bins - 1 - position)
        return [*before, *[self.near] * self.window, *after]

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        """Return a symbol near the bin of *value* with P, else one of the others."""
        position = self.bin_of(value, randomness)
        if randomness.bernoulli(self.inside):
            symbol = position + randomness.uniform(self.window)
        else:
            other = randomness.uniform(self.bins - 1)
            symbol = other + (self.window if other >= position else 0)  # skips the window
        return symbol.to_bytes(self.payload_size, "big")

    def spread(self, shares: Array, np: Numpy) -> Array:
        """Return the symbol law of a distribution by running sums: O(bins)."""
        ends = [(0, 0)] * (shares.ndim - 1)
        total = np.pad(np.cumsum(shares, axis=-1), [*ends, (self.window, 2 * self.reach)], "edge")
        total[..., : self.window] = 0
        within = total[..., self.window :] - total[..., : self.symbols]
        return float(self.far) * total[..., -1:] + float(self.near - self.far) * within

    def gather(self, weights: Array, np: Numpy) -> Array:
        """Return the transpose of ``spread``, by running sums."""
        total = np.pad(np.cumsum(weights, axis=-1), [(0, 0)] * (weights.ndim - 1) + [(1, 0)])
        within = total[..., self.window :] - total[..., : self.bins]
        return float(self.far) * total[..., -1:] + float(self.near - self.far) * within

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the sum of positions and its variance, for a fixed population.

        Derived: for a symbol y = o - b, E[y | i] = s i + c and E[y^2 | i] = s i^2 + e, with
                 s = (2b+1)(near - far).  The variance of a report is E[y^2 | i] - E[y | i]^2, in
                 which sums over reports of i and i^2 are estimated; what the second cannot be is
                 clipped.  Rounding to a bin adds at most 1/4 bin^2 a report.
        """
        counts = self.require_counts(tally, n, np)
        if n == 0:
            return Debiased(np.zeros(1), np.zeros(1))
        slope, offset, extra = self._moments
        y = np.arange(self.symbols) - self.reach
        total = (float(counts @ y) - n * offset) / slope
        squares = (float(counts @ (y * y)) - n * extra) / slope
        last = self.bins - 1
        inside = min(max(total, 0.0), n * last)
        squares = min(max(squares, inside * inside / n), inside * last)
        noise = slope * squares + n * extra
        noise -= slope**2 * squares + 2 * slope * offset * inside + n * offset**2
        variance = noise / slope**2 + n / 4
        step = self.top / last  # grid steps a bin
        return Debiased(np.array([total * step]), np.array([variance * step**2]))

    def scatter(self, tally: Array, n: int, np: Numpy) -> Scatter:
        """Return the sample variance of unbiased positions; of true ones, what squares tell."""
        counts = self.require_counts(tally, n, np) / n
        slope, offset, extra = self._moments
        y = np.arange(self.symbols) - self.reach
        mean, squares = float(counts @ y), float(counts @ (y * y))
        centre, last = (mean - offset) / slope, self.bins - 1
        spread = min(max((squares - extra) / slope - centre**2, 0.0), largest_spread(centre, last))
        step = (self.top / last) ** 2  # grid steps squared, a bin squared
        return Scatter((squares - mean**2) / slope**2 * step, spread * step)

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance of the position a report stands for, in grid steps squared."""
        slope, offset, extra = self._moments
        last = self.bins - 1
        noise = max(slope * i * i + extra - (slope * i + offset) ** 2 for i in (0, last / 2, last))
        return (noise / slope**2 + 1 / 4) * (self.top / last) ** 2

    def predict(self, n: int) -> float:
        """Return the standard error of the mean as a part of the range; the worst case."""
        return math.sqrt(self.worst_variance / n) / self.top

    @cached_property
    def _moments(self) -> tuple[float, float, float]:
        """s, c and e of ``debias``."""
        b, every = self.reach, range(-self.reach, self.bins + self.reach)
        slope = self.window * (self.near - self.far)
        offset = self.far * sum(every)
        steps = 2 * sum(w * w for w in range(1, b + 1))
        extra = self.far * sum(y * y for y in every) + (self.near - self.far) * steps
        return float(slope), float(offset), float(extra)


def _best_reach(epsilon: Fraction, bins: int) -> int:
    """Return the integer nearest to the optimal half-width of Li et al. 2020, in bins.

    b = (εe^ε - e^ε + 1) / (2e^ε(e^ε - 1 - ε)) for a range of 1, which tends to 1/2 as ε does to 0.
    """
    e = exp_floor(epsilon)
    part = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    return math.floor(part * bins + Fraction(1, 2))


MECHANISM: Final = SquareWave
