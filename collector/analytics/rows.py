"""The rows of every answer: one number with its interval, or the reason why there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from client_sdk.core.epoch import DAY, HOUR, LENGTHS
from client_sdk.registry.domain import SHARE as SHARE

from ..core.remarks import Remark

if TYPE_CHECKING:
    from ..estimation.estimate import Estimate  # which loads numpy, and rows are drawn without it

AGAINST: Final = "against"  # the dimension of what a number is compared with
ALL: Final = "(all)"  # the value of a dimension that was summed over
REST: Final = "(rest)"  # of the same dimension: all other values together
ITEM: Final = "item"  # the dimension that names an item, a quantile, a bucket, a key
MEASURE: Final = "measure"  # the dimension of what a row tells of an item, if several things
REACHED: Final = "reached"  # such a measure that is a share of all devices
ACTIVE: Final = "active"  # another
LEFT_OUT: Final = "left_out"  # the fact of an answer that says what operators have taken out
TIME: Final = "time"  # the dimension of stretches of time
RELATIVE: Final = "relative"  # the unit of a difference as a part of what it is compared with
LOWER, UPPER = "lower", "upper"  # the ends of the range of a metric
DEVICES: Final = "devices"  # the unit of how many reported
RAW: Final = "raw"  # unbiased, as debiased
POSSIBLE: Final = "possible"  # moved to the nearest possible number, to be shown
BETWEEN: Final = "/"  # of the labels of the first and the last epoch of a stretch of several
_DATE: Final = len("2026-11-16")  # the label of a day, and of what begins on it
_MONTH: Final = len("2026-11")
SURE, LIKELY = "sure", "likely"  # to be there at all; by the interval, or but for one in ten
_LEAST_P: Final = 0.001  # noise is not known well enough for less
Quality: TypeAlias = Literal["good", "fair", "poor", "insufficient"]
GOOD: Final = "good"
FAIR: Final = "fair"
POOR: Final = "poor"
GOOD_RELATIVE_ERROR: Final = 0.05  # half-width over value
FAIR_RELATIVE_ERROR: Final = 0.25


class Chart(StrEnum):
    """The picture that the rows of a verb deserve."""

    ROWS = "rows"  # what the rows say themselves: a line of times, else bars or dots
    ORDERED = "ordered"  # bars whose rows have an order of their own
    STEPS = "steps"  # such bars, none of which can be longer than the one before
    QUANTILES = "quantiles"  # dots of items that are named by their level
    DIFFERENCES = "differences"
    TABLE = "table"  # of two dimensions
    CURVE = "curve"  # shares up to numbers, which never fall
    BUCKETS = "buckets"  # shares between numbers
    MAP = "map"


class Row(Struct, frozen=True):
    """One number with its interval, or ``value`` None and the ``refusal``: why there is no number.

    Where nothing but bounds is known, they are the ends of the interval, without a value.
    The interval and the standard error are those of the unbiased estimate, which is ``value`` or,
    where a ``postprocess`` other than raw changed it, ``raw``.
    """

    dimensions: Mapping[str, str]  # what the number is of: item, time, and dimensions of segments
    value: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    n: int  # reports
    alpha: float  # 1 - level of the interval
    quality: Quality
    unit: str = SHARE
    postprocess: str = RAW
    raw: float | None = None  # the unbiased number, where postprocess changed it
    shrunken: float | None = None  # a likelier share of what was picked for its size, beside
    simultaneous: bool = False  # all intervals of the answer hold at once with 1 - alpha
    is_open: bool = False  # the window is still running
    influence: float | None = None  # how far 1 % of fake devices could move it, in ``unit``
    p_value: float | None = None  # of a difference: were there none
    fakes_to_flip: int | None = None  # fake devices that could reverse a difference
    end: str | None = None  # LOWER or UPPER: the range cuts it off, so 0 is no known error
    certainty: str | None = None  # SURE or LIKELY, of what was found without a list
    notes: tuple[Remark, ...] = ()  # what a reader must know beside the number
    refusal: Remark | None = field(default=None, name="reason")

    @property
    def item(self) -> str:
        """What the number is of, within its slice; "" if the slice has one number."""
        return self.dimensions.get(ITEM, "")

    @property
    def note(self) -> str | None:
        """The notes in words, None without any."""
        return "; ".join(map(str, self.notes)) or None

    @property
    def reason(self) -> str | None:
        """Why there is no number, in words; None if there is one."""
        return None if self.refusal is None else str(self.refusal)


@dataclass(frozen=True)
class Findings:
    """What a verb found: rows, what it is sure to have to say beside them, and further facts.

    ``facts`` are of JSON types and go into ``meta`` of the answer under the verb's own names.
    """

    rows: tuple[Row, ...]
    warnings: tuple[Remark, ...] = ()
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def row_of(
    dimensions: Mapping[str, str], estimate: Estimate, n: int, alpha: float, unit: str, **more: Any
) -> Row:
    """Return the row of *estimate*; *more* are further fields of the row by name."""
    return Row(
        dimensions=dimensions,
        value=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        std_error=estimate.std_error,
        n=n,
        alpha=alpha,
        quality=quality_of(estimate),
        unit=unit,
        **more,
    )


def empty_row(
    dimensions: Mapping[str, str],
    n: int,
    alpha: float,
    unit: str,
    refusal: Remark,
    *,
    ends: tuple[float, float] | tuple[None, None] = (None, None),
    **more: Any,
) -> Row:
    """Return a row that says why it has no number, with *ends* if these bounds are known."""
    return Row(
        dimensions=dimensions,
        value=None,
        ci_low=ends[0],
        ci_high=ends[1],
        std_error=None,
        n=n,
        alpha=alpha,
        quality="insufficient",
        unit=unit,
        refusal=refusal,
        **more,
    )


def quality_of(estimate: Estimate) -> Quality:
    """Return how far *estimate* can be relied on: its half-width beside its value.

    An interval that misses its own value, since no truth gives it, is never a good one.
    """
    if not estimate.ci_low <= estimate.value <= estimate.ci_high:
        return POOR
    half_width = (estimate.ci_high - estimate.ci_low) / 2
    relative = half_width / abs(estimate.value) if estimate.value else float("inf")
    if relative <= GOOD_RELATIVE_ERROR:
        return GOOD
    return FAIR if relative <= FAIR_RELATIVE_ERROR else POOR


# of a flat row, after its dimensions: texts in words
COLUMNS: Final = (
    "value",
    "ci_low",
    "ci_high",
    "std_error",
    "n",
    "alpha",
    "unit",
    "quality",
    "postprocess",
    "raw",
    "shrunken",
    "simultaneous",
    "is_open",
    "influence",
    "p_value",
    "fakes_to_flip",
    "end",
    "certainty",
    "note",
    "reason",
)


def flat(row: Row, others: Collection[str] = ()) -> dict[str, object]:
    """Return *row* as one flat record: a column a dimension, then those of the number.

    Args: others: columns that stand beside these.
    """
    columns = {name: getattr(row, name) for name in COLUMNS}
    return {**{column_of(k, others): v for k, v in row.dimensions.items()}, **columns}


def column_of(dimension: str, others: Collection[str] = ()) -> str:
    """Return the name of the column of a *dimension*, which no column of numbers or *others* has.

    Segments and parts of a pair may be called "n"; no name of theirs holds a full stop.
    """
    return f"dimension.{dimension}" if dimension in COLUMNS or dimension in others else dimension


def with_item(dimensions: Mapping[str, str], item: str) -> dict[str, str]:
    """Return the dimensions of an item within a slice."""
    return {**dimensions, ITEM: item}


def units_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the units of *rows*, in order: numbers of different units share no scale."""
    return tuple(dict.fromkeys(row.unit for row in rows))


