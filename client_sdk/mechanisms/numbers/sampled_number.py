"""Sampled number: draw one coordinate of a vector, and report it alone by a noisy number.

Source: Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu, *Collecting and Analyzing Multidimensional Data
    with Local Differential Privacy*, ICDE 2019 (Algorithm 4 with k = 1, and its hybrid mechanism).
    The decoder and the comparison with a codebook are derived here.
Proof: the coordinate is drawn without a look at the vector.  Given the coordinate, the symbol is
    that of ``hybrid``, so a report is at most e^ε times likelier under one vector than another.

Of n reports m are about a coordinate, of devices drawn at random.  Their mean is an unbiased one of
all, given m > 0, and its variance is that of these reports over m: d (v + s) a report, v being the
variance of the noise and s that of the true numbers.  A codebook has d C whatever s is, in a cube.
So this is the better one for small ε; at ε = 4 it is only if the devices are much alike.

Draws: uniform(d), the coordinate x; then as in ``hybrid``, by ``truth``, ``inside`` and ``coin``,
    the position (x + 2^20)/2^21, in lowest terms, of the range up to 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.randomness import Randomness
from ...core.typing import TYPE_CHECKING, Final
from ..base import Array, Constant, Debiased, Draws, EpsilonLike, NoiseLaw, Numpy, Reach
from ..exact import THRESHOLD_BITS
from ..families import CountedReports
from ..vectors import UNIT, Vector, VectorMechanism
from ._wave import best_mixed_window
from .hybrid import BIT, Hybrid

MOST_SYMBOLS: Final = 32  # of a coordinate, as each has a cell; more gain less than 1 % up to ε = 5


@dataclass(frozen=True, init=False)
class SampledNumber(CountedReports[Vector], VectorMechanism):
    """A report is coordinate · symbols + symbol."""

    name = "sampled_number"
    beyond = "symbol_out_of_range"
    constants = ("truth", "inside", "coin")

    cube: int
    steps: int
    width: int

    if TYPE_CHECKING:

        @property
        def number(self) -> Hybrid:
            """The mechanism of the coordinate, made with this."""

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        cube: int = 0,
        steps: int | None = None,
        width: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take *steps* and *width* of ``hybrid``, both, or the ones of the smallest error."""
        self.prepare(epsilon, domain_size, precision)
        self.fix("cube", cube, least=0, most=1)
        if steps is None and width is None:
            steps, width = best_mixed_window(self.epsilon, MOST_SYMBOLS - BIT)
        self.fix("steps", steps, least=1, most=MOST_SYMBOLS - BIT - 1)
        most = 1 if self.steps == 1 else MOST_SYMBOLS - BIT - self.steps
        self.fix("width", width, least=1, most=most)
        known = {key: self.__dict__[key] for key in self.constants if key in self.__dict__}
        own = {"steps": self.steps, "width": self.width, "precision": self.precision}
        number = Hybrid.with_constants(known, self.epsilon, 2, **own)
        self.__dict__["number"] = number
        self.validate()

    @cached_property
    def truth(self) -> Fraction:
        """That of the bit of ``hybrid``."""
        return self.number.truth

    @cached_property
    def inside(self) -> Fraction:
        """That of its window."""
        return self.number.inside

    @cached_property
    def coin(self) -> Fraction:
        """The chance of its window."""
        return self.number.coin

    def constant_values(self) -> dict[str, Constant]:
        """Those that ``hybrid`` has."""
        return self.number.constant_values()

    @property
    def likelihood_ratio(self) -> Fraction:
        """That of ``hybrid``."""
        return self.number.likelihood_ratio

    @property
    def payload_count(self) -> int:
        """Every symbol of every coordinate."""
        return self.domain_size * self.number.payload_count

    def randomize(self, value: Vector, randomness: Randomness) -> bytes:
        """Draw a coordinate and report it by ``hybrid``."""
        self.require_value(value)
        place = randomness.uniform(self.domain_size)
        symbol = self.number.draw(Fraction(value[place] + UNIT, 2 * UNIT), randomness)
        report = place * self.number.payload_count + symbol
        return report.to_bytes(self.payload_size, "big")

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return n times the mean position of each coordinate, with the variance of its reports.

        The sample variance is taken, and at least half of the least that noise has: a few reports
        can be alike by chance.  A coordinate without a report is in the middle, with an error that
        leaves nothing out.
        """
        cells = self.require_tally(tally, n, np)
        self.require_sum(cells, n)
        counts = cells.reshape(self.domain_size, -1)
        drawn = counts.sum(axis=1)
        least, most = np.maximum(drawn, 1), np.maximum(drawn - 1, 1)
        means = counts @ self._positions(np) / least
        squares = counts @ self._positions(np) ** 2 / least
        scatter = np.maximum((squares - means**2) * least / most, self._least_noise / 2)
        return Debiased(n * (means + 0.5), n**2 * np.where(drawn > 0, scatter / least, scatter + 1))

    def _positions(self, np: Numpy) -> Array:
        """Return the positions of all symbols, counted from the middle, as parts of the range."""
        symbols = range(self.number.payload_count)
        return np.array([float(self.number.position(s) - Fraction(1, 2)) for s in symbols])

    @cached_property
    def _least_noise(self) -> float:
        """The least variance of a report, as a part of the range: at an end or in the middle."""
        moments = self.number.moments
        return float(min(map(moments.variance_of, (Fraction(0), Fraction(1, 2)))))

    @property
    def bias(self) -> float:
        """Nothing but the rounding of values."""
        return 1 / UNIT

    @property
    def stretch(self) -> float:
        """Reports of different coordinates are of different devices."""
        return 0.0

    def agrees(self, payload: bytes, value: Vector) -> bool:
        """Return whether the coordinate is reported at its end of the range, or beyond."""
        place, symbol = divmod(int.from_bytes(payload, "big"), self.number.payload_count)
        position = self.number.position(symbol)
        return position >= 1 if value[place] > 0 else value[place] < 0 and position <= 0

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return that of the symbols; only reports about the coordinate bear upon it."""
        positions = self._positions(np) + 0.5
        return Reach(float(positions.min()), float(positions.max()), float(self.domain_size))

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every device draws its coordinate evenly."""
        counts = tally.reshape(*tally.shape[:-1], self.domain_size, -1).sum(axis=-1)
        return NoiseLaw(draws=Draws(counts, 1 / self.domain_size))

    def predict(self, n: int) -> float:
        """Return the standard error of a coordinate, as a part, where devices differ the most.

        That is half of them at either end in a cube; in a ball all coordinates have that together.
        """
        spread = 1 / 4 if self.cube else 1 / (4 * self.domain_size)
        noise = float(self.number.moments.worst_variance)
        return math.sqrt((self.domain_size * noise + (self.domain_size - 1) * spread) / n)


MECHANISM: Final = SampledNumber
