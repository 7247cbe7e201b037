"""1BitMean: compare the position with a random threshold, and send the outcome by a noisy coin.

Source: Ding, Kulkarni, Yekhanin, *Collecting Telemetry Data Privately*, NeurIPS 2017: 1BitMean,
    α-point rounding and output perturbation.
Proof: the comparison yields one of two outcomes; the outcome is sent as it is with probability
    s = (1-γ) p + γ (1-p), p = e^ε/(e^ε+1) rounded down to the grid and γ = ``flip_per_mille``/1000,
    and its opposite otherwise.  So any report is at most s/(1-s) <= p/(1-p) <= e^ε times likelier
    under one value than another.  With γ > 0 ``spent`` is ln(s/(1-s)), below the ε asked for.

The threshold is one of ``points`` places, evenly spread over the range.  A position between two
places is first rounded to one of them at random, which keeps the mean exact (derived: a position k
of ``points`` steps passes k of the thresholds).  Drawn anew for every report, threshold and bit
have the law of ``duchi``; they matter where a device keeps its threshold and its two answers.

Variance (derived): with the range as [-1, 1], 1/(2s-1)^2 - x^2; the worst is (C/(1-2γ))^2.

Draws: round(x, points); uniform(points) below it is the outcome; true(inside) keeps it, else
    uniform(1), which reads nothing.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import EpsilonLike
from ..exact import THRESHOLD_BITS
from ._wave import WindowReports, inside_of

MILLE: Final = 1000
_MAX_POINTS: Final = 1 << 24  # thresholds; as many as a domain has grid points


@dataclass(frozen=True, init=False)
class OneBitMean(WindowReports):
    """One bit: whether the position lies above a threshold, flipped now and then."""

    name = "one_bit_mean"

    points: int
    flip_per_mille: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        points: int | None = None,
        flip_per_mille: int = 0,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take thresholds at *points* places (by default one a grid step), and γ in per mille."""
        self.prepare(epsilon, domain_size, precision)
        places = domain_size - 1 if points is None else points
        self.fix("points", places, least=1, most=_MAX_POINTS)
        self.fix("flip_per_mille", flip_per_mille, least=0, most=MILLE // 2 - 1)
        self.validate()

    @cached_property
    def inside(self) -> Fraction:
        """s, the chance that the outcome is told as it is."""
        p = inside_of(self.epsilon, 1, 1, self.precision)
        flip = Fraction(self.flip_per_mille, MILLE)
        return (1 - flip) * p + flip * (1 - p)

    def draw(self, value: Fraction, randomness: Randomness) -> int:
        """Compare *value* with a threshold, then tell the truth with probability s."""
        place = self.round_to_steps(value, self.points, randomness)
        above = randomness.uniform(self.points) < place
        return self.window.draw(int(above), randomness)


MECHANISM: Final = OneBitMean