@dataclass(frozen=True)
class Period:
    """A stretch of time, as an answer names it: by the beginning of an epoch, in UTC.

    "2026-11-16T09:00Z" is an hour, "2026-11-16" a day or what begins on it, "2026-11" a month, and
    "a/b" the epochs from a to b.
    """

    label: str
    begin: datetime  # of the first epoch
    last: datetime  # beginning of the last epoch
    every: str  # how long an epoch is, as metrics say how often they are reported; "": unknown

    @classmethod
    def read(cls, label: str, every: str = "") -> Period | None:
        """Return the period that *label* names, None if it names no time."""
        first, _, last = label.partition(BETWEEN)
        begin, end = _moment(first), _moment(last or first)
        return cls(label, begin, end, every) if begin and end else None

    @property
    def hours(self) -> float:
        """Hours from the start of 1970 to its beginning."""
        return self.begin.timestamp() / HOUR

    @property
    def days(self) -> tuple[date, date] | None:
        """The first and the last day; None of hours and months, which are no epochs of days."""
        if any(len(part) != _DATE for part in self.label.split(BETWEEN)):
            return None
        length = max(LENGTHS.get(self.every, DAY) // DAY, 1)
        return self.begin.date(), self.last.date() + timedelta(days=length - 1)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(f"{text}-01" if len(text) == _MONTH else text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC)


def moment(label: str, stretch: str) -> str:
    """Return the stretch of time that *label* names, in words: "the week of 2026-11-16".

    Args: stretch: how long it is, as metrics say how often they are reported.
    """
    period = Period.read(label)
    days = period.days if period else None
    length = LENGTHS.get(stretch, 0) // DAY
    if days is None or (days[1] - days[0]).days >= max(length, 1):
        return label
    names = {"7d": f"the week of {days[0]}", "28d": f"the four weeks from {days[0]}"}
    return names.get(stretch, label)


def chance(p_value: float) -> str:
    """Return a p value in words: smaller ones than _LEAST_P are said, not shown."""
    return f"p < {_LEAST_P}" if p_value < _LEAST_P else f"p = {p_value:.2g}"
