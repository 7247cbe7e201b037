"""Numbers as people read them, with as many digits as their interval deserves and no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from math import ceil, floor, isfinite, log10
from typing import Final, NamedTuple

from ..analytics.rows import RELATIVE, SHARE, Row
from .letters import ELLIPSIS, one_line

POINTS: Final = "points"  # the unit of a difference of shares, in percentage points
MINUS: Final = "\u2212"
_SYMMETRIC: Final = 0.15  # of the half-width: how far the arms of ± may differ from each other
_KNOWN: Final = 9  # digits after the first at most, however small the interval is
_GREATEST: Final = 1e300  # beyond, and of what is not finite, nothing is drawn
_SIGN: Final = 3  # more digits than an interval deserves, where the sign hangs on them
_MORE: Final = 2  # digits by which a number may differ from what its interval deserves, for a chart
_WHOLE: Final = 2.0  # the least half-width that is shown without decimals
_UNIT: Final = 16  # letters
_DUST: Final = 1e-9  # of a digit: 0.30000000000000004 is 0.3
_PLAIN: Final = (1e-6, 1e12)  # numbers beyond are written with a power of ten
_SIZES: Final = ((1e13, 0.0, ""), (1e9, 1e9, " bn"), (1e6, 1e6, " M"), (1e5, 1e3, " k"))  # at axes
_PLURAL: Final = re.compile(r"(?=.*[aeiouy])[a-z]{2,}[a-hj-rtv-z]s")  # an English word: no "ms"
_NO_PLURAL: Final = frozenset({"atlas", "bias", "canvas", "iops", "lens", "series", "species"})
_EXACT: Final = 4  # significant digits of a number without noise, if it is not whole
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def span(values: Iterable[float]) -> tuple[float, float]:
    """Return the least and the greatest of the finite *values*; 0 and 0 if there are none."""
    finite = [value for value in values if isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 0.0)


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
    value, low, high = row.value, row.ci_low, row.ci_high
    if value is None or low is None or high is None:
        return None
    least, most = -_GREATEST, _GREATEST
    if least <= value <= most and least <= low <= most and least <= high <= most:
        return tuple.__new__(Numbers, (value, low, high))  # half the time of its own, of 8,000
    return None


def bounds_of(row: Row) -> tuple[float, float] | None:
    """Return the bounds of a row that has them and no number."""
    if row.value is not None or row.ci_low is None or row.ci_high is None:
        return None
    return row.ci_low, row.ci_high


def extent(rows: Iterable[Row], *also: float) -> tuple[float, float]:
    """Return the least and the greatest of all values and ends of *rows*, and of *also*.

    A value lies outside its interval where post-processing moved it.
    """
    intervals = [numbers for row in rows if (numbers := numbers_of(row) or bounds_of(row))]
    return span([*also, *(number for numbers in intervals for number in numbers)])


def number(value: float, unit: str, half_width: float, signed: bool = False) -> str:
    """Return *value* with its unit, in digits that an interval of ±*half_width* deserves.

    The last digit shown is the first of the half-width, or its second if the first is a 1.
    Shares are shown in percent.
    """
    factor, suffix = _scaled(unit)
    return _joined(_digits(factor * value, factor * half_width, signed), suffix)


def plus_minus(
    half_width: float,
    unit: str,
    value: float | None = None,
    *,
    precision: float | None = None,
    suffix: str = "",
) -> str:
    """Return the half-width without its unit, as it stands after a value: "± 0.3".

    Rounded up, so that what is shown holds all of the interval, also around the rounded *value*.

    Args: precision: the half-width that chooses the digits, if another.
          suffix: a unit that it has all the same.
    """
    factor, _ = _scaled(unit)
    digits = factor * (half_width if precision is None else precision)
    reach = _digits(_reach(factor * half_width, digits, value and factor * value), digits)
    return f"± {_joined(reach, suffix)}"


def finest(rows: Iterable[Row], unit: str | None = None) -> float | None:
    """Return the half-width whose digits all of *rows* are shown with: the least that is known.

    It chooses at most one digit more than the row deserves that deserves the fewest.
    """
    known = [
        (_precision(numbers, factor), numbers.half_width, factor)
        for row in rows
        if row.std_error and (numbers := numbers_of(row)) and numbers.half_width
        for factor, _ in (_scaled(unit or unit_of(row)),)
    ]
    if not known:
        return None
    least, _, factor = min(known)
    widest = max(half for _, half, _ in known)
    return least if _last(factor * least) <= _last(factor * widest) + 1 else widest / 10


def margin(
    row: Row, unit: str | None = None, least: float | None = None, *, in_words: bool = False
) -> str:
    """Return what stands after the value: "± 0.3", or "(0.8 to 2.1)" if the arms differ.

    Of a number that the range cuts off it is "(at the lower end)".

    Args: least: of its chart, as ``finest`` returns it, so that all numbers have as many decimals.
          in_words: of a share, name the points: "± 0.3 points".
    """
    numbers = numbers_of(row)
    if numbers is None:
        return ""
    value, low, high = numbers
    if not numbers.half_width:
        return f"({end_words(row)})" if row.end else ""
    factor, _ = _scaled(unit or unit_of(row))
    if not row.std_error:  # bounds, which are counted
        return f"({_exact(factor * low)} to {_exact(factor * high)})"
    precision = _shared(numbers, least, factor)
    if _is_symmetric(numbers):
        name = unit or unit_of(row)
        suffix = f" {POINTS}" if in_words and name == SHARE else ""
        arm = _longer_arm(numbers)
        return plus_minus(arm, name, value, precision=precision, suffix=suffix)
    ends = _rounded_ends(numbers, factor, factor * precision)
    return "({} to {})".format(*(_digits(end, factor * precision) for end in ends))


def unit_of(row: Row) -> str:
    """Return the unit of *row* as people name it: shares differ by percentage points."""
    return POINTS if row.unit == SHARE and row.p_value is not None else row.unit


def end_words(row: Row) -> str | None:
    """Return at which end of its range *row* is cut off, None if it is not."""
    return row.end and f"at the {row.end} end"


def value_of(
    row: Row, unit: str | None = None, signed: bool = False, least: float | None = None
) -> str:
    """Return the number of *row* with its unit, "" if it has none; what is counted in full."""
    numbers = numbers_of(row)
    if numbers is None:
        return ""
    unit_name = unit or unit_of(row)
    factor, _ = _scaled(unit_name)
    precision = _shared(numbers, least, factor) if row.std_error else 0.0
    return number(numbers.value, unit_name, precision, signed)


def ends_of(row: Row, unit: str | None = None, least: float | None = None) -> tuple[str, str]:
    """Return the ends of the interval of *row* with their unit, rounded outwards."""
    numbers = numbers_of(row)
    if numbers is None:
        return "", ""
    factor, suffix = _scaled(unit or unit_of(row))
    own = _shared(numbers, least, factor) if row.std_error else 0.0
    precision = factor * own
    ends = _rounded_ends(numbers, factor, precision)
    return _joined(_digits(ends[0], precision), suffix), _joined(
        _digits(ends[1], precision), suffix
    )


def reading(
    row: Row, unit: str | None = None, signed: bool = False, least: float | None = None
) -> str:
    """Return a row as words: "20.1 % ± 0.3", or the reason why there is no number."""
    numbers = numbers_of(row)
    if numbers is None:
        between = f"between {range_of(row, unit, ' and ')}" if bounds_of(row) else ""
        return "; ".join(filter(None, (between, row.reason))) or "no number"
    value = value_of(row, unit, signed, least)
    after = margin(row, unit, least)
    return f"{value} {after}" if after else value


def movement(before: Row, now: Row) -> str:
    """Return how a number changed, in words: "rose from 30 % ± 1 to 70 % ± 1"."""
    how = "rose" if (now.value or 0.0) > (before.value or 0.0) else "fell"
    return f"{how} from {reading(before)} to {reading(now)}"


def beside(now: Row, before: Row | None) -> str:
    """Return a count, and what it was: "2,401 devices against 2,310: 91 more (+3.9 %), exact"."""
    change = change_of(now, before)
    if before is None or not before.value or not change:
        return reading(now)
    return f"{reading(now)} against {_exact(before.value)}: {change}, exact"


def change_of(now: Row, before: Row | None) -> str:
    """Return how a count changed: "91 more (+3.9 %)"; "" if either is not known, or was 0."""
    if before is None or not before.value or now.value is None:
        return ""
    decimals = max(_EXACT - len(str(int(abs(now.value)))), 0)  # that *now* is read with
    change = round(now.value - before.value, decimals)
    how = f"{_exact(abs(change))} {'more' if change > 0 else 'fewer'}" if change else "no change"
    part = f" ({number(change / before.value, SHARE, 0.01, signed=True)})" if change else ""
    return f"{how}{part}"


def range_of(row: Row, unit: str | None = None, joined: str = " to ") -> str:
    """Return the bounds of a row that has no number: "6,000 to 42,000 devices"; "" of others.

    Bounds of a share are rounded outwards; others are counts.
    """
    bounds = bounds_of(row)
    if bounds is None:
        return ""
    factor, suffix = _scaled(unit or row.unit)
    low, high = (factor * end for end in bounds)
    half = (high - low) / 2 if factor > 1 else 0.0
    ends = -_outward(-low, half), _outward(high, half)
    return joined.join(_digits(end, half) for end in ends) + suffix


def tick_labels(ticks: Sequence[float], unit: str) -> list[str]:
    """Return the labels of *ticks*, which are equally far apart; only percent carries its unit."""
    factor, suffix = _scaled(unit)
    scaled = [factor * tick for tick in ticks]
    apart = abs(scaled[1] - scaled[0]) if len(scaled) > 1 else abs(scaled[0])
    most = max(map(abs, scaled))
    _, size, letter = next((sizes for sizes in _SIZES if most >= sizes[0]), (0.0, 1.0, ""))
    if not size or apart < _PLAIN[0]:
        return [_power(tick, 2) if tick else "0" for tick in scaled]
    places = _places(apart / size)
    after = suffix if unit in (SHARE, RELATIVE) else letter
    return [_fixed(tick / size, places) + (after if tick or factor > 1 else "") for tick in scaled]


def _scaled(unit: str) -> tuple[float, str]:
    if unit == SHARE:
        return 100.0, " %"
    if unit == RELATIVE:
        return 100.0, " %"
    if unit == POINTS:
        return 100.0, " points"
    return 1.0, f" {_short(unit)}" if unit else ""


def _joined(digits: str, suffix: str) -> str:
    """Return a number and its unit: one point, two points."""
    return digits + (_singular(suffix) if digits.lstrip(f"+{MINUS}") == "1" else suffix)


def _singular(suffix: str) -> str:
    """Return the unit of one thing: a page, a query; "ms" and what has no plural stay."""
    unit = suffix.removeprefix(" ")
    if not _PLURAL.fullmatch(unit) or unit in _NO_PLURAL:
        return suffix
    if unit.endswith("ies"):
        return f" {unit.removesuffix('ies')}y"
    is_long = unit.endswith(("ches", "shes", "sses", "xes"))
    return f" {unit.removesuffix('es' if is_long else 's')}"


def _short(unit: str) -> str:
    """Return *unit* as it stands after a number: a line of at most _UNIT letters."""
    line = one_line(unit)
    return line if len(line) <= _UNIT else line[: _UNIT - 1] + ELLIPSIS


def _digits(value: float, half_width: float, signed: bool = False) -> str:
    sign = "+" if signed and value > 0 else ""
    if half_width <= 0 or not isfinite(half_width):
        return sign + _exact(value)
    decimals = min(_last(half_width), _KNOWN - (Decimal(value).adjusted() if value else 0))
    if half_width >= _PLAIN[0] and abs(value) <= _PLAIN[1]:
        text = _fixed(value, decimals)
        return sign + text if text.strip("0.,") else text
    rounded = round(value, decimals)
    return sign + (_power(rounded, Decimal(rounded).adjusted() + decimals) if rounded else "0")


@lru_cache(maxsize=4_096)  # a row is drawn twice, and each time has a mark, a label and a cell
def _precision(numbers: Numbers, factor: float) -> float:
    """Return the half-width that chooses the digits of an interval, in the unit of the row.

    It is smaller than its own where rounding outwards would lead an end to 0 or across, by up to
    _SIGN digits: what the interval says of the sign is not rounded away.
    """
    half = numbers.half_width
    if factor == 1 and 0 < half < _WHOLE and all(each == round(each) for each in numbers):
        half = _WHOLE  # of a grid of whole numbers, where decimals mean nothing
    if numbers.low <= 0 <= numbers.high:
        return half
    tried = (half / 10**more for more in range(_SIGN + 1))
    return next(
        (
            precision
            for precision in tried
            if not _touches_zero(numbers, factor, factor * precision)
        ),
        half,
    )


def _shared(numbers: Numbers, least: float | None, factor: float) -> float:
    """Return the half-width that chooses the digits: *least*, unless it hides what is known.

    That is the sign, or more than _MORE digits.
    """
    own = _precision(numbers, factor)
    if least is None or own <= 0:
        return own
    away = _last(factor * own) - _last(factor * least)
    is_sure = not numbers.low <= 0 <= numbers.high
    if abs(away) > _MORE or (
        away > 0 and is_sure and _touches_zero(numbers, factor, factor * least)
    ):
        return own
    return least


def _touches_zero(numbers: Numbers, factor: float, precision: float) -> bool:
    low, high = _rounded_ends(numbers, factor, precision)
    if low <= 0 <= high or not _is_symmetric(numbers):
        return low <= 0 <= high
    value = factor * numbers.value
    reach = _reach(factor * _longer_arm(numbers), precision, value)
    return abs(round(value, _last(precision))) <= reach * (1 + _DUST)


def _is_symmetric(numbers: Numbers) -> bool:
    """Return whether the interval can be written with ±: its arms are about as long.

    If it leaves out 0, so must the longer arm to either side: 44 (3 to 98) is not 44 ± 54.
    """
    arms = numbers.high - numbers.value, numbers.value - numbers.low
    if abs(arms[0] - arms[1]) > 2 * _SYMMETRIC * numbers.half_width:
        return False
    return numbers.low <= 0 <= numbers.high or abs(numbers.value) > max(arms)


def _longer_arm(numbers: Numbers) -> float:
    return max(numbers.high - numbers.value, numbers.value - numbers.low)


def _rounded_ends(numbers: Numbers, factor: float, precision: float) -> tuple[float, float]:
    """Return the ends of the interval, times *factor*, rounded outwards."""
    return -_outward(-factor * numbers.low, precision), _outward(factor * numbers.high, precision)


def _reach(half: float, precision: float, value: float | None) -> float:
    """Return *half* rounded up so that it holds the interval around the rounded *value*, too."""
    decimals = _last(precision) if precision > 0 and isfinite(precision) else 0
    moved = 0.0 if value is None else abs(value - round(value, decimals))
    return _outward(half + moved, precision)


def _outward(value: float, half_width: float) -> float:
    """Return *value* rounded up to the last digit that ±*half_width* deserves."""
    if half_width <= 0 or not isfinite(half_width) or not isfinite(value):
        return value
    scale = 10.0 ** min(_last(half_width), _KNOWN)
    return ceil(value * scale - _DUST) / scale if 0 < scale < _GREATEST else value


@lru_cache(maxsize=4_096)
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
    text = _fixed(value, max(_EXACT - whole, 0) if abs(value) >= 1 else _EXACT - _power_of(value))
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _power_of(value: float) -> int:
    """Return the power of ten of a number below 1, plus one; 0 of 0."""
    return Decimal(value).adjusted() + 1 if value else 0


def _power(value: float, decimals: int) -> str:
    """Return *value* with a power of ten and at most *decimals* digits after its point."""
    mantissa, _, power = f"{value:.{max(decimals, 0)}e}".partition("e")
    digits = mantissa.replace("-", MINUS)
    return f"{digits} × 10{str(int(power)).translate(_SUPERSCRIPTS)}"
