"""Longitudinal local hashing: OLH with a permanent seed and noisy bucket, and fresh noise on top.

Source: Arcolezi, Pinzón, Palamidessi, Gambs, *Frequency Estimation of Evolving Data Under Local
    Differential Privacy* (LOLOHA), EDBT 2023.  The second round is calibrated here.
Proof: the seed is drawn without looking at the item.  Given it, the first round is GRR over g
    buckets with p₁ = e^ε∞/(e^ε∞+g-1) rounded down to the grid, so all reports of one bucket, being
    made from its one permanent answer, have a ratio of at most p₁/q₁ <= e^ε∞.  The second round is
    GRR with p₂, D = p₂-q₂; so the item's own bucket is reported with P = q₂ + p₁D and any other
    with Q = q₂ + q₁D.  P/Q = e^ε at D = (e^ε-1) / (g(p₁-e^ε q₁) + e^ε-1), and p₂ = (1+(g-1)D)/g is
    rounded down, which lowers P/Q.
    A device has at most min(g, k) buckets, so its life costs at most min(g, k)·ε∞ for histories
    whose buckets repeat an earlier one at the same reports, and the same earlier one.  Between
    others there is no bound: that, and when, the bucket changed shows after many reports.

The SDK sends first reports only, by ``randomize``; ``respond`` is for devices that keep the
permanent answer.

``epsilon`` is that of one report; ε∞ is ``permanent_percent`` hundredths of it.  With p₂ solved for
g buckets, and not for two, one report has exactly the channel of OLH.  So the best
g for one report is OLH's, and a smaller one trades accuracy for a cheaper life.

Draws: uniform(P^2), the seed; true(first_truth) and true(second_truth) on the bucket, each followed
    by uniform(g - 1) of a lie, from the bucket on one higher.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import EpsilonLike
from ..exact import THRESHOLD_BITS, exp_floor, floor_to_grid, respond, spent_by, truth_chance
from ..items.olh import OLH, PRIME
from .rappor import TwoRounds

_MOST_PERCENT: Final = 400  # of epsilon; ε∞ is then at most 64
MAX_BUCKETS: Final = 256  # a device has a permanent answer for each
_BUCKET_SIZE: Final = 2  # bytes of the key of a bucket's permanent answer; the seed's key is empty


@dataclass(frozen=True, init=False)
class LOLOHA(TwoRounds, OLH):
    """Longitudinal local hashing.  A report is the device's seed and a bucket."""

    name: ClassVar[str] = "loloha"
    automatic: ClassVar[bool] = False  # for comparison: a single report is OLH's
    most_buckets: ClassVar[int] = MAX_BUCKETS
    constants: ClassVar[tuple[str, ...]] = ("first_truth", "second_truth")

    permanent_percent: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        buckets: int | None = None,
        permanent_percent: int = 200,
        prime: int = PRIME,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take ε∞ = *permanent_percent* hundredths of *epsilon*; the rest as OLH."""
        self.fix("permanent_percent", permanent_percent, least=101, most=_MOST_PERCENT)
        super().__init__(epsilon, domain_size, buckets=buckets, prime=prime, precision=precision)

    def validate(self) -> None:
        """Refuse a second round that is a lottery or no round at all."""
        if not Fraction(1, self.buckets) < self.second_truth < 1:
            raise self.no_channel()
        super().validate()

    @cached_property
    def permanent_epsilon(self) -> Fraction:
        """ε∞: what all reports of one bucket may cost, in nats."""
        return self.epsilon * self.permanent_percent / 100

    @cached_property
    def spent_bucket(self) -> Fraction:
        """What all reports of one bucket cost, in nats: the first round as built."""
        p = self.first_truth
        return spent_by(p * (self.buckets - 1) / (1 - p), self.permanent_epsilon)

    @property
    def spent_lifetime(self) -> Fraction:
        """What all reports of all values cost, in nats: once for every bucket a device can have."""
        return min(self.buckets, self.domain_size) * self.spent_bucket

    @cached_property
    def first_truth(self) -> Fraction:
        """p₁."""
        return truth_chance(exp_floor(self.permanent_epsilon), self.buckets - 1, self.precision)

    @cached_property
    def second_truth(self) -> Fraction:
        """p₂, from the proof's D."""
        g, odds, p = self.buckets, exp_floor(self.epsilon), self.first_truth
        gain = odds - 1
        lead = g * (p - odds * (1 - p) / (g - 1))
        if lead <= 0:
            return Fraction(1)  # validate refuses so coarse a grid
        return floor_to_grid((1 + (g - 1) * gain / (lead + gain)) / g, self.precision)

    @cached_property
    def truth(self) -> Fraction:
        """P: the chance to report the item's own bucket."""
        first, second = self.first_truth, self.second_truth
        return first * second + (1 - first) * (1 - second) / (self.buckets - 1)

    def report(
        self,
        value: int,
        joining: Randomness,
        memo: Callable[[bytes], Randomness],
        fresh: Randomness,
    ) -> bytes:
        """Return the seed, and the permanent answer for its bucket, told with fresh noise."""
        seed = joining.uniform(self.prime**2)
        bucket = self.bucket_of(seed, value)
        answers = memo(bucket.to_bytes(_BUCKET_SIZE, "big"))
        answer = respond(bucket, self.buckets, self.first_truth, answers)
        noisy_answer = respond(answer, self.buckets, self.second_truth, fresh)
        return (seed * self.buckets + noisy_answer).to_bytes(self.payload_size, "big")


MECHANISM: Final = LOLOHA
