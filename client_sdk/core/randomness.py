"""The only source of randomness: exact integer primitives over a byte source.

The byte source is ``os.urandom`` by default.  There is no user-space buffer, so a fork or a cloned
process can never repeat a draw, and no fallback: if the source fails, nothing is drawn.

Every primitive is exact: its output law is the stated fraction, not an approximation of it.
The bytes that a primitive reads are specified here, because test vectors and permanent responses
depend on them:

* ``uniform(n)`` reads ``ceil(k / 8)`` bytes, k = bit length of n - 1, as a big-endian integer,
  drops the lowest ``8 * ceil(k / 8) - k`` bits, and starts again while the result is n or more.
* ``bernoulli(p)`` is ``uniform(denominator) < numerator`` of p in lowest terms.
* ``bernoulli_bits(p, n)`` reads one n-bit word (as above) for every binary digit of p, first digit
  first, until all n comparisons are decided.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from .errors import EntropyError, InvalidParameterError
from .typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fractions import Fraction


class Randomness(Protocol):
    """What a mechanism may draw.  A mechanism has no other access to chance."""

    def bernoulli(self, p: Fraction) -> bool:
        """Return True with probability exactly *p*."""

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        """Return True with probability numerator / denominator, without building a Fraction."""

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        """Return n independent bits, each 1 with probability exactly *p*, as one integer."""

    def uniform(self, n: int) -> int:
        """Return an integer in [0, n), each with probability exactly 1/n."""


def draw_bytes(randomness: Randomness, size: int) -> bytes:
    """Return *size* bytes, each string of them with the same probability."""
    return randomness.uniform(1 << (8 * size)).to_bytes(size, "big")


class ByteRandomness:
    """The primitives over a byte source ``read(count) -> bytes``."""

    def __init__(self, read: Callable[[int], bytes] = os.urandom) -> None:
        """Draw from *read*, which must return exactly the number of bytes asked for."""
        self._read = read

    def uniform(self, n: int) -> int:
        """Return an integer in [0, n) by rejection; 2 reads at most on average.

        Raises: InvalidParameterError: n is below 1; it is not shown, as it may come from a value.
                EntropyError: the byte source failed.
        """
        if n < 1:
            raise InvalidParameterError("n", "...", "must be at least 1")
        bits = (n - 1).bit_length()
        size = (bits + 7) >> 3
        excess = (size << 3) - bits
        while True:
            drawn = int.from_bytes(self._bytes(size), "big") >> excess
            if drawn < n:
                return drawn

    def bernoulli(self, p: Fraction) -> bool:
        """Return True with probability exactly *p*."""
        return self.uniform(p.denominator) < p.numerator

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        """Return True with probability exactly numerator / denominator."""
        return self.uniform(denominator) < numerator

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        """Return n independent bits by comparing n uniform numbers with *p*, digit by digit.

        All comparisons advance together: bit i of each random word is the next binary digit of the
        i-th uniform number.  A comparison closes at the first digit that differs from p's, so about
        log2(n) + 2 words are read.
        """
        size = (n + 7) >> 3
        excess = (size << 3) - n
        remainder, denominator = p.numerator, p.denominator
        still_open, below = (1 << n) - 1, 0
        while still_open and remainder:
            word = int.from_bytes(self._bytes(size), "big") >> excess
            remainder <<= 1
            if remainder >= denominator:
                remainder -= denominator
                below |= still_open & ~word
                still_open &= word
            else:
                still_open &= ~word
        return below  # a comparison still open equals p in every digit, so it is not below p

    def _bytes(self, size: int) -> bytes:
        try:
            drawn = self._read(size)
        except Exception as error:
            raise EntropyError("the byte source failed; no report was made") from error
        if len(drawn) != size:
            raise EntropyError("the byte source came up short; no report was made")
        return drawn


def system_randomness() -> ByteRandomness:
    """Return the primitives over the operating system's entropy."""
    return ByteRandomness(os.urandom)
