"""RAPPOR: a Bloom filter of the item, noise that a device keeps, and fresh noise on top.

Source: Erlingsson, Pihur, Korolova, *RAPPOR*, CCS 2014: permanent (f) and instantaneous (p, q)
    responses, cohorts, decoding by regression.  The bits of an item are our own.
Proof: the cohort is drawn without looking at the item.  Given it, a bit that is 1 is sent as 1 with
    q* = f(p+q)/2 + (1-f)q and one that is 0 with p* = f(p+q)/2 + (1-f)p, bits on their own.  The
    filters of two items differ in at most h bits each way, so the ratio of a report is at most
    (q*(1-p*) / (p*(1-q*)))^h, and that of all reports of one value, being made from its permanent
    bits, ((2-f)/f)^(2h).  The solved p is rounded up and q = 1-p, which lowers the ratio.

Decoding is least squares with coefficients that may not be negative: Lawson, Hanson, *Solving Least
Squares Problems*, 1974, the active set method, here on the normal equations.

The SDK sends first reports only, by ``randomize``; ``respond`` is for devices that keep the
permanent bits.

By default f and p = 1-q are solved for ``epsilon`` of one report and ε∞ of ``permanent_percent``
hundredths of it: p* = 1/(e^(ε/2h)+1), f/2 = 1/(e^(ε∞/2h)+1).  A classical deployment is stated by
``f_mille``, ``p_mille``, ``q_mille`` instead, thousandths each.

Bit i < h of an item in a cohort is number i of SHA-256("hearsay rappor" ‖ cohort ‖ item) modulo m;
cohort, item and the numbers are 4 bytes, big-endian.  A report is the cohort, one byte, and m bits.

Draws: uniform(cohorts); bits(flip, m) flip the filter; bits(p, m) are what zeros send; what ones
    send is its complement if p + q = 1, else bits(q, m).  ``rates`` are p and q.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property, lru_cache

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError, InvalidTallyError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import Array, Debiased, Draws, EpsilonLike, NoiseLaw, Numpy
from ..exact import THRESHOLD_BITS, ceil_to_grid, exp_floor, flip_chance, ln_ceil
from ..frequency import FrequencyOracle, ItemMechanism
from ..supports import Channel

_TOLERANCE: Final = 1e-10  # of the largest moment; below it a gradient is rounding
_RIDGE: Final = 1e-12  # of the largest norm; shared out where two candidates are the same
_ROUNDS: Final = 3  # times the columns; the method rarely needs more than one

MAX_ITEMS: Final = 4096  # candidates of a regression; its normal equations fill 128 MiB
MOST: Final = {"bits": 4096, "hashes": 8, "cohorts": 256, "permanent_percent": 400}
LEAST: Final = {"bits": 2, "hashes": 1, "cohorts": 1, "permanent_percent": 101}
MILLE: Final = 1000
_PUBLIC: Final = b"hearsay rappor"


def regress(cells: Array, design: Array, channel: Channel, np: Numpy) -> Debiased:
    """Regress debiased bits on candidates.

    Args: cells: reports and ones, shape (cohorts, 1 + bits).
          design: which bits each candidate has, shape (cohorts, bits, candidates).
    """
    p, q = float(channel.p), float(channel.q)
    reports = cells[:, :1].astype(float)
    held = ((cells[:, 1:] - q * reports) / (p - q)).reshape(-1)
    share = (reports / max(float(reports.sum()), 1.0))[:, :, None]
    rows = (share * design).reshape(held.size, -1)
    gram, moments = rows.T @ rows, rows.T @ held
    totals = nnls(gram, moments, np)
    ones = np.clip(held.reshape(cells[:, 1:].shape), 0, reports)
    noise = (ones * p * (1 - p) + (reports - ones) * q * (1 - q)) / (p - q) ** 2
    weighted = rows.T @ (noise.reshape(-1, 1) * rows)
    size = np.maximum(np.diag(gram), np.finfo(float).tiny)
    variances = np.diag(weighted) / size**2
    chosen = np.flatnonzero(totals > 0)
    inverse = np.linalg.pinv(gram[np.ix_(chosen, chosen)])
    variances[chosen] = np.diag(inverse @ weighted[np.ix_(chosen, chosen)] @ inverse)
    return Debiased(totals, variances)


def nnls(gram: Array, moments: Array, np: Numpy) -> Array:
    """Return x >= 0 that minimizes |Ax - y|^2, given AᵀA and Aᵀy.

    Args: gram: shape (k, k).  moments: shape (k,).
    """
    k = len(moments)
    x, free = np.zeros(k), np.zeros(k, dtype=bool)
    least = _TOLERANCE * np.abs(moments).max(initial=0)
    for _ in range(_ROUNDS * k):
        gradient = np.where(free, -np.inf, moments - gram @ x)
        best = int(gradient.argmax())
        if gradient[best] <= least:
            break
        free[best] = True
        x = _descend(x, free, gram, moments, np)
    return x


def _descend(x: Array, free: Array, gram: Array, moments: Array, np: Numpy) -> Array:
    """Return the best x over the *free* columns, fixing at 0 those that would turn negative."""
    ridge = _RIDGE * float(gram.diagonal().max())
    while True:
        chosen = np.flatnonzero(free)
        target = np.zeros_like(x)
        system = gram[np.ix_(chosen, chosen)]
        system[np.diag_indices(len(chosen))] += ridge
        target[chosen] = np.linalg.solve(system, moments[chosen])
        negative = free & (target <= 0)
        if not negative.any():
            return target
        steps = x[negative] / (x[negative] - target[negative])
        x = x + min(steps.min(), 1.0) * (target - x)
        stuck = negative & (x <= x[negative].min())
        free[stuck] = False
        x[stuck] = 0.0


class TwoRounds(ItemMechanism):
    """A mechanism whose first report draws what later reports of the device reuse."""

    @abstractmethod
    def report(
        self,
        value: int,
        joining: Randomness,
        memo: Callable[[bytes], Randomness],
        fresh: Randomness,
    ) -> bytes:
        """Return a report of *value*, an item.

        Args: joining: for what a device draws once, whatever its values.
              memo: the permanent randomness for a key.  fresh: the system's randomness.
        """

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the first report of a device: everything is drawn now."""
        self.require_value(value)
        return self.report(value, randomness, lambda _: randomness, randomness)

    def respond(self, value: int, memo: Callable[[bytes], Randomness], fresh: Randomness) -> bytes:
        """Return any report of a device.

        Args:   memo: the permanent randomness for a key, e.g. ``permanent_randomness`` with the
                device's secret and the metric's digest; the empty key is for joining.
                fresh: the system's randomness.
        Raises: InvalidValueError: *value* is outside the domain; nothing was drawn.
        """
        self.require_value(value)
        return self.report(value, memo(b""), memo, fresh)


