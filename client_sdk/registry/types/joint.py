"""Domains whose items are joint values: two answers, a step reached, a series of periods.

Each value becomes one item, so that every mechanism of items serves it and one report is about all
its parts together.  What one report does not join, no analysis of many reports can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod

from ...core.dataclass import dataclass
from ...core.errors import InvalidValueError
from ...core.typing import TYPE_CHECKING, ClassVar, Final
from .. import fields
from ..fields import Problems
from .items import ItemDomain, SetDomain, listed

if TYPE_CHECKING:
    from typing import Self

MAX_JOINT: Final = 4_096  # items of a grid or a pair; the share of a cell of more drowns in noise
_LEAST_PERIODS, MOST_PERIODS = 2, 8  # 4 to 256 items
JOINER: Final = "|"  # between the labels of a pair, which therefore hold none
_NO_STEP: Final = "none"  # the item of a funnel if no step was reached


@dataclass(frozen=True, init=False)
class PairDomain(ItemDomain):
    """Two answers together, each one of its own labels.  Labels are "of the first | of the second".

    Items are in the order of the first answer, then of the second.
    """

    names: tuple[str, str]
    first: ItemDomain
    second: ItemDomain

    types: ClassVar[tuple[str, ...]] = ("pair",)
    table_keys = frozenset({"parts"})
    ordered = False
    verb = "crosstab"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read two names, each with its labels."""
        place, parts = f"{place}.parts", entry.get("parts")
        if not isinstance(parts, dict) or len(parts) != 2:
            problems.add(place, "must be a table of two names, each with a list of values")
            return None
        before = len(problems.lines)
        names = [fields.value(f"{place}.{name}", "name", name, problems) for name in parts]
        values = [_part(f"{place}.{name}", labels, problems) for name, labels in parts.items()]
        size = prod(map(len, values))
        if size > MAX_JOINT:
            problems.add(place, f"must have at most {MAX_JOINT} pairs of values, not {size}")
        if len(problems.lines) > before:
            return None
        return cls((names[0], names[1]), ItemDomain(values[0]), ItemDomain(values[1]))

    def __init__(self, names: tuple[str, str], first: ItemDomain, second: ItemDomain) -> None:
        """Join every label of *first*, called by the first name, with every one of *second*."""
        labels = tuple(f"{a} {JOINER} {b}" for a in first.labels for b in second.labels)
        self.__dict__.update(labels=labels, names=names, first=first, second=second)

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of each answer by its name, the first one first."""
        return dict(zip(self.names, (self.first.labels, self.second.labels), strict=True))

    def encode(self, value: object, metric: str) -> int:
        """Return the item of *value*, a mapping of both names to a label of each.

        Raises: InvalidValueError: another type, a missing or another name, or an unknown label; it
                names the part that is wrong, and does not show it.
        """
        if not isinstance(value, Mapping) or len(value) != 2 or not _holds(value, self.names):
            rule = f"takes a mapping of {' and '.join(self.names)} to a registered value of each"
            raise InvalidValueError(metric, rule)
        parts = zip(self.names, (self.first, self.second), strict=True)
        first, second = (part.index_of(value[name], f"{metric}, {name}") for name, part in parts)
        return self.cell(first, second)

    def cell(self, first: int, second: int) -> int:
        """Return the item of the label with index *first* and that with index *second*."""
        return first * self.second.size + second

    def place(self, item: int) -> tuple[int, int]:
        """Return the index of the first and of the second label of *item*."""
        return divmod(item, self.second.size)

    def item_in_words(self, item: int) -> str:
        """Return both answers with their names."""
        first, second = self.place(item)
        answers = self.first.labels[first], self.second.labels[second]
        return ", ".join(f"{name}: {a}" for name, a in zip(self.names, answers, strict=True))

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        parts = (f"{name} (one of: {listed(labels)})" for name, labels in self.parts.items())
        return f"two things together, {' and '.join(parts)}"

    def canonical(self) -> dict[str, object]:
        """Return what the items mean, as JSON, in which a list keeps its order."""
        return {"parts": [[name, list(labels)] for name, labels in self.parts.items()]}

    @classmethod
    def declared(
        cls, canonical: Mapping[str, object], parameters: Mapping[str, int]
    ) -> Mapping[str, object]:
        """Return the parts as a table."""
        parts = canonical.get("parts")
        return {
            "parts": dict(parts) if isinstance(parts, list) and all(map(_is_pair, parts)) else None
        }

    def as_json(self) -> dict[str, object]:
        """Return the parts as objects in a list."""
        return {"parts": [{"name": name, "values": self.parts[name]} for name in self.parts]}


def _is_pair(part: object) -> bool:
    return isinstance(part, list) and len(part) == 2 and isinstance(part[0], str)


def _holds(value: Mapping[object, object], names: Sequence[str]) -> bool:
    return all(name in value for name in names)


@dataclass(frozen=True, init=False)
class FunnelDomain(ItemDomain):
    """The furthest of the ``steps`` that was reached; the first item stands for none of them.

    So the index of an item is how many steps were taken.
    """

    steps: tuple[str, ...]

    types: ClassVar[tuple[str, ...]] = ("funnel",)
    largest = "the furthest"
    aggregates: ClassVar[tuple[str, ...]] = ("last", "most_common", "max")
    verb = "funnel"
    python_type = "{label} | None"
    headline_form = "reached {item}"
    remark = "The furthest step that was reached; None if none was. "

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the steps."""
        steps = fields.labels(f"{place}.values", entry.get("values"), problems)
        if _NO_STEP in steps:
            problems.add(f"{place}.values", f'must not hold "{_NO_STEP}", the item of no step')
            return None
        return cls(steps) if steps else None

    def __init__(self, steps: tuple[str, ...]) -> None:
        """Take the *steps* in order."""
        self.__dict__.update(labels=(_NO_STEP, *steps), steps=steps)

    def encode(self, value: object, metric: str) -> int:
        """Return the item of the step *value*; None and "none" stand for no step.

        Raises: InvalidValueError: not in the domain; the error does not show the value.
        """
        return self.index_of(_NO_STEP if value is None else value, metric)

    def item_in_words(self, item: int) -> str:
        """Return how far it went."""
        return f"as far as {self.labels[item]}" if item else "no step"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"the furthest step that was reached, if any, of: {listed(self.steps)}"

    def canonical(self) -> dict[str, object]:
        """Return the steps, as JSON."""
        return {"values": list(self.steps)}

    @property
    def compared(self) -> tuple[str, ...]:
        """The steps."""
        return self.steps

    def value_labels(self) -> tuple[str, ...]:
        """Return the steps."""
        return self.steps


