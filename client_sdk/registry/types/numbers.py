"""Values with numbers in them: a number, and numbers by key."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.errors import InvalidValueError
from ...core.limits import MAX_EXPONENT
from ...core.typing import TYPE_CHECKING, ClassVar, Final
from ...mechanisms import MAX_DOMAIN_SIZE, Pairs
from .. import fields
from ..domain import Domain, NumberGrid
from ..encodings import Encoded, NumberEncoding, PairsEncoding
from ..fields import Problems
from .items import MEAN_OF, ItemDomain, listed, plain

if TYPE_CHECKING:
    from typing import Self

_NANOSECONDS: Final = {  # of units of time, as people write them
    unit: nanoseconds
    for names, nanoseconds in (
        ("ns nanosecond nanoseconds", 1),
        ("us µs μs microsecond microseconds", 1_000),
        ("ms millisecond milliseconds", 1_000_000),
        ("s sec second seconds", 1_000_000_000),
        ("min minute minutes", 60_000_000_000),
        ("h hour hours", 3_600_000_000_000),
    )
    for unit in names.split()
}


@dataclass(frozen=True)
class NumberDomain(NumberGrid):
    """NumberGrid from ``minimum`` to ``maximum`` on a public grid of ``step``, in ``unit``."""

    minimum: Fraction
    maximum: Fraction
    step: Fraction
    unit: str

    types: ClassVar[tuple[str, ...]] = ("number", "count", "duration")
    table_keys = frozenset({"min", "max", "step", "unit", "shape", "ask"})
    encodes = NumberEncoding
    aggregates: ClassVar[tuple[str, ...]] = ("sum", "max", "last")
    verb = "mean"
    answer_of = ""
    hundredth = "% of the range"
    error_of = "of the mean, wherever the numbers lie"
    python_type = "float"
    headline_form = "mean"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the range, its step and its unit."""
        low, high, unit = _range(place, entry, problems)
        step = fields.decimal(f"{place}.step", entry.get("step"), problems)
        if low is None or high is None or step is None:
            return None
        if low >= high:
            problems.add(f"{place}.min", f"must be below max, which is {float(high):g}")
            return None
        if step <= 0 or (high - low) % step:
            rule = f"must be positive and divide max - min, which is {float(high - low):g}"
            problems.add(f"{place}.step", rule)
            return None
        if (high - low) / step >= MAX_DOMAIN_SIZE:
            problems.add(f"{place}.step", f"must leave fewer than {MAX_DOMAIN_SIZE} grid points")
            return None
        return cls(low, high, step, unit)

    @property
    def grid(self) -> NumberDomain:
        """Itself."""
        return self

    @property
    def numbers(self) -> NumberDomain:
        """Itself."""
        return self

    @property
    def nanoseconds(self) -> int | None:
        """How many nanoseconds the unit has; None: it is none of time."""
        return _NANOSECONDS.get(self.unit)

    @property
    def extent(self) -> float:
        """The length of the range."""
        return float(self.maximum - self.minimum)

    @property
    def least(self) -> float:
        """The lower end of the range."""
        return float(self.minimum)

    @cached_property
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
        return exact(value, metric)

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

    @classmethod
    def declared(
        cls, canonical: Mapping[str, object], parameters: Mapping[str, int]
    ) -> Mapping[str, object]:
        """Return the range with fractions for texts."""
        return {**canonical, **_range_of(canonical)}

    def as_json(self) -> dict[str, object]:
        """Return the numbers as floats."""
        low, high, step = map(float, (self.minimum, self.maximum, self.step))
        return {"min": low, "max": high, "step": step, "unit": self.unit}

    def size_in_words(self) -> str:
        """Return how fine the grid is."""
        return f"{self.size:,} grid points"

    @property
    def ends(self) -> str:
        """The range as decimals without exponents."""
        low, high = (
            format(Decimal(end.numerator) / end.denominator, "f")
            for end in (self.minimum, self.maximum)
        )
        return f"from {low} to {high}"

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return f"{self.ends.capitalize()} {self.unit}; what lies beyond counts as the end. "


