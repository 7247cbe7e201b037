"""Reports of one bit an item: how they are laid out, checked and added up.

Bit i, counted from the highest bit of the first byte, is item i.  The low bits of the last byte
that belong to no item are 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ..core.errors import InvalidParameterError
from ..core.typing import ClassVar, Final
from .base import Array, Coins, NoiseLaw, Numpy
from .exact import flip_chance
from .frequency import FrequencyOracle, PairLaw
from .supports import Channel

MAX_ITEMS: Final = 1 << 16  # items; a report of 8 KiB, six of which fill a device's upload
BLOCK: Final = 255  # reports; so many bits add up in a byte, and numpy adds bytes fastest
CHUNK: Final = 1 << 22  # bits unpacked at once, one byte each: 4 MiB, whatever the column


class BitReports(FrequencyOracle):
    """A frequency oracle whose report is one bit an item, supporting the items whose bit is 1."""

    def validate(self) -> None:
        """Refuse reports too long to send."""
        if self.domain_size > MAX_ITEMS:
            rule = f"must be at most {MAX_ITEMS}, as a report has one bit an item"
            raise InvalidParameterError("domain_size", self.domain_size, rule)
        super().validate()

    def one_hot(self, item: int) -> int:
        """Return the bits of *item* alone, as an integer of domain_size bits."""
        return 1 << (self.domain_size - 1 - item)

    def pack(self, bits: int) -> bytes:
        """Return *bits*, an integer of domain_size bits, as a payload."""
        return (bits << self._padding).to_bytes(self.payload_size, "big")

    @cached_property
    def payload_size(self) -> int:
        """One bit an item, in whole bytes."""
        return (self.domain_size + 7) // 8

    def reason(self, payload: bytes) -> str | None:
        """Refuse bits that belong to no item."""
        return "bits_beyond_domain" if payload[-1] & self._beyond else None

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Look at the last byte of every report of the column."""
        last = np.frombuffer(payloads, dtype=np.uint8)[self.payload_size - 1 :: self.payload_size]
        return {"bits_beyond_domain": (last & self._beyond) != 0}

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items whose bit is 1."""
        bits = int.from_bytes(payload, "big") >> self._padding
        last = self.domain_size - 1
        return (item for item in range(self.domain_size) if bits >> (last - item) & 1)

    @property
    def fold_steps(self) -> int:
        """Every item has a bit."""
        return self.domain_size

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Add up the bits of the whole column."""
        return column_sums(payloads, self.payload_size, np)[: self.domain_size]

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every report has one bit of chance p and the others of chance q, on their own."""
        p, q = self.chances
        return NoiseLaw(Coins(tally.sum(axis=-1), p, q, self.domain_size - 1), lowest=q)

    def pair_law(self) -> PairLaw | None:
        """Bits are independent."""
        p, q = self.chances
        return PairLaw(p * q, q * q)

    def require_whole(self, tally: Array, n: int, np: Numpy) -> None:
        """Bits add up to nothing: any counts up to n will do."""
        self.debias(tally, n, np)

    @cached_property
    def _padding(self) -> int:
        """Low bits of the last byte that belong to no item."""
        return 8 * self.payload_size - self.domain_size

    @property
    def _beyond(self) -> int:
        """The mask of these bits."""
        return (1 << self._padding) - 1


def column_sums(payloads: bytes, payload_size: int, np: Numpy) -> Array:
    """Return how many payloads have each bit, highest first, in chunks of bounded memory."""
    rows = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, payload_size)
    cells = np.zeros(8 * payload_size, dtype=np.int64)
    step = max(CHUNK // (BLOCK * cells.size), 1) * BLOCK  # rows, in whole blocks
    for start in range(0, len(rows), step):
        bits = np.unpackbits(rows[start : start + step], axis=1)
        whole = len(bits) - len(bits) % BLOCK
        blocks = bits[:whole].reshape(-1, BLOCK, cells.size).sum(axis=1, dtype=np.uint8)
        cells += blocks.sum(axis=0, dtype=np.int64)
        cells += bits[whole:].sum(axis=0, dtype=np.int64)
    return cells


class FlippedBits(FrequencyOracle):
    """Bits that are each flipped with one chance; two values differ in ``differing`` of them."""

    constants: ClassVar[tuple[str, ...]] = ("flip",)

    @property
    def differing(self) -> int:
        """In how many bits of a report two values can differ."""
        return 2

    @cached_property
    def flip(self) -> Fraction:
        """q, rounded up to the grid."""
        return flip_chance(self.epsilon / self.differing, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """The chances that a bit is 1: of the item's, and of another."""
        return Channel(1 - self.flip, self.flip)

    @property
    def likelihood_ratio(self) -> Fraction:
        """p/q, to the power of the bits that differ."""
        return (self.channel.p / self.channel.q) ** self.differing
