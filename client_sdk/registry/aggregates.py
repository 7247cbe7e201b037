"""Aggregates: how the values of one epoch become the one value that is reported.

An aggregate folds values into a state of bounded size, whatever comes, and merges two states.  But
for ``last``, the order does not matter.  A state is bytes of one length for all values of a domain,
so that a length says nothing.

Numbers are kept exactly, as long as they fit: every float does, every decimal of a hundred digits,
and sums of them.  What does not fit is rounded to the nearest 2^-64 of a step.  The numbers of
key-values are rounded to the nearest 2^-60 of their range, far below what any report tells.

The rules of ``aggregate`` and ``otherwise`` in ``metrics.toml`` are here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from ..core.dataclass import dataclass
from ..core.epoch import ONCE
from ..core.errors import InvalidValueError
from ..core.typing import Any, ClassVar, Final
from .domain import Domain, Encoded, NumberGrid
from .longitudinal import ITEM_SIZE, encode_item
from .metric import AGGREGATES, Metric

_MAX_STATE: Final = 4_096  # bytes; a set of 32,768 items, or 455 keys with numbers

REACH: Final = 64  # bits that a sum may lie outside its range before it is cut off
_DENOMINATOR: Final = 192  # bytes; the smallest float has 135
_NUMERATOR: Final = _DENOMINATOR + (REACH + 24) // 8 + 1  # bytes, signed; domains end at 2^24 steps
_ROUNDED: Final = 1 << 64
_PART: Final = 1 << 60  # of the range of a key's number
_PAIR: Final = 9  # bytes of a key: whether it is held, and its number
_COORDINATE: Final = 4  # bytes of a coordinate of a vector, signed

MAX_COUNTED: Final = 64  # different items of an epoch that are counted exactly
_COUNT: Final = 4  # bytes
_MOST: Final = (1 << 8 * _COUNT) - 1


def aggregate_of(metric: Metric) -> Last:
    """Return the aggregate of *metric*, which has one."""
    return _KINDS[str(metric.aggregate)](metric.domain)


@dataclass(frozen=True)
class Last:
    """The value that came last; the base of the others, whose state is a value too."""

    name: ClassVar[str] = "last"
    domain: Domain

    @property
    def size(self) -> int:
        """Bytes of any state."""
        return size_of(self.domain)

    def fold(self, state: Any, values: Sequence[Any]) -> Any:
        """Return the state after *values*, at least one, each as ``Slot.check`` returns it.

        It is exact, however many values come, and for memory only: what is kept was merged.
        Args: state: None before the first value.
        """
        return self._encoded(values[-1])

    def merge(self, state: Any, later: Any) -> Any:
        """Return the state to keep after those of *later*; *state* is None if nothing is kept."""
        return later

    def result(self, state: Any) -> Encoded:
        """Return the value to report."""
        value: Encoded = state
        return value

    def dump(self, state: Any) -> bytes:
        """Return *state* as ``size`` bytes."""
        return dump(self.domain, state)

    def load(self, data: bytes) -> Any:
        """Return the state that was dumped."""
        return load(self.domain, data)

    def _encoded(self, value: Any) -> Any:
        """Return *value* as the mechanism takes it; numbers are checked, but not yet encoded."""
        return value if self.domain.grid is None else self.domain.encode(value, self.name)


class Max(Last):
    """The largest number."""

    name = "max"

    def fold(self, state: Any, values: Sequence[Any]) -> Any:
        """Return the largest one."""
        largest = self._encoded(max(values))
        return largest if state is None else max(state, largest)

    def merge(self, state: Any, later: Any) -> Any:
        """Return the larger one."""
        return later if state is None else max(state, later)


class AnyTrue(Max):
    """True if any value was."""

    name = "any"


class Sum(Last):
    """The sum of all numbers as they were given, clamped to the range only when it is reported.

    The state is the position of the sum on the grid.  Far outside the range it is cut off.
    """

    name = "sum"

    def fold(self, state: Any, values: Sequence[Any]) -> Any:
        """Return the position after as many steps more as *values* are, exactly."""
        whole = [value for value in values if type(value) is int]
        steps = Fraction(sum(whole)) / self._grid.step
        if len(whole) < len(values):
            for value, count in Counter(v for v in values if type(v) is not int).items():
                steps = self._cut(bounded(steps + Fraction(value) * count / self._grid.step))
        return self._cut(bounded((self._zero if state is None else state) + steps))

    def merge(self, state: Any, later: Any) -> Any:
        """Return the position of both sums together."""
        return later if state is None else self._cut(bounded(state + later - self._zero))

    def result(self, state: Any) -> Encoded:
        """Return the position, clamped to the range."""
        return min(max(Fraction(state), Fraction(0)), Fraction(self.domain.size - 1))

    @property
    def _grid(self) -> NumberGrid:
        grid = self.domain.grid
        assert grid is not None  # noqa: S101 - the registry sees to it
        return grid

    @property
    def _zero(self) -> Fraction:
        return -self._grid.minimum / self._grid.step

    def _cut(self, number: Fraction) -> Fraction:
        reach = Fraction(self.domain.size << REACH)
        return min(max(number, -reach), reach)


class MostCommon(Last):
    """The item that came most often; of several, the first in the order of the domain.

    The state is a count by item.  If it has MAX_COUNTED different ones, a new one takes
    the place and the count of the rarest, so that whatever comes often enough is always kept.

    Source: Metwally, Agrawal, El Abbadi, *Efficient computation of frequent and top-k elements in
        data streams*, ICDT 2005 (space saving).
    """

    name = "most_common"

    @property
    def size(self) -> int:
        """Bytes of all counts that may be kept."""
        return min(self.domain.size, MAX_COUNTED) * (ITEM_SIZE + _COUNT)

    def fold(self, state: Any, values: Sequence[Any]) -> Any:
        """Return the counts with each of *values* once more."""
        counts = Counter(values) if state is None else state
        if state is not None:
            counts.update(values)
        return counts

    def merge(self, state: Any, later: Any) -> Any:
        """Return the counts of both, MAX_COUNTED at most."""
        counts: dict[int, int] = dict(state or {})
        for item, count in later.items():
            if item not in counts and len(counts) == MAX_COUNTED:
                rarest = min(counts, key=lambda item: (counts[item], -item))
                counts[item] = counts.pop(rarest)
            counts[item] = min(counts.get(item, 0) + count, _MOST)
        return counts

    def result(self, state: Any) -> Encoded:
        """Return the item with the largest count."""
        return int(min(state, key=lambda item: (-state[item], item)))

    def dump(self, state: Any) -> bytes:
        """Return the counts by item, and zeros where fewer are kept than may be."""
        cells = (
            encode_item(item) + count.to_bytes(_COUNT, "big")
            for item, count in sorted(state.items())
        )
        return b"".join(cells).ljust(self.size, b"\0")

    def load(self, data: bytes) -> Any:
        """Return the counts that are not zero."""
        cells = _pieces(data, ITEM_SIZE + _COUNT)
        counts = {int.from_bytes(c[:ITEM_SIZE], "big"): c[ITEM_SIZE:] for c in cells if any(c)}
        return {item: int.from_bytes(count, "big") for item, count in counts.items()}


_KINDS: Final[dict[str, type[Last]]] = {
    kind.name: kind for kind in (Last, Max, AnyTrue, Sum, MostCommon)
}


def problems_of(entry: Mapping[str, Any], every: object, domain: Domain) -> Iterator[str]:
    """Yield ``key: rule`` for each rule that the aggregate of a metric breaks.

    Args: entry: the metric's table; without either key nothing is wrong.
    """
    name = entry.get("aggregate")
    if name is None:
        if "otherwise" in entry:
            yield "otherwise: needs an aggregate beside it"
        return
    fitting = [aggregate for aggregate in AGGREGATES if aggregate in domain.aggregates]
    if name not in fitting:
        yield f"aggregate: must be one of {', '.join(fitting)} for values of this type"
    if every == ONCE:
        yield f"aggregate: needs an epoch that ends, not every={ONCE}"
    if size_of(domain) > _MAX_STATE:
        yield f"aggregate: takes a domain that fits {_MAX_STATE} bytes, not {size_of(domain)}"
    if "otherwise" in entry:
        yield from _unfit(entry["otherwise"], domain)


def otherwise_of(entry: Mapping[str, Any], domain: Domain) -> Encoded | None:
    """Return the checked ``otherwise`` of *entry* as its metric encodes it, or None."""
    return domain.encode(entry["otherwise"], "otherwise") if "otherwise" in entry else None


def _unfit(value: object, domain: Domain) -> Iterator[str]:
    """Yield why *value* cannot be recorded, or would be recorded as another one."""
    try:
        domain.encode(value, "")
    except InvalidValueError as error:
        yield f"otherwise: {error.rule}"
        return
    if domain.other is not None and not _texts(value) <= set(domain.labels):
        yield "otherwise: must be of the registered values, so that it says what is reported"
    entries = value.values() if isinstance(value, Mapping) else [value]
    if (numbers := domain.numbers) and not all(_within(entry, numbers) for entry in entries):
        yield "otherwise: must be from min to max"


def _texts(value: object) -> set[object]:
    return set(value) if isinstance(value, list) else {value}


def _within(number: object, domain: NumberGrid) -> bool:
    assert isinstance(number, int | Decimal)  # noqa: S101 - what TOML has, and encode took
    return domain.minimum <= Fraction(number) <= domain.maximum


def size_of(domain: Domain) -> int:
    """Return the bytes that any value of *domain* takes."""
    sizes = {
        int: ITEM_SIZE,
        frozenset: (domain.size + 7) // 8,
        bytes: 1 + domain.size,
        Mapping: _PAIR * domain.size,
        Fraction: _NUMERATOR + _DENOMINATOR,
        tuple: _COORDINATE * domain.size,
    }
    if domain.encodes not in sizes:  # a record: an item of each part but its label
        return _COORDINATE * (len(domain.parts) - 1)
    return sizes[domain.encodes]


def dump(domain: Domain, encoded: Encoded) -> bytes:
    """Return *encoded*, a value of *domain* or a number near its range, as ``size_of`` bytes."""
    if isinstance(encoded, frozenset):
        return sum(1 << item for item in encoded).to_bytes(size_of(domain), "big")
    if isinstance(encoded, bytes):
        return (bytes([len(encoded)]) + encoded).ljust(size_of(domain), b"\0")
    if isinstance(encoded, Mapping):
        return b"".join(_pair(encoded.get(key)) for key in range(domain.size))
    if isinstance(encoded, tuple):
        return b"".join(x.to_bytes(_COORDINATE, "big", signed=True) for x in encoded)
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
    if issubclass(domain.encodes, tuple):
        parts = _pieces(data, _COORDINATE)
        return domain.encodes(int.from_bytes(part, "big", signed=True) for part in parts)
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


def _pieces(data: bytes, size: int) -> Iterable[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))
