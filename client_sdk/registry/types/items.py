"""The plain types of values: items, truths, sets and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Real

from ...core.dataclass import dataclass
from ...core.errors import InvalidValueError
from ...core.typing import TYPE_CHECKING, ClassVar, Final
from ...mechanisms import MAX_LENGTH
from .. import fields
from ..domain import Domain
from ..encodings import Encoded, SetEncoding, TextEncoding
from ..fields import Problems

if TYPE_CHECKING:
    from typing import Self

BOOLEAN_LABELS: Final = ("false", "true")
MEAN_OF: Final = "mean of "  # a key follows: so answers call the mean of its numbers

_MAX_LISTED: Final = 8  # labels; a screen has room for them


@dataclass(frozen=True)
class ItemDomain(Domain):
    """The items of a metric in order; a value is one of their labels.

    Subclasses make the item of other values.
    """

    labels: tuple[str, ...]

    table_keys = frozenset({"values"})

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the labels."""
        labels = fields.labels(f"{place}.values", entry.get("values"), problems)
        return cls(labels) if labels else None

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.labels)

    @cached_property
    def _index(self) -> Mapping[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def encode(self, value: object, metric: str) -> int | frozenset[int] | tuple[int, ...]:
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

    def as_given(self, encoded: Encoded) -> str | list[str]:
        """Return the label, or the labels, that *encoded* stands for."""
        assert isinstance(encoded, int)  # noqa: S101 - what encode returns
        return self.labels[encoded]

    def in_words(self, encoded: Encoded) -> str:
        """Return the value that *encoded* stands for, as people read it."""
        assert isinstance(encoded, int)  # noqa: S101 - what encode returns
        return self.item_in_words(encoded)

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"one of: {listed(self.labels)}"

    def canonical(self) -> dict[str, object]:
        """Return what the items mean, as JSON."""
        return {"values": list(self.labels)}


class BooleanDomain(ItemDomain):
    """False and true, in this order."""

    types: ClassVar[tuple[str, ...]] = ("boolean",)
    table_keys = frozenset()
    boolean = True
    aggregates: ClassVar[tuple[str, ...]] = ("last", "any")
    verb = "estimate"
    python_type = "bool"
    headline_form = "yes"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self:
        """Read nothing: all booleans are alike."""
        return cls(BOOLEAN_LABELS)

    def encode(self, value: object, metric: str) -> int:
        """Return 0 or 1.  Raises InvalidValueError: no bool."""
        truth = plain(value)
        if type(truth) is not bool:
            raise InvalidValueError(metric, "takes True or False")
        return int(truth)

    def answer_items(self) -> tuple[str, ...]:
        """Return "true": "false" is the rest."""
        return self.labels[1:]


@dataclass(frozen=True)
class CategoryDomain(ItemDomain):
    """Items by their labels.

    With ``other``, one of them, any other text is a value too, and is that item from the first step
    on: it is randomized as the item is, so nothing of the text itself is left.
    """

    other: str | None = None

    types: ClassVar[tuple[str, ...]] = ("category",)
    table_keys = frozenset({"values", "other"})

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the labels.  ``other`` is the last one unless it is among them."""
        values, other = entry.get("values"), entry.get("other")
        if "other" in entry:
            if not isinstance(other, str):
                problems.add(f"{place}.other", "must be a text, the item of all unlisted values")
                return None
            if isinstance(values, list) and other not in values:
                label = fields.value(f"{place}.other", "label", other, problems)
                values = values if label is None else [*values, label]
        labels = fields.labels(f"{place}.values", values, problems)
        return cls(labels, other if isinstance(other, str) else None) if labels else None

    @cached_property
    def _rest(self) -> int | None:
        """The item index of texts that are no label; None: there is none."""
        return None if self.other is None else self._index[self.other]

    def _find(self, label: object) -> int | None:
        """Return the item index of *label*, or None."""
        item = super()._find(label)
        return self._rest if item is None and isinstance(label, str) else item

    def index_of(self, label: object, what: str) -> int:
        """Return the item index of *label*.  Raises InvalidValueError, which says of *what*."""
        if self.other is not None and not isinstance(label, str):
            raise InvalidValueError(what, "takes a text")
        return super().index_of(label, what)

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return super().form + self._others

    @property
    def _others(self) -> str:
        return "" if self.other is None else f"; anything else counts as {self.other}"

    def canonical(self) -> dict[str, object]:
        """Return what the items mean, as JSON."""
        meaning = super().canonical()
        return meaning if self.other is None else {**meaning, "other": self.other}

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        if self.other is None:
            return ""
        return f"One of {listed(self.labels)}{self._others}. "


@dataclass(frozen=True)
class SetDomain(CategoryDomain):
    """A value is a set of any number of the items.

    About how many it has is no part of what it means: a mechanism may cut larger sets, and then the
    number that it keeps is a parameter of its own.
    """

    expected_size: int | None = None

    table_keys = CategoryDomain.table_keys | {"expected_size"}
    types: ClassVar[tuple[str, ...]] = ("set",)
    encodes = SetEncoding
    several = True
    aggregates: ClassVar[tuple[str, ...]] = ("last",)
    python_type = "Items[{label}]"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the labels, and about how many of them a device has."""
        domain, expected = super().read(place, entry, problems), entry.get("expected_size")
        if domain is None or "expected_size" not in entry:
            return domain
        if type(expected) is not int or not 1 <= expected <= domain.size:
            rule = f"must be how many items a device has at most, as a rule: 1 to {domain.size}"
            problems.add(f"{place}.expected_size", rule)
            return None
        return cls(domain.labels, domain.other, expected)

    @property
    def parameters(self) -> Mapping[str, int]:
        """The slots of a mechanism that has any, if it is known how many are needed."""
        return {} if self.expected_size is None else {"pad": self.expected_size}

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
        if self.other is not None:
            rule = "takes a list or set of texts"
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
        return f"any of: {listed(self.labels)}{self._others}"


@dataclass(frozen=True)
class TextDomain(Domain):
    """Texts: the first ``length`` bytes of UTF-8 count, cut between characters.

    Small and capital letters, and spaces, count as they are: the application decides what is alike.
    """

    length: int

    types: ClassVar[tuple[str, ...]] = ("string",)
    table_keys = frozenset({"length"})
    encodes = TextEncoding
    aggregates: ClassVar[tuple[str, ...]] = ("last",)
    verb = "heavy_hitters"
    answer_of = "string that is as long as can be"
    error_of = "of the share of a string that is named, as long as can be"
    python_type = "str"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the length."""
        length = entry.get("length")
        if type(length) is not int or not 2 <= length <= MAX_LENGTH:
            problems.add(f"{place}.length", f"must be the bytes that count, from 2 to {MAX_LENGTH}")
            return None
        return cls(length)

    @property
    def size(self) -> int:
        """The most bytes of a value, which is what a mechanism of strings needs to know."""
        return self.length

    def encode(self, value: object, metric: str) -> bytes:
        """Return the bytes of *value*, cut to the length.

        Raises: InvalidValueError: no text, or one that UTF-8 cannot hold; it is not shown.
        """
        text = plain(value) if isinstance(value, str) else None
        if not isinstance(text, str):
            raise InvalidValueError(metric, "takes a text")
        try:
            # a character has a byte at least, so what follows cannot be within the length
            whole = text[: self.length + 1].encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidValueError(metric, "takes a text without lone surrogates") from None
        return whole[: self.length].decode("utf-8", "ignore").encode("utf-8")

    def as_given(self, encoded: object) -> str:
        """Return the text that *encoded* stands for."""
        assert isinstance(encoded, bytes)  # noqa: S101 - what encode returns
        return encoded.decode("utf-8")

    def in_words(self, encoded: object) -> str:
        """Return the text, or "an empty text"."""
        return self.as_given(encoded) or "an empty text"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"any text; its first {self.length} bytes count"

    def canonical(self) -> dict[str, object]:
        """Return what the texts mean, as JSON."""
        return {"length": self.length}

    def size_in_words(self) -> str:
        """Return how long a text can be."""
        return f"strings of up to {self.length:,} bytes"

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return f"Of a longer text the first {self.length} bytes of UTF-8 count. "


def plain(value: object) -> object:
    """Return *value* as text, truth value or number of Python's own, or as it is.

    Members of a StrEnum or IntEnum, and the scalars of numpy, which is not imported, stand for what
    they are equal to.
    """
    kind = type(value)
    if kind is str or kind is bool or kind is int or kind is float:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a subclass's own may say something else
    if isinstance(value, bool | int | float | Decimal | Fraction):
        return value
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return bool(value)
    try:
        if isinstance(value, Integral):
            return int(value)
        return float(value) if isinstance(value, Real) else value
    except (TypeError, ValueError, OverflowError):
        return value  # no metric takes it


def listed(labels: Sequence[str]) -> str:
    """Return the first of *labels*, and how many more there are."""
    rest = len(labels) - _MAX_LISTED
    return ", ".join(labels[:_MAX_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")
