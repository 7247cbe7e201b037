"""One metric: a question with its domain, mechanism and epoch length, named by its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, TypeAlias

from .errors import InvalidValueError
from .limits import DIGEST_SIZE, MAX_EXPONENT
from .mechanism_choice import FAMILIES, Family
from .mechanisms import ItemMechanism, MeanMechanism, Mechanism, SetMechanism

Number: TypeAlias = int | float | Decimal | Fraction

BOOLEAN_LABELS: Final = ("false", "true")


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
        item = self._index.get(value) if type(value) is str else None
        if item is None:
            raise InvalidValueError(metric, f"takes one of its {self.size} registered values")
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
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
            raise InvalidValueError(metric, "takes a number")
        if isinstance(value, Decimal) and value.is_finite() and not _is_moderate(value):
            raise InvalidValueError(metric, f"takes a number below 1e{MAX_EXPONENT}")
        try:
            exact = Fraction(value)
        except (ValueError, OverflowError):
            raise InvalidValueError(metric, "takes a finite number") from None
        clamped = min(max(exact, self.minimum), self.maximum)
        return (clamped - self.minimum) / self.step


def _is_moderate(value: Decimal) -> bool:
    """Whether *value* can become a Fraction without filling the memory."""
    return abs(value.adjusted()) <= MAX_EXPONENT


@dataclass(frozen=True)
class Metric:
    """A metric as registered.  Two metrics with equal ``digest`` mean the same by a report."""

    name: str
    title: str
    question: str
    type: str
    domain: ItemDomain | NumberDomain
    mechanism_name: str
    mechanism: Mechanism[Any]
    every: str
    longitudinal: str
    segments: Mapping[str, tuple[str, ...]]  # dimension to its closed vocabulary
    expected_devices: int
    min_reports: int
    owner: str
    expires: date

    @property
    def epsilon(self) -> Fraction:
        """Nats per report, as asked for; the mechanism's ``spent`` is what is charged."""
        return self.mechanism.epsilon

    def encode(self, value: object) -> int | frozenset[int] | Fraction:
        """Return what the mechanism randomizes for *value*.  Raises InvalidValueError."""
        return self.domain.encode(value, self.name)

    @property
    def is_frequency(self) -> bool:
        """Whether the answer is a share an item, rather than a mean."""
        return isinstance(self.mechanism, ItemMechanism | SetMechanism)

    @property
    def family(self) -> Family:
        """Which mechanisms can serve it."""
        return FAMILIES.get(self.type, isinstance(self.domain, ItemDomain))

    @property
    def is_mean(self) -> bool:
        """Whether the answer is a mean."""
        return isinstance(self.mechanism, MeanMechanism)

    @cached_property
    def meaning(self) -> str:
        """All that changes the meaning of a report, in canonical form: sorted, compact JSON."""
        domain = self.domain
        if isinstance(domain, ItemDomain):
            values: dict[str, object] = {"values": list(domain.labels)}
        else:
            values = {
                "min": str(domain.minimum),
                "max": str(domain.maximum),
                "step": str(domain.step),
                "unit": domain.unit,
            }
        form = {
            "name": self.name,
            "type": self.type,
            "domain": values,
            "epsilon": str(self.epsilon),
            "every": self.every,
            "longitudinal": self.longitudinal,
            "mechanism": {"name": self.mechanism_name, **self.mechanism.parameters},
        }
        return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @cached_property
    def digest(self) -> bytes:
        """First 6 bytes of SHA-256 over ``meaning``: the metric's name on the wire and in Redis."""
        return hashlib.sha256(self.meaning.encode("ascii")).digest()[:DIGEST_SIZE]
