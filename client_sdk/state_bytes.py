"""Values as bytes of one length for all values of a domain, so that a length says nothing.

Numbers are kept exactly, as long as they fit: every float does, every decimal of a hundred digits,
and sums of them.  What does not fit is rounded to the nearest 2^-64 of a step.  The numbers of
key-values are rounded to the nearest 2^-60 of their range, far below what any report tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .domains import Domain, Encoded
from .permanent import ITEM_SIZE, encode_item

MAX_STATE: Final = 4_096  # bytes; a set of 32,768 items, or 455 keys with numbers

REACH: Final = 64  # bits that a sum may lie outside its range before it is cut off
_DENOMINATOR: Final = 192  # bytes; the smallest float has 135
_NUMERATOR: Final = _DENOMINATOR + (REACH + 24) // 8 + 1  # bytes, signed; domains end at 2^24 steps
_ROUNDED: Final = 1 << 64
_PART: Final = 1 << 60  # of the range of a key's number
_PAIR: Final = 9  # bytes of a key: whether it is held, and its number


def size_of(domain: Domain) -> int:
    """Return the bytes that any value of *domain* takes."""
    sizes = {
        int: ITEM_SIZE,
        frozenset: (domain.size + 7) // 8,
        bytes: 1 + domain.size,
        Mapping: _PAIR * domain.size,
        Fraction: _NUMERATOR + _DENOMINATOR,
    }
    return sizes[domain.encodes]


def dump(domain: Domain, encoded: Encoded) -> bytes:
    """Return *encoded*, a value of *domain* or a number near its range, as ``size_of`` bytes."""
    if isinstance(encoded, frozenset):
        return sum(1 << item for item in encoded).to_bytes(size_of(domain), "big")
    if isinstance(encoded, bytes):
        return (bytes([len(encoded)]) + encoded).ljust(size_of(domain), b"\0")
    if isinstance(encoded, Mapping):
        return b"".join(_pair(encoded.get(key)) for key in range(domain.size))
    if domain.encodes is int:
        return encode_item(int(encoded))
    number = bounded(Fraction(encoded))
    top = number.numerator.to_bytes(_NUMERATOR, "big", signed=True)
    return top + number.denominator.to_bytes(_DENOMINATOR, "big")


def load(domain: Domain, data: bytes) -> Encoded:
    """Return what was dumped."""
    if domain.encodes is Mapping:
        cells = [data[start : start + _PAIR] for start in range(0, len(data), _PAIR)]
        return {
            key: Fraction(int.from_bytes(cell[1:], "big"), _PART)
            for key, cell in enumerate(cells)
            if cell[0]
        }
    if domain.encodes is bytes:
        return data[1 : 1 + data[0]]
    if domain.encodes is not Fraction:
        bits = int.from_bytes(data, "big")
        if domain.encodes is int:
            return bits
        return frozenset(item for item in range(domain.size) if bits >> item & 1)
    top, bottom = data[:_NUMERATOR], data[_NUMERATOR:]
    return Fraction(int.from_bytes(top, "big", signed=True), int.from_bytes(bottom, "big"))


def bounded(number: Fraction) -> Fraction:
    """Return *number*, rounded if it is too long to be kept exactly."""
    if number.denominator.bit_length() <= 8 * _DENOMINATOR:
        return number
    return Fraction(round(number * _ROUNDED), _ROUNDED)


def _pair(number: Fraction | int | None) -> bytes:
    if number is None:
        return bytes(_PAIR)
    return b"\x01" + round(number * _PART).to_bytes(_PAIR - 1, "big")
