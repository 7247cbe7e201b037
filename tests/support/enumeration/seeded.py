"""Seeded randomness for tests and vectors.  It never ships: a device draws from the system only.

For an SDK in another language, the bytes are these.  The stream is SHAKE-256(seed), the seed being
the raw bytes, squeezed from its first byte on and read in order, no byte twice.  On top of it:

* ``uniform(n)``: k = bit length of n - 1.  Read ceil(k / 8) bytes as one big-endian integer (none
  if k = 0), shift it right by 8 * ceil(k / 8) - k bits, and accept it if it is below n; otherwise
  read the next bytes and try again.
* ``bernoulli(a / b)``, in lowest terms: ``uniform(b) < a``.
* ``bernoulli_ratio(a, b)``: ``uniform(b) < a`` with a and b as they come, not reduced.
* ``bernoulli_bits(a / b, n)``: for each binary digit of a / b after the point, first digit first,
  read ceil(n / 8) bytes as one big-endian integer and shift it right by 8 * ceil(n / 8) - n bits.
  Where the digit is 1, comparisons still open whose bit is 0 close as 1 (below) and the others stay
  open; where it is 0, those whose bit is 1 close as 0.  Stop when none is open, or when all further
  digits are 0; what is open then is 0.
"""

from __future__ import annotations

import hashlib

from client_sdk.core.randomness import ByteRandomness


class ShakeStream:
    """SHAKE-256 of a seed, read like a file."""

    def __init__(self, seed: bytes) -> None:
        self._shake = hashlib.shake_256(seed)
        self._squeezed = b""
        self._position = 0

    def read(self, count: int) -> bytes:
        """Return the next *count* bytes."""
        end = self._position + count
        if end > len(self._squeezed):
            self._squeezed = self._shake.digest(max(2 * end, 1024))  # hashlib squeezes from 0 only
        start, self._position = self._position, end
        return self._squeezed[start:end]


class SeededRandomness(ByteRandomness):
    """The primitives of ``client_sdk.core.randomness`` over SHAKE-256(seed)."""

    def __init__(self, seed: bytes) -> None:
        """Start a new stream."""
        super().__init__(ShakeStream(seed).read)
