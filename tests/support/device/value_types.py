"""Types of values that no registry of the project has: a day of the week, and stars.

They are made known as any type is, by being declared.  Nothing in either package names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from client_sdk.core.errors import InvalidValueError
from client_sdk.registry.fields import Problems
from client_sdk.registry.types.items import ItemDomain
from client_sdk.registry.types.numbers import NumberDomain

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_STARS: Final = 5


class WeekdayDomain(ItemDomain):
    """A day of the week, from 1 for Monday."""

    types = ("weekday",)
    table_keys = frozenset()
    headline_form = "on {item}"
    python_type = "int"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, Any], problems: Problems) -> WeekdayDomain:
        """Read nothing: all weeks are alike."""
        return cls(DAYS)

    def encode(self, value: object, metric: str) -> int:
        """Return the item of a number.  Raises InvalidValueError."""
        if type(value) is not int or not 1 <= value <= len(DAYS):
            raise InvalidValueError(metric, "takes a day of the week, from 1 to 7")
        return value - 1

    def value_labels(self) -> tuple[str, ...]:
        """Return nothing: a value is a number."""
        return ()


class RatingDomain(NumberDomain):
    """Stars from one to ``max``."""

    types = ("rating",)
    table_keys = frozenset({"max"})
    python_type = "int"

    @classmethod
    def read(cls, place: str, entry: Mapping[str, Any], problems: Problems) -> RatingDomain | None:
        """Read how many stars can be given."""
        most = entry.get("max", MOST_STARS)
        if type(most) is not int or most < 2:
            problems.add(f"{place}.max", "must be an integer of at least 2")
            return None
        return cls(Fraction(1), Fraction(most), Fraction(1), "stars")

    def canonical(self) -> dict[str, object]:
        """Return how many stars can be given."""
        return {"max": int(self.maximum)}

    def size_in_words(self) -> str:
        """Return how many stars there are."""
        return f"{self.size} stars"
