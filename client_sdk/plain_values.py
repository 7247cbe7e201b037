"""What a value is once the type that a program gave it is left aside."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real


def plain(value: object) -> object:
    """Return *value* as text, truth value or number of Python's own, or as it is.

    Members of a StrEnum or IntEnum, and the scalars of numpy, which is not imported, stand for what
    they are equal to.
    """
    kind = type(value)
    if kind is str or kind is bool or kind is int or kind is float:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # not that of a subclass, which may say something else
    if isinstance(value, bool | int | float | Decimal | Fraction):
        return value
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return bool(value)
    try:
        if isinstance(value, Integral):
            return int(value)
        return float(value) if isinstance(value, Real) else value
    except (TypeError, ValueError, OverflowError):
        return value  # which no metric takes
