"""Encodings: what mechanisms randomize, how a device keeps it, and how it is written as JSON.

All values of a domain are kept in one length, so that a length says nothing.  Numbers are kept
exactly, as long as they fit: every float does, every decimal of a hundred digits, and sums of them.
What does not fit is rounded to the nearest 2^-64 of a step.  The numbers of key-values are rounded
to the nearest 2^-60 of their range, far below what any report shows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from ..core.typing import Any, ClassVar, Final, TypeAlias
from ..mechanisms import (
    Constant,
    DistributionMechanism,
    ItemMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
    Pairs,
    Record,
    RecordMechanism,
    SetMechanism,
    TextMechanism,
    VectorMechanism,
)
from .longitudinal import ITEM_SIZE, encode_item

# what a mechanism randomizes
Encoded: TypeAlias = int | frozenset[int] | Fraction | Pairs | bytes | tuple[int, ...]

Family: TypeAlias = type[Mechanism[Any]] | tuple[type[Mechanism[Any]], ...]
NUMBERS: Final[Family] = (MeanMechanism, DistributionMechanism)  # the family of plain numbers

REACH: Final = 64  # bits that a sum may lie outside its range before it is cut off
_DENOMINATOR: Final = 192  # bytes; the smallest float has 135
_NUMERATOR: Final = _DENOMINATOR + (REACH + 24) // 8 + 1  # bytes, signed; domains end at 2^24 steps
_ROUNDED: Final = 1 << 64
_PART: Final = 1 << 60  # of the range of a key's number
_PAIR: Final = 9  # bytes of a key: whether it is held, and its number
_COORDINATE: Final = 4  # bytes, signed

_GRID: Final = 1 << 128  # what 32 hexadecimal digits are parts of
_DIGITS: Final = 32
_LONGEST: Final = 160  # letters of a number
_HEX: Final = frozenset("0123456789abcdef")


class Encoding(ABC):
    """How the values of one domain are kept and written."""

    family: ClassVar[Family]  # the mechanisms that randomize them
    kind: ClassVar[type[Any]]  # of what holds several integers

    def __init__(self, domain_size: int, parameters: Mapping[str, int]) -> None:
        self.domain_size = domain_size
        self.parameters = parameters

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of any value."""

    @abstractmethod
    def dump(self, encoded: Any) -> bytes:
        """Return *encoded*, a value or a number near its range, as ``size`` bytes."""

    @abstractmethod
    def load(self, data: bytes) -> Any:
        """Return what was dumped."""

    def as_json(self, encoded: Any) -> Any:
        """Return *encoded* as JSON."""
        return encoded

    def from_json(self, value: Any) -> Any:
        """Return what was written.  Raises ValueError, TypeError: nothing is written so."""
        return self.kind(map(int, value))


class ItemEncoding(Encoding):
    """One of the items, by its index."""

    family = ItemMechanism
    size = ITEM_SIZE

    def dump(self, encoded: int) -> bytes:
        """Return the index, big-endian."""
        return encode_item(encoded)

    def load(self, data: bytes) -> int:
        """Return the index."""
        return int.from_bytes(data, "big")

    def from_json(self, value: Any) -> int:
        """Return the index."""
        return int(value)


class SetEncoding(Encoding):
    """Some of the items, by their indices."""

    family = SetMechanism
    kind = frozenset

    @property
    def size(self) -> int:
        """A bit of each item."""
        return (self.domain_size + 7) // 8

    def dump(self, encoded: frozenset[int]) -> bytes:
        """Return the bits, the first item lowest."""
        return sum(1 << item for item in encoded).to_bytes(self.size, "big")

    def load(self, data: bytes) -> frozenset[int]:
        """Return the items whose bits are set."""
        bits = int.from_bytes(data, "big")
        return frozenset(item for item in range(self.domain_size) if bits >> item & 1)

    def as_json(self, encoded: frozenset[int]) -> list[int]:
        """Return the indices in ascending order."""
        return sorted(encoded)


class NumberEncoding(Encoding):
    """A number, by its position on the grid, in steps."""

    family = NUMBERS
    size = _NUMERATOR + _DENOMINATOR

    def dump(self, encoded: Fraction | int) -> bytes:
        """Return the numerator and the denominator."""
        number = bounded(Fraction(encoded))
        top = number.numerator.to_bytes(_NUMERATOR, "big", signed=True)
        return top + number.denominator.to_bytes(_DENOMINATOR, "big")

    def load(self, data: bytes) -> Fraction:
        """Return the position."""
        top, bottom = data[:_NUMERATOR], data[_NUMERATOR:]
        return Fraction(int.from_bytes(top, "big", signed=True), int.from_bytes(bottom, "big"))

    def as_json(self, encoded: Fraction) -> Any:
        """Return the position as a constant."""
        return dump_constant(encoded)

    def from_json(self, value: Any) -> Fraction:
        """Return the position."""
        return _fraction(value)


