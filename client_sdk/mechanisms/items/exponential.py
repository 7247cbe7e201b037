"""Exponential mechanism over ordered items: items near the true one are likelier than far ones.

Source: McSherry, Talwar, *Mechanism Design via Differential Privacy*, FOCS 2007: report an item
    with probability proportional to e^(λ u), u the utility, here minus the distance |i - j|.
Proof: the weights are integers with w_0 >= w_1 >= … and w_(k+1) >= a w_k, so one step of the value
    changes every weight, and hence their sum T, by a factor of at least a.  With v < w, Pr[j | v] /
    Pr[j | w] <= a^(v-w) T_w / T_v = f(w) / f(v) with f(i) = T_i a^-i, which never falls.  So it is
    at most f(d-1) / f(0) = a^-(d-1), as T is the same at both ends; v > w mirrors it.  a is
    e^(-ε/(d-1)) rounded up to the grid, hence at most e^ε.  The general bound of the source, which
    counts the change of T a second time, would allow only half that λ.

Debiasing inverts the channel in closed form: the matrix of a^|i-j| has a tridiagonal inverse.

Draws: halving [0, d) at (low + high) // 2: uniform(weight of both halves) below that of the lower
    one takes it, until one item is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Debiased, Numpy, Reach
from ..exact import ceil_to_grid, exp_floor, require_ratio, spent_by
from ..families import CountedReports
from ..frequency import ItemMechanism, mean_square_variances

# Reports added to every cell before its variance is stated.  A cell that few devices reach is often
# empty by chance, and would then pass for certain: intervals covered 63 % where these cover 95 %.
UNSEEN: Final = 0.5
MAX_ITEMS: Final = 4096  # items; the table of weights takes 300 kB on the device


class Exponential(CountedReports[int], ItemMechanism):
    """Exponential mechanism with distance as utility.  A report is an item."""

    name = "exponential"
    beyond = "item_out_of_range"
    automatic = False  # for ordered items only, which a registry does not say
    constants = ("decay",)

    def validate(self) -> None:
        """Refuse more items than a device should hold a table of, and a grid without a step."""
        if self.domain_size > MAX_ITEMS:
            rule = f"must be at most {MAX_ITEMS}"
            raise InvalidParameterError("domain_size", self.domain_size, rule)
        if not 0 < self.decay < 1:
            raise self.no_channel()
        require_ratio(1 / self.decay, self.epsilon_step)

    @cached_property
    def epsilon_step(self) -> Fraction:
        """What one step of the value may cost, in nats."""
        return self.epsilon / (self.domain_size - 1)

    @cached_property
    def decay(self) -> Fraction:
        """a, the least ratio of the weights of neighbouring distances, rounded up to the grid."""
        return ceil_to_grid(1 / exp_floor(self.epsilon_step), self.precision)

    @cached_property
    def spent(self) -> Fraction:
        """d - 1 steps of -ln a, rounded up; never above epsilon."""
        return (self.domain_size - 1) * spent_by(1 / self.decay, self.epsilon_step)

    @cached_property
    def reach_sums(self) -> Sequence[int]:
        """The weights of distances 0 … k summed, for every k below domain_size."""
        weight, weights = 1 << self.precision, []
        for _ in range(self.domain_size):
            weights.append(weight)
            weight = -(-weight * self.decay.numerator // self.decay.denominator)
        return tuple(accumulate(weights))

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the item reported for *value*, by halving the domain with a coin at a time."""
        self.require_value(value)
        low, high = 0, self.domain_size
        below, total = 0, self.weight_below(high, value)  # of the items before low, and before high
        while high - low > 1:
            middle = (low + high) // 2
            here = self.weight_below(middle, value)
            if randomness.bernoulli_ratio(here - below, total - below):
                high, total = middle, here
            else:
                low, below = middle, here
        return low.to_bytes(self.payload_size, "big")

    def weight_below(self, item: int, value: int) -> int:
        """Return the sum of the weights of the items before *item*, seen from *value*."""
        sums = self.reach_sums
        if item > value:
            return sums[value] + sums[item - 1 - value] - sums[0]
        return sums[value] - sums[value - item]

    def channel_law(self, value: int) -> Sequence[Fraction]:
        """Return the exact probability of every report for *value*."""
        sums = self.reach_sums
        weights = [sums[0], *(b - a for a, b in pairwise(sums))]
        total = self.weight_below(self.domain_size, value)
        return [Fraction(weights[abs(item - value)], total) for item in range(self.domain_size)]

    @property
    def payload_count(self) -> int:
        """One report an item."""
        return self.domain_size

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return unbiased counts, and their variances with half a report added to every cell.

        Derived: with A the inverse of the channel matrix, totals are A t, and for a fixed
                 population their variances sum over reports o of A_jo^2 t_o, less the total of j.
                 A_jo is T_j times the inverse of a^|i-j|: (1 + a^2, at both ends 1) / (1 - a^2) on
                 the diagonal, -a / (1 - a^2) beside it, 0 elsewhere.  No A_jo is between 0 and
                 1, so that even without UNSEEN no variance is below 0.
        """
        counts = self.require_tally(tally, n, np)
        self.require_sum(counts, n)
        scale, own, other = (np.array(part) for part in zip(*self._inverse, strict=True))
        totals = scale * (own * counts + other * _neighbours(counts, np))
        likely = counts + UNSEEN
        squares = own**2 * likely + other**2 * _neighbours(likely, np)
        return Debiased(totals, scale**2 * squares - totals)

    def knows_sums(self, np: Numpy) -> bool:
        """Reports are counted one by one, and what each stands for is known."""
        return True

    def sum_variances(
        self, weights: Array, np: Numpy, *, tally: Array, n: int, shares: Array
    ) -> Array:
        """Return variances from what the reports stand for, half a report added to every cell."""
        single = np.eye(self.domain_size, dtype=np.int64)
        stands = weights @ np.array([self.debias(row, 1, np).totals for row in single]).T
        counts = tally.astype(np.float64) + UNSEEN
        return mean_square_variances(stands, counts, np, weights=weights, shares=shares, n=n)

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return the reach of the inverse: a report bears on its own item and the two beside."""
        size = self.domain_size
        stands = [0.0] if size > 3 else []  # the share that a report further away gives
        for neighbour in range(max(item - 1, 0), min(item + 2, size)):
            tally = np.zeros(size, dtype=np.int64)
            tally[neighbour] = 1
            stands.append(float(self.debias(tally, 1, np).totals[item]))
        return Reach(min(stands), max(stands))

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share.

        Derived: the mean of the variances of ``debias`` where all items are equally common.
        """
        d = self.domain_size
        law = [0.0, *self._law_of_everybody(), 0.0]
        spread = sum(
            scale**2 * (own**2 * law[j + 1] + other**2 * (law[j] + law[j + 2])) - 1 / d
            for j, (scale, own, other) in enumerate(self._inverse)
        )
        return math.sqrt(spread / d / n)

    @cached_property
    def _inverse(self) -> list[tuple[float, float, float]]:
        """Of every row of A its factor T_j, and the entries on and beside the diagonal."""
        d, rate = self.domain_size, float(self.epsilon_step)
        a, square = math.exp(-rate), -math.expm1(-2 * rate)
        return [
            (self._sum_at(j), (1 if j in (0, d - 1) else 1 + a * a) / square, -a / square)
            for j in range(d)
        ]

    def _sum_at(self, item: int) -> float:
        """T at *item*, in units of the largest weight."""
        return self.weight_below(self.domain_size, item) / self.reach_sums[0]

    def _law_of_everybody(self) -> list[float]:
        """The chance of every report where all items are equally common, by running sums."""
        a = math.exp(-self.epsilon_step)
        shares = [1 / (self.domain_size * scale) for scale, _, _ in self._inverse]
        upward = list(accumulate(shares, lambda total, share: total * a + share))
        downward = list(accumulate(shares[::-1], lambda total, share: total * a + share))[::-1]
        return [u + v - share for u, v, share in zip(upward, downward, shares, strict=True)]


def _neighbours(cells: Array, np: Numpy) -> Array:
    """Return the sum of the cells on either side of each."""
    wide = np.pad(cells, 1)
    return wide[:-2] + wide[2:]


MECHANISM: Final = Exponential
