"""Domains: which values a metric takes, what its mechanism gets for them, and how they are told.

Every domain has the same methods: ``encode`` for the mechanism, ``as_given`` and ``in_words`` for
people, ``canonical`` for the digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, TypeAlias

from .dataclass import dataclass
from .errors import InvalidValueError
from .limits import MAX_EXPONENT
from .mechanisms import Pairs
from .plain_values import plain
from .text_domain import TextDomain

Number: TypeAlias = int | float | Decimal | Fraction
Encoded: TypeAlias = int | frozenset[int] | Fraction | Pairs | bytes  # what a mechanism randomizes

BOOLEAN_LABELS: Final = ("false", "true")
MEAN_OF: Final = "mean of "  # and a key: how the mean of the key's numbers is called in answers

_SHOWN: Final = 8  # labels; a screen has room for them


@dataclass(frozen=True)
class ItemDomain:
    """The items of a metric in order; a value is one of their labels.

    Subclasses make the item of other values.
    """

    labels: tuple[str, ...]

    boolean: ClassVar[bool] = False  # a value is True or False
    several: ClassVar[bool] = False  # a value is a set of items
    largest: ClassVar[str | None] = None  # what the last of several items is; None: no order

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.labels)

    @cached_property
    def _index(self) -> Mapping[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def encode(self, value: object, metric: str) -> int | frozenset[int]:
        """Return the item index of *value*.

        Raises: InvalidValueError: not in the domain; the error does not show the value.
        """
        return self.index_of(value, metric)

    def index_of(self, label: object, what: str) -> int:
        """Return the item index of *label*.  Raises InvalidValueError, which says of *what*."""
        item = self._find(label)
        if item is None:
            raise InvalidValueError(what, f"takes one of its {self.size} registered values")
        return item

    def _find(self, label: object) -> int | None:
        """Return the item index of *label*, or None."""
        text = plain(label) if isinstance(label, str) else None
        return self._index.get(text) if isinstance(text, str) else None

    def told(self, item: int) -> str:
        """Return *item* as it is told to people."""
        return self.labels[item]

    def as_given(self, encoded: Encoded) -> str | list[str]:
        """Return the label, or the labels, that *encoded* stands for."""
        assert isinstance(encoded, int)  # noqa: S101 - what encode returns
        return self.labels[encoded]

    def in_words(self, encoded: Encoded) -> str:
        """Return the value that *encoded* stands for as it is told to people."""
        assert isinstance(encoded, int)  # noqa: S101 - what encode returns
        return self.told(encoded)

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"one of: {listed(self.labels)}"

    def canonical(self) -> dict[str, object]:
        """Return what the items mean, as JSON."""
        return {"values": list(self.labels)}


class BooleanDomain(ItemDomain):
    """False and true, in this order."""

    boolean = True

    def encode(self, value: object, metric: str) -> int:
        """Return 0 or 1.  Raises InvalidValueError: no bool."""
        truth = plain(value)
        if type(truth) is not bool:
            raise InvalidValueError(metric, "takes True or False")
        return int(truth)


class SetDomain(ItemDomain):
    """A value is a set of any number of the items."""

    several = True

    def encode(self, value: object, metric: str) -> frozenset[int]:
        """Return the indices of a list, tuple, set or frozenset of labels, however often each.

        Raises: InvalidValueError: another type, or a label that is not in the domain.
        """
        if not isinstance(value, list | tuple | set | frozenset):
            raise self._refusal(metric)
        held = set()
        for label in value:
            item = self._find(label)
            if item is None:
                raise self._refusal(metric)
            held.add(item)
        return frozenset(held)

    def _refusal(self, metric: str) -> InvalidValueError:
        rule = f"takes a list or set of its {self.size} registered values"
        return InvalidValueError(metric, rule)

    def as_given(self, encoded: Encoded) -> list[str]:
        """Return the labels in order."""
        assert isinstance(encoded, frozenset)  # noqa: S101 - what encode returns
        return [self.labels[item] for item in sorted(encoded)]

    def in_words(self, encoded: Encoded) -> str:
        """Return the labels in order, or "none"."""
        return ", ".join(self.as_given(encoded)) or "none"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"any of: {listed(self.labels)}"


@dataclass(frozen=True)
class NumberDomain:
    """Numbers from ``minimum`` to ``maximum`` on a public grid of ``step``, in ``unit``."""

    minimum: Fraction
    maximum: Fraction
    step: Fraction
    unit: str

    @property
    def size(self) -> int:
        """Number of grid points, both ends included."""
        return int((self.maximum - self.minimum) / self.step) + 1

    def encode(self, value: object, metric: str) -> Fraction:
        """Clamp *value* to the range and return its exact position on the grid, in steps.

        Raises: InvalidValueError: not a finite number (bool and str are not numbers).
        """
        clamped = min(max(self.exact(value, metric), self.minimum), self.maximum)
        return (clamped - self.minimum) / self.step

    def exact(self, value: object, metric: str) -> Fraction:
        """Return *value* as it is, in units, inside the range or not.  Raises as ``encode``."""
        number = plain(value)
        if isinstance(number, bool) or not isinstance(number, int | float | Decimal | Fraction):
            raise InvalidValueError(metric, "takes a number")
        if isinstance(number, Decimal) and number.is_finite() and not _is_moderate(number):
            raise InvalidValueError(metric, f"takes a number below 1e{MAX_EXPONENT}")
        try:
            return Fraction(number)
        except (ValueError, OverflowError):
            raise InvalidValueError(metric, "takes a finite number") from None

    def as_given(self, encoded: Encoded) -> str:
        """Return the exact number that *encoded* stands for."""
        assert isinstance(encoded, int | Fraction)  # noqa: S101 - what encode returns
        return str(self.minimum + self.step * encoded)

    def in_words(self, encoded: Encoded) -> str:
        """Return the number, rounded, in its unit."""
        return self.rounded(self.as_given(encoded))

    def rounded(self, number: str | Fraction) -> str:
        """Return *number*, which is in units, with six digits and the unit."""
        return f"{float(Fraction(number)):,.6g} {self.unit}"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        low, high = float(self.minimum), float(self.maximum)
        return f"a number from {low:g} to {high:g} {self.unit}"

    def canonical(self) -> dict[str, object]:
        """Return what the numbers mean, exactly, as JSON."""
        ends = {"min": str(self.minimum), "max": str(self.maximum)}
        return {**ends, "step": str(self.step), "unit": self.unit}


def _is_moderate(value: Decimal) -> bool:
    """Whether *value* can become a Fraction without filling the memory."""
    return abs(value.adjusted()) <= MAX_EXPONENT


@dataclass(frozen=True)
class KeyValueDomain:
    """Mappings of some of the ``keys`` to ``numbers``, whose one step is the whole range.

    Mappings of up to ``most`` pairs count in full, of larger ones each pair for less than one.
    """

    keys: ItemDomain
    numbers: NumberDomain
    most: int

    @property
    def size(self) -> int:
        """Number of keys."""
        return self.keys.size

    def encode(self, value: object, metric: str) -> Pairs:
        """Return the index of each key of *value* and its number as a part of the range.

        Raises: InvalidValueError: no mapping, an unknown key, or what is not a finite number; it
                names the part that is wrong, and does not show it.
        """
        if not isinstance(value, Mapping):
            rule = f"takes a mapping of its {self.size} registered keys to numbers"
            raise InvalidValueError(metric, rule)
        pairs: dict[int, Fraction] = {}
        for label, number in value.items():
            key = self.keys.index_of(label, f"{metric}, key")
            pairs[key] = self.numbers.encode(number, f"{metric}, number")
        return pairs

    def as_given(self, encoded: Encoded) -> dict[str, str]:
        """Return the exact number of each key, in the order of the alphabet."""
        assert isinstance(encoded, Mapping)  # noqa: S101 - what encode returns
        labels = self.keys.labels
        exact = {labels[key]: self.numbers.as_given(at) for key, at in encoded.items()}
        return {label: exact[label] for label in sorted(exact)}

    def in_words(self, encoded: Encoded) -> str:
        """Return each key with its number, or "none"."""
        given = self.as_given(encoded).items()
        named = (f"{key}: {self.numbers.rounded(number)}" for key, number in given)
        return ", ".join(named) or "none"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"{self.numbers.form} for each that applies of: {listed(self.keys.labels)}"

    def canonical(self) -> dict[str, object]:
        """Return what keys and numbers mean, exactly, as JSON."""
        numbers = self.numbers.canonical()
        del numbers["step"]  # the whole range, which nobody chose
        return {**self.keys.canonical(), **numbers}


Domain: TypeAlias = ItemDomain | NumberDomain | KeyValueDomain | TextDomain


def listed(labels: Sequence[str]) -> str:
    """Return the first of *labels*, and how many more there are."""
    rest = len(labels) - _SHOWN
    return ", ".join(labels[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def fixed_parameters(domain: Domain) -> dict[str, int]:
    """Return the parameters of a mechanism that follow from the *domain* of its metric."""
    return {"pad": domain.most, "top": 1} if isinstance(domain, KeyValueDomain) else {}
