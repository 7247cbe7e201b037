"""dBitFlip: of d items drawn at random, say of each whether it is the true one, with noise.

Source: Ding, Kulkarni, Yekhanin, *Collecting Telemetry Data Privately*, NeurIPS 2017 (dBitFlip);
    its buckets are our items.
Proof: the d items are drawn without looking at the true one.  Given them, the report is d bits on
    their own, each kept with probability p and flipped with q = 1-p, and the bits of two values
    differ in at most two places, so the ratio is at most (p/q)^2; with d = 1 in one, p/q.  q is
    1/(√e^ε+1), or 1/(e^ε+1) for d = 1, rounded up to the grid.

A report is d pairs of an item, in rising order, and a bit: 2·item + bit, in 1 to 4 bytes.

Derived: with s reports that drew item v, of which c say yes, the estimate (k/d)(c - s q)/(p - q) is
unbiased.  For an item that nobody holds, a report gives it 0 unless it drew the item, hence a
variance of (d/k)(k/d)^2 q(1-q)/(p-q)^2 = (k/d)·√e^ε/(√e^ε-1)^2 a report.  For a holder it is
(k/d)·q(1-q)/(p-q)^2 + k/d - 1: whether it was drawn adds to the noise.

Draws: uniform(j + 1) for j = k - d … k - 1, by Floyd's algorithm; bits(flip, d), of which the
    lowest is of the lowest item.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

from ...core.dataclass import dataclass
from ...core.errors import InvalidTallyError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import (
    Array,
    Debiased,
    Draws,
    EpsilonLike,
    NoiseLaw,
    Numpy,
    Reach,
    column,
    width_of,
)
from ..bits import FlippedBits
from ..exact import THRESHOLD_BITS

_MAX_SAMPLED: Final = 1024  # items of a report
_DEFAULT_SAMPLED: Final = 4


@dataclass(frozen=True, init=False)
class DBitFlip(FlippedBits):
    """Bits of a few random items.  A tally is, for each item, its draws, then its ones."""

    name: ClassVar[str] = "dbitflip"
    automatic: ClassVar[bool] = False  # for comparison and migration
    pure: ClassVar[bool] = False

    sampled: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        sampled: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Draw d = *sampled* items a report; 4, or all of a smaller domain, unless told."""
        self.prepare(epsilon, domain_size, precision)
        count = min(_DEFAULT_SAMPLED, domain_size) if sampled is None else sampled
        self.fix("sampled", count, least=1, most=min(_MAX_SAMPLED, domain_size))
        self.validate()

    @property
    def differing(self) -> int:
        """In how many bits of a report two values can differ."""
        return min(self.sampled, 2)

    @cached_property
    def _width(self) -> int:
        """Bytes of an item and its bit."""
        return width_of(2 * self.domain_size)

    @property
    def payload_size(self) -> int:
        """d times the bytes of an item and its bit."""
        return self.sampled * self._width

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return d fresh items, drawn by Floyd's algorithm, and a noisy bit of each."""
        self.require_value(value)
        drawn: set[int] = set()
        for last in range(self.domain_size - self.sampled, self.domain_size):
            item = randomness.uniform(last + 1)
            drawn.add(last if item in drawn else item)
        flips = randomness.bernoulli_bits(self.channel.q, self.sampled)
        return b"".join(
            (2 * item + ((item == value) ^ (flips >> i & 1))).to_bytes(self._width, "big")
            for i, item in enumerate(sorted(drawn))
        )

    def _cells(self, payload: bytes) -> list[int]:
        width = self._width
        return [
            int.from_bytes(payload[i : i + width], "big") for i in range(0, len(payload), width)
        ]

    def reason(self, payload: bytes) -> str | None:
        """Refuse an item outside the domain, and items that do not rise."""
        items = [cell >> 1 for cell in self._cells(payload)]
        if max(items) >= self.domain_size:
            return "item_out_of_range"
        rising = all(a < b for a, b in pairwise(items))
        return None if rising else "items_not_rising"

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Compare every item of the column with the domain and with its neighbour."""
        items = column(payloads, self._width, np).astype(np.int64).reshape(-1, self.sampled) >> 1
        return {
            "item_out_of_range": (items >= self.domain_size).any(axis=1),
            "items_not_rising": (np.diff(items, axis=1) <= 0).any(axis=1),
        }

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the drawn items whose bit is 1."""
        return [cell >> 1 for cell in self._cells(payload) if cell & 1]

    @property
    def tally_size(self) -> int:
        """Draws and ones of each item."""
        return 2 * self.domain_size

    @property
    def fold_steps(self) -> int:
        """Every drawn item is counted."""
        return self.sampled

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Count the draws and the ones of each item."""
        cells = column(payloads, self._width, np)
        counts = np.bincount(cells, minlength=2 * self.domain_size).reshape(-1, 2)
        return np.concatenate((counts.sum(axis=1), counts[:, 1]))

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Turn draws and ones into unbiased counts and their variances (derived above)."""
        cells = self.require_tally(tally, n, np)
        drawn, ones = cells[: self.domain_size], cells[self.domain_size :]
        if cells.min() < 0 or drawn.max() > n or (ones > drawn).any():
            raise InvalidTallyError(f"tally: must be the draws and ones of n={n} reports")
        if int(drawn.sum()) != n * self.sampled:
            raise InvalidTallyError(f"tally: draws must add up to {self.sampled} times n={n}")
        p, q = self.chances
        spread = self.domain_size / self.sampled
        totals = spread * (ones - q * drawn) / (p - q)
        holders = np.clip(totals, 0, n)
        variances = n * spread * q * (1 - q) / (p - q) ** 2 + holders * (spread - 1)
        return Debiased(totals, variances)

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return what a bit of a drawn item stands for."""
        return self.support_reach.in_unit(self.domain_size / self.sampled)

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every device draws its items evenly."""
        size = self.domain_size
        return NoiseLaw(draws=Draws(tally[..., :size], self.sampled / size))

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share."""
        p, q = float(self.channel.p), float(self.channel.q)
        spread = self.domain_size / self.sampled
        per_report = spread * q * (1 - q) / (p - q) ** 2 + (spread - 1) / self.domain_size
        return math.sqrt(per_report / n)


MECHANISM: Final = DBitFlip
