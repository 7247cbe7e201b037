"""Vectors: one number for each of several names, reported together, of which the mean is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt

from ..core.dataclass import dataclass
from ..core.errors import InvalidValueError
from ..core.typing import TYPE_CHECKING, Any, ClassVar, Final
from ..mechanisms import MAX_VECTOR, UNIT
from . import fields
from .domains import listed
from .fields import Problems
from .kinds import Domain, Encoded
from .number_domains import exact

if TYPE_CHECKING:
    from typing import Self

NORMS: Final = ("l2", "max")  # the first unless another is declared
_FARTHEST: Final = UNIT << 64  # of a number: beyond, the direction of a vector hardly changes


@dataclass(frozen=True)
class VectorDomain(Domain):
    """Vectors of one number for each of ``labels``, in ``unit``, of which the mean is told.

    The ``bound`` is that of the Euclidean length (``l2``) or that of every number (``max``).  A
    longer vector counts as that of the bound in its direction, a larger number as the bound.
    """

    labels: tuple[str, ...]
    norm: str
    bound: Fraction
    unit: str

    types: ClassVar[tuple[str, ...]] = ("vector",)
    table_keys = frozenset({"length", "values", "norm", "bound", "unit"})
    encodes = tuple
    ordered = False
    aggregates: ClassVar[tuple[str, ...]] = ("last",)
    verb = "vector"
    answer_of = "coordinate"
    hundredth = "% of the range"
    error_of = "of a coordinate, root mean square over all of them"
    python_type = "Sequence[float]"
    told_of = "mean of {item}"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, Any], problems: Problems) -> Self | None:
        """Read how many numbers there are or how they are called, their bound and their unit."""
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
        norm = fields.one_of(place, "norm", {"norm": NORMS[0], **entry}, NORMS, problems)
        bound = fields.decimal(f"{place}.bound", entry.get("bound", 1), problems)
        unit = fields.text(f"{place}.unit", entry.get("unit"), problems)
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
        cls, canonical: Mapping[str, Any], parameters: Mapping[str, int]
    ) -> Mapping[str, Any]:
        """Return the bound as a fraction."""
        return {**canonical, "bound": fields.fraction_of(canonical.get("bound"))}

    def as_json(self) -> dict[str, object]:
        """Return the bound as a float, and both the names and how many they are."""
        names = {"length": self.size, "values": list(self.labels)}
        return {**names, "norm": self.norm, "bound": float(self.bound), "unit": self.unit}

    def size_in_words(self) -> str:
        """Return how many numbers there are."""
        return f"{self.size:,} numbers"

    def value_labels(self) -> tuple[str, ...]:
        """Return nothing: a value is made of numbers."""
        return ()

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return f"{self.form[0].upper()}{self.form[1:]}; what is beyond counts as the bound. "


def _numbered(length: int) -> tuple[str, ...]:
    """Return the names of coordinates that have none."""
    return tuple(map(str, range(1, length + 1)))