@dataclass(frozen=True, init=False)
class RAPPOR(TwoRounds, FrequencyOracle):
    """Bloom RAPPOR.  A tally is, cohort by cohort, the reports and the ones of each bit."""

    name: ClassVar[str] = "rappor"
    automatic: ClassVar[bool] = False  # for comparison and migration
    pure: ClassVar[bool] = False
    unbiased: ClassVar[bool] = False  # counts are not negative
    constants: ClassVar[tuple[str, ...]] = ("flip", "rates")

    bits: int
    hashes: int
    cohorts: int
    permanent_percent: int
    f_mille: int
    p_mille: int
    q_mille: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        bits: int = 128,
        hashes: int = 2,
        cohorts: int = 8,
        permanent_percent: int = 200,
        f_mille: int = 0,
        p_mille: int = 0,
        q_mille: int = 0,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take filters of *bits* bits, or a classical deployment's f, p and q if q is given."""
        self.prepare(epsilon, domain_size, precision)
        if domain_size > MAX_ITEMS:
            rule = f"must be at most {MAX_ITEMS}, the candidates of a regression"
            raise InvalidParameterError("domain_size", domain_size, rule)
        own = {"bits": bits, "hashes": hashes, "cohorts": cohorts}
        own |= {"permanent_percent": permanent_percent}
        rates = {"f_mille": f_mille, "p_mille": p_mille, "q_mille": q_mille}
        for name, number in (own | rates).items():
            self.fix(name, number, least=LEAST.get(name, 0), most=MOST.get(name, MILLE - 1))
        self.validate()

    @property
    def is_classical(self) -> bool:
        """Whether f, p and q are given rather than solved for."""
        return self.q_mille > 0

    @cached_property
    def flip(self) -> Fraction:
        """f/2, the chance that a permanent bit is not the filter's."""
        if self.is_classical:
            return Fraction(self.f_mille, 2 * MILLE)
        whole = self.epsilon * self.permanent_percent / 100
        return flip_chance(whole / (2 * self.hashes), self.precision)

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The chances p and q that a permanent 0, and a permanent 1, is sent as 1."""
        if self.is_classical:
            return Fraction(self.p_mille, MILLE), Fraction(self.q_mille, MILLE)
        if 2 * self.flip >= 1:
            return self.flip, self.flip  # validate refuses permanent bits that say nothing
        goal = 1 / (exp_floor(self.epsilon / (2 * self.hashes)) + 1)
        least = max(
            (goal - self.flip) / (1 - 2 * self.flip), Fraction(0)
        )  # the rounding of a coarse grid can pass it
        p = ceil_to_grid(least, self.precision)
        return p, 1 - p

    @cached_property
    def channel(self) -> Channel:
        """q* and p*: the chances of a 1 for a bit that is 1 and for one that is 0."""
        (p, q), flip = self.rates, self.flip
        return Channel(flip * p + (1 - flip) * q, flip * q + (1 - flip) * p)

    @property
    def likelihood_ratio(self) -> Fraction:
        """(q*(1-p*) / (p*(1-q*)))^h."""
        p, q = self.channel.p, self.channel.q
        return (p * (1 - q) / (q * (1 - p))) ** self.hashes

    @cached_property
    def spent_value(self) -> Fraction | None:
        """What all reports of one value cost, in nats; None, without bound, if f = 0."""
        if not self.flip:
            return None
        return ln_ceil(((1 - self.flip) / self.flip) ** (2 * self.hashes))

    def filter_of(self, cohort: int, item: int) -> frozenset[int]:
        """Return the bits of *item* in *cohort*, at most h."""
        return _filter(cohort, item, self.bits, self.hashes)

    def report(
        self,
        value: int,
        joining: Randomness,
        memo: Callable[[bytes], Randomness],
        fresh: Randomness,
    ) -> bytes:
        """Return the cohort, and the permanent bits sent with fresh noise."""
        cohort = joining.uniform(self.cohorts)
        bloom = sum(1 << (self.bits - 1 - bit) for bit in self.filter_of(cohort, value))
        permanent = bloom ^ memo(value.to_bytes(4, "big")).bernoulli_bits(self.flip, self.bits)
        p, q = self.rates
        zeros = fresh.bernoulli_bits(p, self.bits)  # symmetric noise needs one draw only
        ones = zeros ^ ((1 << self.bits) - 1) if p + q == 1 else fresh.bernoulli_bits(q, self.bits)
        sent = (permanent & ones) | (~permanent & zeros)
        return bytes([cohort]) + (sent << self._padding).to_bytes(self.payload_size - 1, "big")

    @property
    def payload_size(self) -> int:
        """A byte for the cohort, and the bits."""
        return 1 + (self.bits + 7) // 8

    @property
    def _padding(self) -> int:
        return -self.bits % 8

    def reason(self, payload: bytes) -> str | None:
        """Refuse a cohort that does not exist, and bits beyond the filter."""
        if payload[0] >= self.cohorts:
            return "cohort_out_of_range"
        return "bits_beyond_filter" if payload[-1] & ((1 << self._padding) - 1) else None

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Look at the first and the last byte of every report."""
        rows = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, self.payload_size)
        beyond = (rows[:, -1] & ((1 << self._padding) - 1)) != 0
        return {"cohort_out_of_range": rows[:, 0] >= self.cohorts, "bits_beyond_filter": beyond}

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items all of whose bits are 1."""
        sent = int.from_bytes(payload[1:], "big") >> self._padding
        ones = {bit for bit in range(self.bits) if sent >> (self.bits - 1 - bit) & 1}
        return (x for x in range(self.domain_size) if self.filter_of(payload[0], x) <= ones)

    @property
    def tally_size(self) -> int:
        """For each cohort its reports and the ones of each bit."""
        return self.cohorts * (self.bits + 1)

    @property
    def fold_steps(self) -> int:
        """Every bit of the filter is counted."""
        return self.bits

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Count the ones of each bit, cohort by cohort."""
        rows = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, self.payload_size)
        cells = np.zeros((self.cohorts, self.bits + 1), dtype=np.int64)
        for cohort in range(self.cohorts):
            own = rows[rows[:, 0] == cohort, 1:]
            cells[cohort, 0] = len(own)
            cells[cohort, 1:] = np.unpackbits(own, axis=1).sum(axis=0, dtype=np.int64)[: self.bits]
        return cells.reshape(-1)

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the counts of least squares that are not negative, and their variances.

        The variances are those of least squares over the items that came out above 0, as if that
        choice had been made beforehand; for the others, of the item alone.  An interval from them
        covers the noise of the bits.  It does not cover the choice of items, holders spread
        unevenly over cohorts, or values outside the domain, and counts at 0 are biased upwards.
        """
        cells = self.require_tally(tally, n, np).reshape(self.cohorts, self.bits + 1)
        reports = cells[:, :1]
        if cells.min() < 0 or (cells > np.clip(reports, 0, n)).any() or reports.sum() != n:
            raise InvalidTallyError(f"tally: must be the cohorts and bits of n={n} reports")
        return regress(cells, self.design(np), self.channel, np)

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every device draws its cohort evenly."""
        counts = tally.reshape(*tally.shape[:-1], self.cohorts, -1)[..., 0]
        return NoiseLaw(draws=Draws(counts, 1 / self.cohorts))

    def design(self, np: Numpy) -> Array:
        """Return which bits each item has: shape (cohorts, bits, domain_size)."""
        matrix = np.zeros((self.cohorts, self.bits, self.domain_size))
        for cohort in range(self.cohorts):
            for item in range(self.domain_size):
                matrix[cohort, list(self.filter_of(cohort, item)), item] = 1
        return matrix

    def predict(self, n: int) -> float:
        """Return the standard error of a share, of an item that shares no bit with another.

        Derived: mean of c·h bits, each with variance (n/c) p*(1-p*)/(q*-p*)^2 for n/c reports.
        """
        p, q = float(self.channel.p), float(self.channel.q)
        return math.sqrt(q * (1 - q) / (self.hashes * n)) / (p - q)


@lru_cache(maxsize=1 << 12)
def _filter(cohort: int, item: int, bits: int, hashes: int) -> frozenset[int]:
    digest = hashlib.sha256(_PUBLIC + cohort.to_bytes(4, "big") + item.to_bytes(4, "big")).digest()
    numbers = (int.from_bytes(digest[4 * i : 4 * i + 4], "big") for i in range(hashes))
    return frozenset(number % bits for number in numbers)


MECHANISM: Final = RAPPOR