class PairsEncoding(Encoding):
    """Numbers by key, each as a part of the range."""

    family = KeyValueMechanism

    @property
    def size(self) -> int:
        """A number of each key."""
        return _PAIR * self.domain_size

    def dump(self, encoded: Pairs) -> bytes:
        """Return the numbers of all keys, of one that is not held zeros."""
        return b"".join(_pair(encoded.get(key)) for key in range(self.domain_size))

    def load(self, data: bytes) -> Pairs:
        """Return the numbers of the keys that are held."""
        return {
            key: Fraction(int.from_bytes(cell[1:], "big"), _PART)
            for key, cell in enumerate(pieces(data, _PAIR))
            if cell[0]
        }

    def as_json(self, encoded: Pairs) -> list[list[Any]]:
        """Return keys with their numbers, as constants."""
        return [[key, dump_constant(Fraction(number))] for key, number in sorted(encoded.items())]

    def from_json(self, value: Any) -> Pairs:
        """Return the numbers by key."""
        return {int(key): _fraction(number) for key, number in value}


class TextEncoding(Encoding):
    """A text, in bytes of UTF-8."""

    family = TextMechanism

    @property
    def size(self) -> int:
        """How many bytes there are, and the most that there can be."""
        return 1 + self.domain_size

    def dump(self, encoded: bytes) -> bytes:
        """Return how many bytes there are, the bytes, and zeros."""
        return (bytes([len(encoded)]) + encoded).ljust(self.size, b"\0")

    def load(self, data: bytes) -> bytes:
        """Return the bytes."""
        return data[1 : 1 + data[0]]

    def as_json(self, encoded: bytes) -> str:
        """Return hexadecimal digits."""
        return encoded.hex()

    def from_json(self, value: Any) -> bytes:
        """Return the bytes."""
        return bytes.fromhex(value)


class VectorEncoding(Encoding):
    """Coordinates in parts of their bound: of each one in a *cube*, else of the length."""

    family: ClassVar[Family] = VectorMechanism
    kind: ClassVar[type[Any]] = tuple

    @property
    def size(self) -> int:
        """An integer of each coordinate."""
        return _COORDINATE * self.domain_size

    def dump(self, encoded: Sequence[int]) -> bytes:
        """Return the coordinates, signed."""
        return b"".join(part.to_bytes(_COORDINATE, "big", signed=True) for part in encoded)

    def load(self, data: bytes) -> Any:
        """Return the coordinates."""
        return self.kind(
            int.from_bytes(part, "big", signed=True) for part in pieces(data, _COORDINATE)
        )

    def as_json(self, encoded: Sequence[int]) -> list[int]:
        """Return the integers."""
        return list(encoded)


class RecordEncoding(VectorEncoding):
    """An item of each attribute."""

    family = RecordMechanism
    kind = Record

    @property
    def size(self) -> int:
        """An integer of each attribute."""
        return _COORDINATE * self.parameters["starts"].bit_count()


def bounded(number: Fraction) -> Fraction:
    """Return *number*, rounded if it is too long to be kept exactly."""
    if number.denominator.bit_length() <= 8 * _DENOMINATOR:
        return number
    return Fraction(round(number * _ROUNDED), _ROUNDED)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Yield *data* in pieces of *size* bytes."""
    return (data[start : start + size] for start in range(0, len(data), size))


def dump_constant(number: Constant) -> str | list[str]:
    """Return *number* as text: on the grid of 2^-128 as 32 hexadecimal digits, else as a/b."""
    if isinstance(number, tuple):
        return [str(dump_constant(part)) for part in number]
    if 0 <= number < 1 and _GRID % number.denominator == 0:
        return f"{number.numerator * (_GRID // number.denominator):0{_DIGITS}x}"
    return f"{number.numerator:x}/{number.denominator:x}"


def load_constant(text: object) -> Constant:
    """Return what was dumped.  Raises ValueError: nothing is dumped so."""
    return tuple(map(_fraction, text)) if isinstance(text, list) else _fraction(text)


def _fraction(text: object) -> Fraction:
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError("must be hexadecimal digits")
    top, slash, bottom = text.partition("/")
    if not top or not _HEX.issuperset(top + bottom):
        raise ValueError("must be hexadecimal digits")
    if slash:
        return Fraction(int(top, 16), int(bottom or "0", 16) or 1)
    if len(text) != _DIGITS:
        raise ValueError(f"must be {_DIGITS} hexadecimal digits")
    return Fraction(int(text, 16), _GRID)


def _pair(number: Fraction | int | None) -> bytes:
    if number is None:
        return bytes(_PAIR)
    return b"\x01" + round(number * _PART).to_bytes(_PAIR - 1, "big")
