"""One metric: a question with its domain, mechanism and epoch length, named by its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, TypeAlias

from .dataclass import dataclass
from .errors import InvalidValueError
from .limits import DIGEST_SIZE, MAX_EXPONENT
from .longitudinal import Longitudinal, TwoLayer
from .mechanism_choice import FAMILIES, Family
from .mechanisms import Mechanism
from .mechanisms._key_value import Pairs

Number: TypeAlias = int | float | Decimal | Fraction

BOOLEAN_LABELS: Final = ("false", "true")
MEAN_OF: Final = "mean of "  # and a key: how the mean of the key's numbers is called in answers

AGGREGATES: Final = {  # what a device can make of the values of an epoch, in words
    "sum": "the sum",
    "max": "the largest",
    "last": "the last",
    "most_common": "the most common",
    "any": "whether any was true",
}


@dataclass(frozen=True)
class ItemDomain:
    """The items of a metric in order.  ``boolean`` is the domain false, true.

    A value is one of the items or, if ``several``, a set of any number of them.
    """

    labels: tuple[str, ...]
    boolean: bool = False
    several: bool = False

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.labels)

    @cached_property
    def _index(self) -> Mapping[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def encode(self, value: object, metric: str) -> int | frozenset[int]:
        """Return the item index of *value*: a bool for a boolean metric, otherwise a label.

        If ``several``, *value* is a list, tuple, set or frozenset of labels, in any order and as
        often as you like, and the indices are returned.
        Raises: InvalidValueError: not in the domain; the error does not show the value.
        """
        if self.several:
            return self._encode_set(value, metric)
        if self.boolean:
            if type(value) is not bool:
                raise InvalidValueError(metric, "takes True or False")
            return int(value)
        return self.index_of(value, metric)

    def index_of(self, label: object, what: str) -> int:
        """Return the item index of *label*.  Raises InvalidValueError, which says of *what*."""
        item = self._index.get(label) if type(label) is str else None
        if item is None:
            raise InvalidValueError(what, f"takes one of its {self.size} registered values")
        return item

    def _encode_set(self, value: object, metric: str) -> frozenset[int]:
        held = value if isinstance(value, list | tuple | set | frozenset) else (None,)
        items = [self._index.get(label) if type(label) is str else None for label in held]
        known = frozenset(item for item in items if item is not None)
        if None in items:
            rule = f"takes a list or set of its {self.size} registered values"
            raise InvalidValueError(metric, rule)
        return known


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
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
            raise InvalidValueError(metric, "takes a number")
        if isinstance(value, Decimal) and value.is_finite() and not _is_moderate(value):
            raise InvalidValueError(metric, f"takes a number below 1e{MAX_EXPONENT}")
        try:
            return Fraction(value)
        except (ValueError, OverflowError):
            raise InvalidValueError(metric, "takes a finite number") from None


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


Domain: TypeAlias = ItemDomain | NumberDomain | KeyValueDomain
Encoded: TypeAlias = int | frozenset[int] | Fraction | Pairs  # what a mechanism randomizes


def fixed_parameters(domain: Domain) -> dict[str, int]:
    """Return the parameters of a mechanism that follow from the *domain* of its metric."""
    return {"pad": domain.most, "top": 1} if isinstance(domain, KeyValueDomain) else {}


@dataclass(frozen=True)
class Metric:
    """A metric as registered.  Two metrics with equal ``digest`` mean the same by a report."""

    name: str
    title: str
    question: str
    type: str
    domain: Domain
    mechanism_name: str
    mechanism: Mechanism[Any]
    every: str
    longitudinal: str
    segments: Mapping[str, tuple[str, ...]]  # dimension to its closed vocabulary
    expected_devices: int
    min_reports: int
    owner: str
    expires: date
    policy: Longitudinal | None = None  # of a metric that is not ``fresh``
    aggregate: str | None = None  # one of AGGREGATES: all values of an epoch make one report
    otherwise: Encoded | None = None  # reported of an epoch without a value; None: nothing is

    @property
    def epsilon(self) -> Fraction:
        """Nats per report, as asked for; the mechanism's ``spent`` is what is charged."""
        return self.mechanism.epsilon

    def encode(self, value: object) -> Encoded:
        """Return what the mechanism randomizes for *value*.  Raises InvalidValueError."""
        return self.domain.encode(value, self.name)

    @cached_property
    def most_nano(self) -> int:
        """The most that one report is charged, in nano-nats."""
        if self.policy is None:
            return self.mechanism.spent_nano
        return max(self.policy.nano_after(reports) for reports in (0, 1))

    @property
    def aggregation(self) -> str | None:
        """What of the values of an epoch is reported, in words; None if it is one value."""
        if self.aggregate is None or self.otherwise is None:
            return AGGREGATES.get(self.aggregate or "")
        return f"{AGGREGATES[self.aggregate]}, or else {in_words(self.domain, self.otherwise)}"

    @property
    def family(self) -> Family:
        """Which mechanisms can serve it."""
        return FAMILIES.get(self.type, isinstance(self.domain, ItemDomain))

    @cached_property
    def meaning(self) -> str:
        """All that changes the meaning of a report, in canonical form: sorted, compact JSON."""
        form = {
            "name": self.name,
            "type": self.type,
            "domain": _canonical(self.domain),
            "epsilon": str(self.epsilon),
            "every": self.every,
            "longitudinal": self.longitudinal,
            "mechanism": {"name": self.mechanism_name, **self.mechanism.parameters},
        }
        if isinstance(self.policy, TwoLayer):
            form["epsilon_permanent"] = str(self.policy.oracle.epsilon)
        if self.aggregate is not None:
            form["aggregate"] = self.aggregate
        if self.otherwise is not None:
            form["otherwise"] = _as_given(self.domain, self.otherwise)
        return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @cached_property
    def digest(self) -> bytes:
        """First 6 bytes of SHA-256 over ``meaning``: the metric's name on the wire and in Redis."""
        return hashlib.sha256(self.meaning.encode("ascii")).digest()[:DIGEST_SIZE]