@dataclass(frozen=True, init=False)
class RetentionDomain(ItemDomain):
    """In which of the ``periods`` there was activity.  Labels are bitmaps such as "1011"."""

    periods: tuple[str, ...]

    types: ClassVar[tuple[str, ...]] = ("retention",)
    table_keys = frozenset({"periods"})
    ordered = False
    verb = "retention"
    coded = True
    python_type = "Items[{label}]"
    headline_form = "came back in {item}"
    remark = "The periods with activity. "

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the periods."""
        place = f"{place}.periods"
        periods = fields.labels(place, entry.get("periods"), problems)
        if not periods:
            return None
        if len(periods) > MOST_PERIODS:
            problems.add(place, f"must hold {_LEAST_PERIODS} to {MOST_PERIODS} periods")
            return None
        return cls(periods)

    def __init__(self, periods: tuple[str, ...]) -> None:
        """Take the *periods* in order; an item is a number whose highest bit is of the first."""
        count = len(periods)
        labels = tuple(f"{item:0{count}b}" for item in range(1 << count))
        self.__dict__.update(labels=labels, periods=periods)

    @cached_property
    def _active(self) -> SetDomain:
        return SetDomain(self.periods)

    def encode(self, value: object, metric: str) -> int:
        """Return the item of *value*, a list, tuple, set or frozenset of periods.

        Raises: InvalidValueError: another type, or what is no period; it is not shown.
        """
        last = len(self.periods) - 1
        return sum(1 << last - period for period in self._active.encode(value, metric))

    def bits(self, item: int) -> tuple[int, ...]:
        """Return for each period whether *item* has activity in it, 1 or 0."""
        return tuple(map(int, self.labels[item]))

    def item_in_words(self, item: int) -> str:
        """Return the periods with activity."""
        held = [period for period, bit in zip(self.periods, self.bits(item), strict=True) if bit]
        return f"active in {' and '.join(held)}" if held else "never active"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"in which of these periods there was activity, if any: {listed(self.periods)}"

    def canonical(self) -> dict[str, object]:
        """Return the periods, as JSON."""
        return {"periods": list(self.periods)}

    @property
    def compared(self) -> tuple[str, ...]:
        """The periods in which devices can come back."""
        return self.periods[1:]

    def value_labels(self) -> tuple[str, ...]:
        """Return the periods."""
        return self.periods


def _part(place: str, entry: object, problems: Problems) -> tuple[str, ...]:
    labels = fields.labels(place, entry, problems)
    if any(JOINER in label for label in labels):
        problems.add(place, f'must not hold "{JOINER}", which joins the labels of a pair')
    return labels
