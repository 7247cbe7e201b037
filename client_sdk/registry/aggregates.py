"""Aggregates: how the values of one epoch become the one value that is reported.

An aggregate folds values into a state of bounded size, whatever comes, and merges two states.  But
for ``last``, the order does not matter.  A state is bytes of one length for all values of a domain,
so that a length says nothing.

The rules of ``aggregate`` and ``otherwise`` in ``metrics.toml`` are here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from ..core.dataclass import dataclass
from ..core.epoch import ONCE
from ..core.errors import InvalidValueError
from ..core.typing import Any, ClassVar, Final
from .domain import Domain, NumberGrid
from .encodings import REACH, Encoded, bounded, pieces
from .keys import AGGREGATES
from .longitudinal import ITEM_SIZE, encode_item
from .metric import Metric

_MAX_STATE: Final = 4_096  # bytes; a set of 32,768 items, or 455 keys with numbers

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
        return self.domain.encoding.size

    def fold(self, state: Any, values: Sequence[Any]) -> Any:
        """Return the state after *values*, at least one, each as ``Slot.check`` returns it.

        It is exact, however many values come, and for memory only: what is kept was merged.
        Args: state: None before the first value.
        """
        return self._encoded(values[-1])

    def merge(self, state: Any, later: Any) -> Any:
        """Return *state* and the *later* one as one state; *state* is None if nothing is kept."""
        return later

    def result(self, state: Any) -> Encoded:
        """Return the value to report."""
        value: Encoded = state
        return value

    def dump(self, state: Any) -> bytes:
        """Return *state* as ``size`` bytes."""
        return self.domain.encoding.dump(state)

    def load(self, data: bytes) -> Any:
        """Return the state that was dumped."""
        return self.domain.encoding.load(data)

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

    def fold(self, state: Fraction | None, values: Sequence[Any]) -> Fraction:
        """Return the position after as many steps more as *values* are, exactly."""
        whole = [value for value in values if type(value) is int]
        steps = Fraction(sum(whole)) / self._grid.step
        if len(whole) < len(values):
            for value, count in Counter(v for v in values if type(v) is not int).items():
                steps = self._cut(bounded(steps + Fraction(value) * count / self._grid.step))
        return self._cut(bounded((self._zero if state is None else state) + steps))

    def merge(self, state: Fraction | None, later: Fraction) -> Fraction:
        """Return the position of both sums together."""
        return later if state is None else self._cut(bounded(state + later - self._zero))

    def result(self, state: Fraction) -> Encoded:
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

    def fold(self, state: Counter[int] | None, values: Sequence[int]) -> Counter[int]:
        """Return the counts with each of *values* once more."""
        counts = Counter(values) if state is None else state
        if state is not None:
            counts.update(values)
        return counts

    def merge(self, state: Mapping[int, int] | None, later: Mapping[int, int]) -> dict[int, int]:
        """Return the counts of both, MAX_COUNTED at most."""
        counts = dict(state or {})
        for item, count in later.items():
            if item not in counts and len(counts) == MAX_COUNTED:
                rarest = min(counts, key=lambda item: (counts[item], -item))
                counts[item] = counts.pop(rarest)
            counts[item] = min(counts.get(item, 0) + count, _MOST)
        return counts

    def result(self, state: Mapping[int, int]) -> int:
        """Return the item with the largest count."""
        return min(state, key=lambda item: (-state[item], item))

    def dump(self, state: Mapping[int, int]) -> bytes:
        """Return the counts by item, and zeros where fewer are kept than may be."""
        cells = (
            encode_item(item) + count.to_bytes(_COUNT, "big")
            for item, count in sorted(state.items())
        )
        return b"".join(cells).ljust(self.size, b"\0")

    def load(self, data: bytes) -> dict[int, int]:
        """Return the counts that are not zero."""
        cells = pieces(data, ITEM_SIZE + _COUNT)
        counts = {int.from_bytes(c[:ITEM_SIZE], "big"): c[ITEM_SIZE:] for c in cells if any(c)}
        return {item: int.from_bytes(count, "big") for item, count in counts.items()}


_KINDS: Final[dict[str, type[Last]]] = {
    kind.name: kind for kind in (Last, Max, AnyTrue, Sum, MostCommon)
}


def problems_of(entry: Mapping[str, object], domain: Domain) -> Iterator[str]:
    """Yield ``key: rule`` for each rule that the aggregate of a metric breaks.

    Args: entry: the metric's table; without either key nothing is wrong.
    """
    name = entry.get("aggregate")
    if name is None:
        if "otherwise" in entry:
            yield "otherwise: needs an aggregate"
        return
    fitting = [aggregate for aggregate in AGGREGATES if aggregate in domain.aggregates]
    if name not in fitting:
        yield f"aggregate: must be one of {', '.join(fitting)} for values of this type"
    if entry.get("every") == ONCE:
        yield f"aggregate: needs an epoch that ends, not every={ONCE}"
    if (size := domain.encoding.size) > _MAX_STATE:
        yield f"aggregate: takes a domain that fits {_MAX_STATE} bytes, not {size}"
    if "otherwise" in entry:
        yield from _unfit(entry["otherwise"], domain)


def _unfit(value: object, domain: Domain) -> Iterator[str]:
    """Yield why *value* cannot be recorded unchanged."""
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
