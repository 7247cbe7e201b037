"""Numbers as people read them, with as many digits as their interval deserves and no more."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import floor, isfinite, log10
from typing import Final, NamedTuple

from ..analytics.rows import SHARE, Row

POINTS: Final = "points"  # the unit of a difference of shares, in percentage points
LEAST_P: Final = 0.001  # noise is not known well enough for less
MINUS: Final = "\u2212"
_SYMMETRIC: Final = 0.15  # of the half-width: how far the arms of ± may differ from each other
_PLAIN: Final = (1e-6, 1e15)  # numbers beyond are written with a power of ten
_SIZES: Final = ((1e13, 0.0, ""), (1e9, 1e9, " bn"), (1e6, 1e6, " M"), (1e5, 1e3, " k"))  # at axes
_EXACT: Final = 6  # significant digits of a number without noise
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Numbers(NamedTuple):
    """The numbers of a row that has them."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval, in the unit of the row."""
        return (self.high - self.low) / 2


def numbers_of(row: Row) -> Numbers | None:
    """Return value and interval, or None if the row has no number."""
    if row.value is None or row.ci_low is None or row.ci_high is None:
        return None
    found = Numbers(row.value, row.ci_low, row.ci_high)
    return found if all(map(isfinite, found)) else None


def number(value: float, unit: str, half_width: float, signed: bool = False) -> str:
    """Return *value* with its unit, in digits that an interval of ±*half_width* deserves.

    The last digit shown is the first of the half-width, or its second if the first is a 1.
    Shares are shown in percent.
    """
    factor, suffix = _scaled(unit)
    return _digits(factor * value, factor * half_width, signed) + suffix


def plus_minus(half_width: float, unit: str) -> str:
    """Return the half-width without its unit, as it stands after a value: "± 0.3"."""
    factor, _ = _scaled(unit)
    return f"± {_digits(factor * half_width, factor * half_width)}"


def margin(row: Row, unit: str | None = None) -> str:
    """Return what stands after the value: "± 0.3", or "0.8 to 2.1" where the arms differ."""
    found = numbers_of(row)
    if found is None:
        return ""
    value, low, high = found
    half = found.half_width
    if abs((high - value) - (value - low)) <= 2 * _SYMMETRIC * half:
        return plus_minus(half, unit or row.unit)
    factor, _ = _scaled(unit or row.unit)
    ends = [_digits(factor * end, factor * half) for end in (low, high)]
    return f"{ends[0]} to {ends[1]}"


def reading(row: Row, unit: str | None = None, signed: bool = False) -> str:
    """Return a row as words: "20.1 % ± 0.3", or the reason why there is no number."""
    found = numbers_of(row)
    if found is None:
        return row.reason or "no number"
    shown = number(found.value, unit or row.unit, found.half_width, signed)
    after = margin(row, unit)
    return f"{shown} {after}" if after.startswith("±") else f"{shown} ({after})"


def chance(p_value: float) -> str:
    """Return a p value in words: smaller ones than LEAST_P are said, not shown."""
    return f"p < {LEAST_P}" if p_value < LEAST_P else f"p = {p_value:.2g}"


def tick_labels(ticks: Sequence[float], unit: str) -> list[str]:
    """Return the labels of *ticks*, which are equally far apart; only percent carries its unit."""
    factor, suffix = _scaled(unit)
    scaled = [factor * tick for tick in ticks]
    apart = abs(scaled[1] - scaled[0]) if len(scaled) > 1 else abs(scaled[0])
    most = max(map(abs, scaled))
    _, size, letter = next((found for found in _SIZES if most >= found[0]), (0.0, 1.0, ""))
    if not size or apart < _PLAIN[0]:
        return [_power(tick, 2) if tick else "0" for tick in scaled]
    places = _places(apart / size)
    after = suffix if unit == SHARE else letter
    return [
        _fixed(tick / size, places) + (after if tick or unit == SHARE else "") for tick in scaled
    ]


def _scaled(unit: str) -> tuple[float, str]:
    if unit == SHARE:
        return 100.0, " %"
    if unit == POINTS:
        return 100.0, " points"
    return 1.0, f" {unit}" if unit else ""


def _digits(value: float, half_width: float, signed: bool = False) -> str:
    sign = "+" if signed and value > 0 else ""
    if half_width <= 0 or not isfinite(half_width):
        return sign + _exact(value)
    decimals = _last(half_width)
    if half_width >= _PLAIN[0] and abs(value) <= _PLAIN[1]:
        return sign + _fixed(value, decimals)
    known = round(value, decimals)
    return sign + (_power(known, Decimal(known).adjusted() + decimals) if known else "0")


def _last(half_width: float) -> int:
    """Return the decimals shown: negative are tens, hundreds and so on."""
    digits, _, power = f"{half_width:.1e}".partition("e")  # rounded, so that 0.0199… is 0.020
    return -int(power) + (float(digits) < 2)


def _places(step: float) -> int:
    """Return the decimals that ticks *step* apart need."""
    return max(0, -floor(log10(step) + 1e-9)) if step > 0 else 0


def _fixed(value: float, decimals: int) -> str:
    text = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    if text.startswith("-"):
        return text[1:] if not text.strip("-0.,") else MINUS + text[1:]
    return text


def _exact(value: float) -> str:
    if value and not _PLAIN[0] <= abs(value) <= _PLAIN[1]:
        return _power(value, _EXACT - 1)
    whole = len(str(int(abs(value))))
    text = _fixed(value, max(_EXACT - whole, 0))
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _power(value: float, decimals: int) -> str:
    """Return *value* with a power of ten and at most *decimals* digits after its point."""
    mantissa, _, power = f"{value:.{max(decimals, 0)}e}".partition("e")
    shown = mantissa.replace("-", MINUS)
    return f"{shown} × 10{str(int(power)).translate(_SUPERSCRIPTS)}"