def _range(
    place: str, entry: Mapping[str, object], problems: Problems
) -> tuple[Fraction | None, Fraction | None, str]:
    low, high = (
        fields.decimal(f"{place}.{key}", entry.get(key), problems) for key in ("min", "max")
    )
    return low, high, fields.value(f"{place}.unit", "text", entry.get("unit"), problems, "")


def exact(value: object, metric: str) -> Fraction:
    """Return the number *value*, exactly.  Raises InvalidValueError: it is no finite one."""
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal | Fraction):
        raise InvalidValueError(metric, "takes a number")
    if isinstance(number, Decimal) and number.is_finite() and not _is_moderate(number):
        raise InvalidValueError(metric, f"takes a number below 1e{MAX_EXPONENT}")
    try:
        return Fraction(number)
    except (ValueError, OverflowError):
        raise InvalidValueError(metric, "takes a finite number") from None


def _range_of(canonical: Mapping[str, object]) -> dict[str, object]:
    """Return the ends and the step of *canonical* as fractions."""
    keys = canonical.keys() & {"min", "max", "step"}
    return {key: fields.fraction_of(canonical[key]) for key in keys}


def _is_moderate(value: Decimal) -> bool:
    """Whether *value* can become a Fraction without filling the memory."""
    return abs(value.adjusted()) <= MAX_EXPONENT


@dataclass(frozen=True)
class KeyValueDomain(Domain):
    """Mappings of some of the ``keys`` to ``numbers``, whose one step is the whole range.

    Mappings of up to ``most`` pairs count in full, of larger ones each pair for less than one.
    """

    keys: ItemDomain
    numbers: NumberDomain
    most: int

    types: ClassVar[tuple[str, ...]] = ("key_value",)
    table_keys = frozenset({"values", "min", "max", "unit", "most"})
    encodes = PairsEncoding
    aggregates: ClassVar[tuple[str, ...]] = ("last",)
    verb = "key_values"
    answer_of = "key"
    python_type = "Mapping[{label}, float]"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, object], problems: Problems) -> Self | None:
        """Read the keys, the range of their numbers, and how many pairs count in full."""
        labels = fields.labels(f"{place}.values", entry.get("values"), problems)
        if any(MEAN_OF + label in labels for label in labels):
            problems.add(f"{place}.values", f'must not hold both a key and "{MEAN_OF}" that key')
        kind = f"range.1.{len(labels)}"
        most = 1
        if labels:
            most = fields.value(f"{place}.most", kind, entry.get("most", len(labels)), problems, 1)
        low, high, unit = _range(place, entry, problems)
        if low is None or high is None or not labels:
            return None
        if low >= high:
            problems.add(f"{place}.max", "must be above min")
            return None
        return cls(ItemDomain(labels), NumberDomain(low, high, high - low, unit), most)

    @property
    def labels(self) -> tuple[str, ...]:
        """The keys in order."""
        return self.keys.labels

    @property
    def parameters(self) -> Mapping[str, int]:
        """How many pairs a mechanism counts in full."""
        return {"pad": self.most, "top": 1}

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
        pairs = self.as_given(encoded).items()
        named = (f"{key}: {self.numbers.rounded(number)}" for key, number in pairs)
        return ", ".join(named) or "none"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"{self.numbers.form} for each that applies of: {listed(self.keys.labels)}"

    def canonical(self) -> dict[str, object]:
        """Return what keys and numbers mean, exactly, as JSON."""
        numbers = self.numbers.canonical()
        del numbers["step"]  # the whole range, which no key sets
        return {**self.keys.canonical(), **numbers}

    @classmethod
    def declared(
        cls, canonical: Mapping[str, object], parameters: Mapping[str, int]
    ) -> Mapping[str, object]:
        """Return the keys, the range, and how many pairs count: the slots of the mechanism."""
        return {**canonical, **_range_of(canonical), "most": parameters.get("pad")}

    def as_json(self) -> dict[str, object]:
        """Return the keys, and the numbers as floats."""
        numbers = self.numbers.as_json()
        del numbers["step"]
        return {**self.keys.as_json(), **numbers, "most": self.most}

    def size_in_words(self) -> str:
        """Return how many keys there are."""
        return f"{self.size:,} keys, up to {self.most:,} held"

    @property
    def remark(self) -> str:
        """What the type in Python leaves open."""
        return self.numbers.remark
