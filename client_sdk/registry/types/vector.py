"""Vectors, numbers that are reported together and answered as a mean; and tastes.

A taste is a set of liked items of a public list.  It is reported as a vector: which items are
liked, and which two are liked together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt

from ...core.dataclass import dataclass
from ...core.epoch import ONCE
from ...core.errors import InvalidValueError
from ...core.typing import TYPE_CHECKING, ClassVar, Final
from ...mechanisms import MAX_VECTOR, UNIT
from .. import fields
from ..domain import Domain
from ..encodings import Encoded, VectorEncoding
from ..fields import Problems
from .items import ItemDomain, listed
from .numbers import exact

if TYPE_CHECKING:
    from typing import Self

_NORMS: Final = ("l2", "max")  # the first unless another is declared
MAX_TASTE: Final = 90  # items; their moment has 4,095 numbers, and one more item too many
_FARTHEST: Final = UNIT << 64  # of a number: beyond, the direction of a vector hardly changes


@dataclass(frozen=True)
class VectorDomain(Domain):
    """Vectors of one number for each of ``labels``, in ``unit``; answers are their mean.

    The ``bound`` limits the Euclidean length (``l2``) or every number (``max``).  A longer vector
    is scaled down to the bound, a larger number counts as the bound.
    """

    labels: tuple[str, ...]
    norm: str
    bound: Fraction
    unit: str

    types: ClassVar[tuple[str, ...]] = ("vector",)
    table_keys = frozenset({"length", "values", "norm", "bound", "unit", "learning"})
    encodes = VectorEncoding
    ordered = False
    aggregates: ClassVar[tuple[str, ...]] = ("last",)
    verb = "vector"
    answer_of = "coordinate"
    hundredth = "% of the range"
    error_of = "of a coordinate, root mean square over all of them"
    python_type = "Sequence[float]"
    headline_form = "mean of {item}"

    learned: ClassVar[type[Domain]]  # of those with ``learning``, which says itself that it is

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read how many numbers there are or how they are called, their bound and their unit."""
        if "learning" in entry:
            return cls.learned.read(place, entry, problems)  # type: ignore[return-value]  # as such
        before, length = len(problems.lines), entry.get("length")
        labels: tuple[str, ...] = ()
        if "values" in entry:
            labels = fields.labels(f"{place}.values", entry["values"], problems)
            if length not in (None, len(labels)):
                problems.add(f"{place}.length", "must be absent, or the number of values")
        elif type(length) is int and 2 <= length <= MAX_VECTOR:
            labels = _numbered(length)
        else:
            problems.add(f"{place}.length", f"must be how many numbers, from 2 to {MAX_VECTOR}")
        if len(labels) > MAX_VECTOR:
            problems.add(f"{place}.values", f"must be at most {MAX_VECTOR}")
        norm = fields.value(
            f"{place}.norm", "|".join(_NORMS), entry.get("norm", _NORMS[0]), problems
        )
        bound = fields.decimal(f"{place}.bound", entry.get("bound", 1), problems)
        unit = fields.value(f"{place}.unit", "text", entry.get("unit"), problems, "")
        if bound is not None and bound <= 0:
            problems.add(f"{place}.bound", "must be positive")
        if len(problems.lines) > before or norm is None or bound is None:
            return None
        return cls(labels, norm, bound, unit)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.labels)

    @property
    def extent(self) -> float:
        """The length of the range of a coordinate."""
        return 2 * float(self.bound)

    @property
    def least(self) -> float:
        """The lower end of that range."""
        return -float(self.bound)

    @property
    def parameters(self) -> Mapping[str, int]:
        """Which norm is bounded."""
        return {"cube": int(self.norm == "max")}

    def encode(self, value: object, metric: str) -> tuple[int, ...]:
        """Return the coordinates of *value* in parts of the bound, within it, rounded towards 0.

        Raises: InvalidValueError: another number of them, or what is not a finite number.
        """
        if type(value).__module__ in ("numpy", "array") and hasattr(value, "tolist"):
            value = value.tolist()
        if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
            raise InvalidValueError(metric, f"takes a list of {self.size} numbers")
        if len(value) != self.size:
            raise InvalidValueError(metric, f"takes a list of {self.size} numbers")
        over, under = UNIT * self.bound.denominator, self.bound.numerator
        parts = []
        for number in (exact(number, metric) for number in value):
            part = abs(number.numerator) * over // (number.denominator * under)
            parts.append(min(part, _FARTHEST) * (1 if number > 0 else -1))
        if self.norm == "max":
            return tuple(min(max(part, -UNIT), UNIT) for part in parts)
        whole = sum(part * part for part in parts)
        if whole <= UNIT * UNIT:
            return tuple(parts)
        root = isqrt(whole - 1) + 1  # rounded up
        return tuple(abs(part) * UNIT // root * (1 if part > 0 else -1) for part in parts)

    def as_given(self, encoded: Encoded) -> list[str]:
        """Return the exact numbers that *encoded* stands for."""
        assert isinstance(encoded, tuple)  # noqa: S101 - what encode returns
        return [str(self.bound * part / UNIT) for part in encoded]

    def in_words(self, encoded: Encoded) -> str:
        """Return the first of the numbers, rounded, in their unit."""
        numbers = [f"{float(Fraction(number)):,.6g}" for number in self.as_given(encoded)]
        return f"{listed(numbers)} {self.unit}"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        what = "each" if self.norm == "max" else "of a Euclidean length"
        return f"{self.size} numbers together, {what} of at most {float(self.bound):g} {self.unit}"

    def canonical(self) -> dict[str, object]:
        """Return what the numbers mean, exactly, as JSON."""
        named = self.labels != _numbered(self.size)
        names = {"values": list(self.labels)} if named else {"length": self.size}
        return {**names, "norm": self.norm, "bound": str(self.bound), "unit": self.unit}

    @classmethod
    def declared(
        cls, canonical: Mapping[str, object], parameters: Mapping[str, int]
    ) -> Mapping[str, object]:
        """Return the bound as a fraction."""
        if "learning" in canonical:
            return canonical
        return {**canonical, "bound": fields.fraction_of(canonical.get("bound"))}

    def as_json(self) -> dict[str, object]:
        """Return the bound as a float, and both the names and how many they are."""
        names = {"length": self.size, "values": list(self.labels)}
        return {**names, "norm": self.norm, "bound": float(self.bound), "unit": self.unit}

    def size_in_words(self) -> str:
        """Return how many numbers there are."""
        return f"{self.size:,} numbers"

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return f"{self.form[0].upper()}{self.form[1:]}; what is beyond counts as the bound. "


class TasteDomain(ItemDomain):
    """Sets of liked items.  A value counts as its moment, a vector of Euclidean length 1.

    With x the set as K zeros and ones, and y = x/|x|, the moment has the entries of the matrix
    y yᵀ: first the diagonal, in the order of the items, then the entries above it, row by row,
    times √2, so that the vector is as long as the matrix, |y|^2 = 1.  A device without likes is
    the vector of zeros, a value like any other.

    Of m liked items each has 1/m on the diagonal: the likes of a device count as one together.
    Answers show these; ``learn`` makes factors from the other entries.
    """

    types: ClassVar[tuple[str, ...]] = ("taste",)
    encodes = VectorEncoding
    ordered = False
    aggregates: ClassVar[tuple[str, ...]] = ("last",)
    verb = "vector"
    hundredth = "% of the range"
    error_of = "of an item's part of all likes, root mean square over all numbers of a report"
    unit = "% of likes"
    python_type = "Items[{label}]"
    headline_form = "likes of {item}"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the labels, which are few, and that a device is asked once."""
        labels = fields.labels(f"{place}.values", entry.get("values"), problems)
        if len(labels) > MAX_TASTE:
            rule = f"must be at most {MAX_TASTE}: a report of K items has K(K+1)/2 numbers, and"
            problems.add(f"{place}.values", f"{rule} drawing one of more than {MAX_VECTOR} is slow")
            return None
        if entry.get("every", ONCE) != ONCE:
            rule = f"must be {ONCE} for a taste: each report reveals more of all the likes"
            problems.add(f"{place}.every", rule)
            return None
        return cls(labels) if labels else None

    @property
    def size(self) -> int:
        """Number of entries of a moment."""
        return len(self.labels) * (len(self.labels) + 1) // 2

    @property
    def extent(self) -> float:
        """The length of the range of an entry, as of a vector: from -100 to 100 % of likes."""
        return 200.0

    @property
    def least(self) -> float:
        """The lower end of that range."""
        return -100.0

    @property
    def parameters(self) -> Mapping[str, int]:
        """That the Euclidean length is bounded."""
        return {"cube": 0}

    def encode(self, value: object, metric: str) -> tuple[int, ...]:
        """Return the moment of a list, tuple, set or frozenset of labels, in parts, rounded down.

        Raises: InvalidValueError: another type, what is no label, or more entries than items.
        """
        count = len(self.labels)
        if not isinstance(value, list | tuple | set | frozenset) or len(value) > count:
            rule = f"takes a list or set of at most {count}, its registered values"
            raise InvalidValueError(metric, rule)
        liked = {self.index_of(label, metric) for label in value}
        if not liked:
            return (0,) * self.size
        alone, together = UNIT // len(liked), isqrt(2 * UNIT * UNIT) // len(liked)
        pairs = [
            together if first in liked and second in liked else 0
            for first in range(count)
            for second in range(first + 1, count)
        ]
        return (*(alone if item in liked else 0 for item in range(count)), *pairs)

    def index_of(self, label: object, what: str) -> int:
        """Return the item index of *label*.  Raises InvalidValueError, which says of *what*."""
        item = self._find(label)
        if item is None:
            raise InvalidValueError(what, f"takes {len(self.labels)} registered values only")
        return item

    def as_given(self, encoded: Encoded) -> list[str]:
        """Return the liked items in order."""
        assert isinstance(encoded, tuple)  # noqa: S101 - what encode returns
        return [label for label, part in zip(self.labels, encoded, strict=False) if part]

    def in_words(self, encoded: Encoded) -> str:
        """Return the liked items in order, or "none"."""
        return ", ".join(self.as_given(encoded)) or "none"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"those that are liked of: {listed(self.labels)}"

    def size_in_words(self) -> str:
        """Return how many items there are, and how many numbers that makes."""
        return f"{len(self.labels):,} items, {self.size:,} numbers"


def _numbered(length: int) -> tuple[str, ...]:
    """Return the names of coordinates that have none."""
    return tuple(map(str, range(1, length + 1)))
