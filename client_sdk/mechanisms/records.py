"""Mechanisms over records: one item of each attribute, and a report is about one of these alone.

The items are divided into attributes, which follow one another; ``starts`` says where.  A record is
one item of each.  Within an attribute the reports are those of a mechanism of its own items, so
what is known of tallies of single items is known of the reports about each attribute.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property

from ..core.errors import InvalidParameterError, InvalidValueError
from ..core.typing import Final, NamedTuple
from .base import Array, Numpy, RatioMechanism
from .families import NumberReports
from .frequency import FrequencyOracle

MAX_CELLS: Final = 4_096  # items of all attributes; the share of a cell of more drowns in noise
MAX_ATTRIBUTES: Final = 64  # of which a report is about one, so each has a 64th of the reports


class Record(tuple[int, ...]):
    """One item of each attribute, in order: a type of its own, as vectors are tuples, too."""

    __slots__ = ()


class Attribute(NamedTuple):
    """The items of an attribute, from *first* on, and the mechanism that reports one of them."""

    first: int
    mechanism: FrequencyOracle

    @property
    def end(self) -> int:
        """One more than its last item."""
        return self.first + self.mechanism.domain_size


class Part(NamedTuple):
    """The *n* reports about an attribute, as a tally of its mechanism."""

    mechanism: FrequencyOracle
    tally: Array
    n: int


class RecordMechanism(NumberReports[Record], RatioMechanism[Record]):
    """A mechanism over records.  Its tally has a cell an item; debiased are the counts of these."""

    starts: int  # bit i is set if item i is the first of an attribute
    attributes: tuple[Attribute, ...]  # in the order of their items, made with the mechanism

    @abstractmethod
    def supports(self, payload: bytes) -> Iterable[int]:
        """Return the items that a valid payload supports, all of one attribute."""

    @abstractmethod
    def parts(self, tally: Array, n: int, np: Numpy) -> tuple[Part, ...]:
        """Return the reports about each attribute, whose devices are a random sample of all n.

        Raises: InvalidTallyError: n reports cannot have left *tally* behind.
        """

    def require_attributes(self) -> None:
        """Refuse attributes of one item, and too many of them or of their items."""
        if self.domain_size > MAX_CELLS:
            rule = f"must be at most {MAX_CELLS}"
            raise InvalidParameterError("domain_size", self.domain_size, rule)
        if min(self.sizes) < 2 or len(self.sizes) > MAX_ATTRIBUTES or not self.starts & 1:
            rule = f"must begin 1 to {MAX_ATTRIBUTES} attributes of 2 items at least, item 0 first"
            raise InvalidParameterError("starts", self.starts, rule)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many items each attribute has."""
        firsts = [item for item in range(self.domain_size) if self.starts >> item & 1]
        ends = [*firsts[1:], self.domain_size]
        return tuple(end - first for first, end in zip(firsts, ends, strict=True))

    def require_value(self, value: Record) -> None:
        """Raise InvalidValueError unless *value* has an item of each attribute; it is hidden."""
        count = len(self.attributes)
        if (
            type(value) is not Record
            or len(value) != count
            or not all(
                type(item) is int and attribute.first <= item < attribute.end
                for item, attribute in zip(value, self.attributes, strict=True)
            )
        ):
            raise InvalidValueError(self.name, f"must be a record of {count} items")


def starts_of(sizes: tuple[int, ...]) -> int:
    """Return the parameter ``starts`` of attributes of these many items each."""
    starts, item = 0, 0
    for size in sizes:
        starts |= 1 << item
        item += size
    return starts