def in_words(domain: Domain, encoded: Encoded) -> str:
    """Return a value as it was given, as far as *domain* can tell."""
    given = _as_given(domain, encoded)
    if isinstance(given, list):
        return ", ".join(given) or "none"
    if isinstance(given, dict):
        unit = _unit(domain)
        named = (f"{key}: {_rounded(number)} {unit}" for key, number in given.items())
        return ", ".join(named) or "none"
    return f"{_rounded(given)} {_unit(domain)}" if isinstance(domain, NumberDomain) else given


def _rounded(number: str) -> str:
    return f"{float(Fraction(number)):,.6g}"


def _unit(domain: Domain) -> str:
    numbers = domain.numbers if isinstance(domain, KeyValueDomain) else domain
    return numbers.unit if isinstance(numbers, NumberDomain) else ""


def _as_given(domain: Domain, encoded: Encoded) -> str | list[str] | dict[str, str]:
    """Return the label, labels or exact numbers that *encoded* stands for."""
    if isinstance(domain, ItemDomain):
        if isinstance(encoded, int):
            return domain.labels[encoded]
        assert isinstance(encoded, frozenset)  # noqa: S101 - what ItemDomain encodes to
        return [domain.labels[item] for item in sorted(encoded)]
    if isinstance(domain, NumberDomain):
        assert isinstance(encoded, int | Fraction)  # noqa: S101 - what NumberDomain encodes to
        return str(domain.minimum + domain.step * encoded)
    assert isinstance(encoded, Mapping)  # noqa: S101 - what KeyValueDomain encodes to
    keys, numbers = domain.keys.labels, domain.numbers
    exact = {keys[key]: numbers.minimum + numbers.step * at for key, at in encoded.items()}
    return {key: str(exact[key]) for key in sorted(exact)}


def _canonical(domain: Domain) -> dict[str, object]:
    """Return what the numbers and labels of *domain* mean, exactly."""
    if isinstance(domain, ItemDomain):
        return {"values": list(domain.labels)}
    if isinstance(domain, KeyValueDomain):
        numbers = _canonical(domain.numbers)
        del numbers["step"]  # the whole range, which nobody chose
        return {**_canonical(domain.keys), **numbers}
    return {
        "min": str(domain.minimum),
        "max": str(domain.maximum),
        "step": str(domain.step),
        "unit": domain.unit,
    }
