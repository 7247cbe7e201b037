"""Mechanisms over keys with a number each: one pair is sampled, its number rounded to a sign.

Padding and sampling: a device with fewer than ``pad`` pairs fills up with dummies, then takes one
of its pairs at random.  The position of its value is rounded to top (plus) or 0 (minus) at random,
which keeps its expectation.  A report supports (key, sign) pairs.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property

from ..core.dataclass import dataclass
from ..core.errors import InvalidTallyError, InvalidValueError
from ..core.randomness import Randomness
from ..core.typing import NamedTuple
from .base import MAX_DOMAIN_SIZE, Array, Debiased, EpsilonLike, Numpy, RatioMechanism, Reach
from .exact import THRESHOLD_BITS
from .supports import Channel

Pairs = Mapping[int, Fraction]  # key to position


class KeyChannel(NamedTuple):
    """Chances that a report supports (key, sign), given which pair was sampled."""

    same: Fraction  # the pair itself
    opposite: Fraction  # its key with the other sign
    foreign: Fraction  # another key, or a dummy


class _Moments(NamedTuple):
    """Unbiased *holders* and *lean* (sum over holders of 2 position/top - 1), with covariances."""

    holders: Array
    lean: Array
    holders_variance: Array
    lean_variance: Array
    covariance: Array


@dataclass(frozen=True, init=False)
class KeyValueMechanism(RatioMechanism[Pairs]):
    """A mechanism over mappings of keys 0 … domain_size - 1 to positions in [0, top].

    Tally: the reports that support (key, plus), then those that support (key, minus), each of
    shape (domain_size,).  Debiased, in the same shape: the devices that hold each key, then the
    sums of their positions.  Both are unbiased if no device holds more than ``pad`` pairs; of
    larger mappings every pair counts for less than one, pad / size.
    """

    pad: int
    top: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        pad: int | None = None,
        top: int = 1,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take *domain_size* keys, mappings of up to *pad* pairs, and positions up to *top*.

        By default there is a slot for every key, so that no mapping counts for less than it holds.
        """
        self.prepare(epsilon, domain_size, precision)
        self.fix("pad", domain_size if pad is None else pad, least=1, most=domain_size)
        self.fix("top", top, least=1, most=MAX_DOMAIN_SIZE - 1)
        self.validate()

    @property
    @abstractmethod
    def channel(self) -> KeyChannel:
        """The exact probabilities of support, read by device and collector alike."""

    @property
    @abstractmethod
    def most_supports(self) -> int:
        """The most keys that one report supports."""

    @abstractmethod
    def supports(self, payload: bytes) -> tuple[int, ...]:
        """Return the cells of the tally that a valid payload adds 1 to."""

    def validate(self) -> None:
        """Refuse a channel that tells no keys, or signs, apart, or spends more than epsilon."""
        same, opposite, foreign = self.channel
        apart = foreign > 0 and 0 < opposite < same and same + opposite > 2 * foreign
        if not (apart and same + opposite <= 1):
            raise self.no_channel()
        super().validate()

    def draw_pair(self, value: Pairs, randomness: Randomness) -> tuple[int, bool]:
        """Return a sampled key and whether its sign is plus; keys from domain_size are dummies.

        Raises: InvalidValueError: not a mapping of keys to positions; nothing was drawn.
        """
        self.require_value(value)
        place = randomness.uniform(max(len(value), self.pad))
        if place >= len(value):
            return self.domain_size + place - len(value), True
        key = sorted(value)[place]
        position = value[key]
        return key, randomness.bernoulli_ratio(position.numerator, position.denominator * self.top)

    def require_value(self, value: Pairs) -> None:
        """Raise InvalidValueError unless *value* maps keys to positions.  It is never shown."""
        if not isinstance(value, Mapping) or not all(
            type(key) is int
            and 0 <= key < self.domain_size
            and type(position) in (Fraction, int)
            and 0 <= position <= self.top
            for key, position in value.items()
        ):
            rule = f"must be a mapping of keys below {self.domain_size} to positions up to "
            raise InvalidValueError(self.name, f"{rule}{self.top}")

    @property
    def tally_size(self) -> int:
        """Two cells a key: plus and minus."""
        return 2 * self.domain_size

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Sum the supports of every payload."""
        cells = np.zeros(self.tally_size, dtype=np.int64)
        for payload in self.split(payloads):
            cells[list(self.supports(payload))] += 1
        return cells

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return holders of each key, then sums of their positions; shape (2 * domain_size,).

        Derived: a holder is sampled at the key with chance 1/pad, so it supports the key with
        s = held/pad + (1-1/pad) 2 foreign, held = same + opposite, others with 2 foreign; and
        E[plus - minus] = (same-opposite)/pad (2x-1) for a holder at x of the range.  The position
        is top (1 + lean)/2 a holder.  Variances are those of these coins for a fixed population,
        with the holders, clipped to [0, n], plugged in, and of the squares of the leans the least
        that their sum allows (Cauchy-Schwarz): exact for holders of one value, else too much.
        """
        moments = self._moments(tally, n, np)
        sums = (moments.holders + moments.lean) * self.top / 2
        spread = moments.holders_variance + moments.lean_variance + 2 * moments.covariance
        return Debiased(
            np.concatenate([moments.holders, sums]),
            np.concatenate([moments.holders_variance, spread * self.top**2 / 4]),
        )

    def means(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the mean position among the holders of each key; shape (domain_size,).

        A ratio of two estimates, with the variance of the delta method; it is nearly unbiased once
        the holders are many standard errors.  A key without an estimated holder has NaN.
        """
        moments = self._moments(tally, n, np)
        holders = np.where(moments.holders > 0, moments.holders, np.nan)
        ratio = np.clip(moments.lean / holders, -1, 1)
        level, slope = self.ratio_variance(np.minimum(holders, n), n)
        half = self.top / 2
        return Debiased(half * (1 + ratio), half**2 * (level + slope * ratio**2) / holders**2)

    def ratio_variance(self, holders: Array, n: int) -> tuple[Array, Array]:
        """Return a and b: if all *holders* lean by r, Var(lean - r holders) = a + b r^2.

        Here lean and holders on the left are their unbiased estimates, so their difference has
        expectation 0.  Holders who differ, with the mean r, have a smaller variance.
        Derived: from the variances and the covariance of ``debias``, where r's first power cancels.
        """
        noise, gap = float(self.holding.q), float(self.holding.p - self.holding.q)
        level = (n * noise + holders * gap) / float(self.gain) ** 2
        return level, n * noise * (1 - noise) / gap**2 - holders / gap

    def predict(self, n: int) -> float:
        """Return the root mean square over keys of the standard error of the share of holders.

        Derived: the mean over keys of Var/n^2 if every device holds ``pad`` pairs.
        """
        p, q = float(self.holding.p), float(self.holding.q)
        share = self.pad / self.domain_size
        per_report = share * p * (1 - p) + (1 - share) * q * (1 - q)
        return math.sqrt(per_report / n) / (p - q)

    def predict_mean(self, n: int, share: float) -> float:
        """Return the standard error of a key's mean as a part of the range; the worst case.

        Args:    share: of the devices that hold the key.
        Derived: the delta method where all holders are in the middle of the range.
        """
        level, _ = self.ratio_variance(share * n, n)
        return math.sqrt(level) / (share * n) / 2

    @cached_property
    def holding(self) -> Channel:
        """The chances that a report supports a key, with either sign: of a holder, of another."""
        same, opposite, foreign = self.channel
        held = (same + opposite + (self.pad - 1) * 2 * foreign) / self.pad
        return Channel(held, 2 * foreign)

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return what a report stands for that lacks a key, and one that supports it."""
        p, q = float(self.holding.p), float(self.holding.q)
        return Reach(-q / (p - q), (1 - q) / (p - q))

    @cached_property
    def gain(self) -> Fraction:
        """What a holder at the top adds to the expectation of plus less minus."""
        return (self.channel.same - self.channel.opposite) / self.pad

    def _moments(self, tally: Array, n: int, np: Numpy) -> _Moments:
        cells = self.require_tally(tally, n, np)
        low, high = int(cells.min()), int(cells.max())
        plus, minus = cells[: self.domain_size], cells[self.domain_size :]
        if low < 0 or high > n or (plus + minus).max() > n or cells.sum() > n * self.most_supports:
            raise InvalidTallyError(f"tally: must be counts that n={n} reports can give")
        held, noise = float(self.holding.p), float(self.holding.q)
        gain = float(self.gain)
        holders = (plus + minus - n * noise) / (held - noise)
        lean = (plus - minus) / gain
        likely = np.clip(holders, 0, n)
        bounded_lean = np.clip(lean, -likely, likely)
        squares = bounded_lean**2 / np.maximum(likely, np.finfo(float).tiny)
        coins = likely * held * (1 - held) + (n - likely) * noise * (1 - noise)
        signs = likely * held + (n - likely) * noise - gain**2 * squares
        shared = gain * (1 - held) * bounded_lean
        return _Moments(
            holders,
            lean,
            coins / (held - noise) ** 2,
            signs / gain**2,
            shared / (held - noise) / gain,
        )
