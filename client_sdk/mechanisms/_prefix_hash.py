"""Hash functions of strings and their prefixes, one a level and row, for device and collector.

A string is read as symbols: its bytes plus 1, and END after the last.  Row r has the fingerprint
h = 0, then (h·a + symbol) mod P for every symbol, P = 2^31 - 1.  Level l sends it to the column
⌊(((h + b)·h + c) mod P)·m / 2^31⌋ of m.  a is the first 8 bytes, big-endian, of
SHA-256("hearsay prefix" ‖ r as 4 bytes), modulo P; b and c are the second and third 8 bytes of
SHA-256("hearsay prefix" ‖ r as 4 bytes ‖ l + 1 as 4 bytes), modulo P.

Two different sequences of at most s symbols have the same fingerprint for at most s of the P values
of a.  If they have not, their columns are independent over the choice of b and c, and uniform but
for a part m/P, as P is no multiple of m.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ._base import Array
from ._text import END

BITS: Final = 31
PRIME: Final = (1 << BITS) - 1
_PUBLIC: Final = b"hearsay prefix"


def symbols(text: bytes, length: int) -> list[int]:
    """Return the first *length* symbols of *text*, fewer if it ends before."""
    return [*(byte + 1 for byte in text[:length]), *((END,) if len(text) < length else ())]


def fingerprint(row: int, sequence: Iterable[int]) -> int:
    """Return the fingerprint of a *sequence* of symbols."""
    factor, found = _factor(row), 0
    for symbol in sequence:
        found = (found * factor + symbol) % PRIME
    return found


def column_of(level: int, row: int, found: int, columns: int) -> int:
    """Return the column of a fingerprint."""
    shift, offset = _mixing(level, row)
    return ((found + shift) * found + offset) % PRIME * columns >> BITS


def joined(row: int, found: Array, tails: Array, length: int) -> Array:
    """Return the fingerprints of prefixes with further symbols.

    Args: found: of the prefixes.  tails: of the further symbols alone, *length* each; of shapes
          that fit each other.
    """
    return modulo_prime(found * pow(_factor(row), length, PRIME) + tails)


def columns_of(level: int, row: int, found: Array, columns: int) -> Array:
    """Return the columns of fingerprints, int64, of any shape."""
    shift, offset = _mixing(level, row)
    return modulo_prime((found + shift) * found + offset) * columns >> BITS


def modulo_prime(numbers: Array) -> Array:
    """Return int64 *numbers* below 2^63 modulo P: 2^31 is 1 there, so halves are added."""
    once = (numbers & PRIME) + (numbers >> BITS)
    twice = (once & PRIME) + (once >> BITS)
    return twice - PRIME * (twice >= PRIME)


@lru_cache(maxsize=1 << 8)
def _factor(row: int) -> int:
    digest = hashlib.sha256(_PUBLIC + row.to_bytes(4, "big")).digest()
    return int.from_bytes(digest[:8], "big") % PRIME


@lru_cache(maxsize=1 << 12)
def _mixing(level: int, row: int) -> tuple[int, int]:
    place = row.to_bytes(4, "big") + (level + 1).to_bytes(4, "big")
    digest = hashlib.sha256(_PUBLIC + place).digest()
    shift, offset = (int.from_bytes(digest[8 * i : 8 * i + 8], "big") % PRIME for i in (1, 2))
    return shift, offset
