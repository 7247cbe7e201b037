"""Mechanisms over vectors: every coordinate of the mean is told by the same reports.

A value is a tuple of integers, its coordinates in parts of 1/UNIT of the bound.  The bound is that
of the Euclidean length, or with ``cube`` of every coordinate by itself.  Debiased, a coordinate x
is its position (x/UNIT + 1)/2 in its range, from 0 to 1, so that what is said of shares and of
positions holds of it.
"""

from __future__ import annotations

from abc import abstractmethod
from math import isqrt

from ..core.errors import InvalidParameterError, InvalidValueError
from ..core.typing import Final, TypeAlias
from .base import RatioMechanism
from .families import NumberReports

Vector: TypeAlias = tuple[int, ...]

UNIT: Final = 1 << 20  # parts of the bound; what rounding to them moves is below every error
MAX_VECTOR: Final = 4_096  # coordinates; drawing a report of more takes a device too long


class VectorMechanism(NumberReports[Vector], RatioMechanism[Vector]):
    """A mechanism over vectors of ``domain_size`` coordinates.  The first cells are sums of each.

    ``debias`` gives the sum of the positions of each coordinate; its variances are those of reports
    drawn at random, spread of the true vectors included.
    """

    cube: int  # 1: the bound is that of each coordinate; 0: that of the Euclidean length

    @property
    @abstractmethod
    def bias(self) -> float:
        """A bound of how far the expected mean of a coordinate is from the true one, as a part."""

    @property
    @abstractmethod
    def stretch(self) -> float:
        """How much reports scatter more along a line than across it, at most, as a part."""

    @abstractmethod
    def agrees(self, payload: bytes, value: Vector) -> bool:
        """Return whether a valid payload is among those that *value* makes likelier."""

    def validate(self) -> None:
        """Refuse vectors that are too long."""
        if self.domain_size > MAX_VECTOR:
            rule = f"must be at most {MAX_VECTOR}"
            raise InvalidParameterError("domain_size", self.domain_size, rule)
        super().validate()

    def require_value(self, value: Vector) -> None:
        """Raise InvalidValueError unless *value* is within the bound.  It is never shown."""
        if (
            type(value) is not tuple
            or len(value) != self.domain_size
            or not all(type(x) is int and -UNIT <= x <= UNIT for x in value)
        ):
            rule = f"must be {self.domain_size} integers from -{UNIT} to {UNIT}"
            raise InvalidValueError(self.name, rule)
        if not self.cube and sum(x * x for x in value) > UNIT * UNIT:
            raise InvalidValueError(self.name, f"must be of length {UNIT} at most")

    @property
    def radius_square(self) -> int:
        """The square of the longest vector within the bound."""
        return UNIT * UNIT * (self.domain_size if self.cube else 1)

    def length_of(self, value: Vector, steps: int) -> int:
        """Return the Euclidean length of *value* in *steps* of the longest, rounded down."""
        return isqrt(steps * steps * sum(x * x for x in value) // self.radius_square)
