"""Marks: what stands for a row, with its numbers as data for a pointer.

Also what noise alone could show: the interval of an estimate whose truth is zero, of one or many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from client_sdk.privacy.wording import counted

from ...analytics.rows import Row
from ..letters import one_line
from ..numbers import bounds_of, ends_of, finest, numbers_of, reading, value_of
from .frame import ChartOptions
from .scale import Linear
from .svg import Drawn, Element, coordinate, element, paint

CAP: Final = 4.0  # user units, half the end of a whisker
_DOT: Final = 4.0  # user units, half a marker
# One shape a series after the first, of the same area as its circle of radius 1: its corners.
_SHAPES: Final = (
    ((-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)),
    ((0.0, -1.3), (1.2, 0.85), (-1.2, 0.85)),
    ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)),
    ((0.0, 1.3), (1.2, -0.85), (-1.2, -0.85)),
    (
        *((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)),
        *((0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
    ),
)
_BETWEEN: Final = "  "
_FEWEST: Final = 3  # rows: of one row alone nothing is known about zero


@dataclass(frozen=True)
class Marker:
    """Makes the marks of the rows of one chart, in *unit*, all with as many decimals."""

    options: ChartOptions
    unit: str | None = None
    least: float | None = None  # the half-width that chooses the digits

    @classmethod
    def of(cls, options: ChartOptions, rows: Iterable[Row], unit: str | None = None) -> Marker:
        """Return what makes the marks of *rows*."""
        return cls(options, unit, finest(rows, unit))

    def mark(self, row: Row, label: str, *shapes: Drawn, titled: bool = True) -> Element:
        """Return *shapes* as the mark of *row*: hover shows its numbers, also without a script.

        Args: titled: also as a title, which costs as many bytes again.
        """
        alone = shapes[0] if len(shapes) == 1 and isinstance(shapes[0], Element) else None
        if not self.options.interactive:
            return alone or element("g", *shapes)
        is_titled = titled and not self.options.styled  # pages show it by a script, and in a table
        said = element("title", self._sentence(row, one_line(label))) if is_titled else None
        data = element("g", **self._data(row, label)).attributes
        if self.options.styled and alone and "class" not in alone.attributes:
            return Element(alone.tag, {**alone.attributes, **data}, alone.children)
        return Element("g", data, shapes if said is None else (said, *shapes))

    def hover_area(
        self, row: Row, label: str, place: tuple[float, float, float, float]
    ) -> Iterator[Element]:
        """Yield a mark that only reacts to a pointer, in a group painted "hover".

        Args: place: left, top, width and height.
        """
        if self.options.interactive:
            left, top, width, height = place
            corners = [(left, top), (left + width, top)]
            corners += [(x, top + height) for x, _ in reversed(corners)]
            yield element("path", d=f"{line_path(corners)}z", **self._data(row, label))

    def _data(self, row: Row, label: str) -> dict[str, str]:
        """Return the data of a tip, for the script of pages, as short as possible."""
        name, is_styled = one_line(label), self.options.styled
        if numbers_of(row) is None:
            data = {"data_row": name} if is_styled else {"class_": "mark", "data_label": name}
            return {**data, "data_reason": one_line(reading(row))}
        value = value_of(row, self.unit, least=self.least)
        low, high = ends_of(row, self.unit, self.least)
        if is_styled:
            return {
                "data_row": joined(name, value, *("" if e == value else e for e in (low, high)))
            }
        data = {"class_": "mark", "data_label": name, "data_value": value}
        return {**data, "data_low": low, "data_high": high}

    def _sentence(self, row: Row, label: str) -> str:
        words = reading(row, self.unit, least=self.least)
        said = f"{label}: {words}" if label else words
        note = _note(row)
        return f"{said} · {counted(row.n, 'report')}" + (f" · {note}" if note else "")


def joined(*texts: str) -> str:
    """Return *texts*, each of one line, as one: two blanks, which none of them has, lie between."""
    return _BETWEEN.join(texts).rstrip()


def span_around(scale: Linear, place: float, width: float) -> tuple[float, float]:
    """Return left end and width of what is *width* wide around *place*, within the scale."""
    left = max(place - width / 2, scale.start - _DOT)
    return left, min(place + width / 2, scale.end + _DOT) - left


def lying_whisker(row: Row, scale: Linear, y: float, style: str = "whisker") -> tuple[Element, ...]:
    """Return the interval of *row* along x, and a halo that sets it off from a bar below."""
    numbers = numbers_of(row)
    if numbers is None:
        return ()
    low, high = (coordinate(scale.within(end)) for end in (numbers.low, numbers.high))
    middle, top = coordinate(y), coordinate(y - CAP)
    caps = (  # none where it goes on beyond the axis
        f"M{coordinate(scale.at(end))},{top}v{2 * CAP:.0f}"
        for end in (numbers.low, numbers.high)
        if scale.low <= end <= scale.high
    )
    path = f"M{low},{middle}H{high}{''.join(caps)}"
    return tuple(element("path", d=path, **paint(name)) for name in ("halo", style))


def standing_whisker(
    row: Row, x: float, scale: Linear, style: str = "whisker", cap: float = CAP
) -> tuple[Element, ...]:
    """Return the interval of *row* along y."""
    numbers = numbers_of(row)
    bounds = bounds_of(row) if numbers is None else (numbers.low, numbers.high)
    if bounds is None:
        return ()
    low, high = (coordinate(scale.at(end)) for end in bounds)
    wide, left = f"h{coordinate(2 * cap)}", coordinate(x - cap)
    path = f"M{coordinate(x)},{low}V{high}M{left},{low}{wide}M{left},{high}{wide}"
    return (element("path", d=path, **paint(style)),)


def dot(
    x: float,
    y: float,
    series: int = 1,
    hollow: bool = False,
    size: float = _DOT,
    style: str | None = None,
) -> Element:
    """Return the marker of the *series*, counted from 1; hollow where it may still change."""
    own = f"{'ring' if hollow else 'dot'}-{series}"
    return _dot(x, y, series, size, paint(style or own))


def bare_dot(x: float, y: float, series: int, size: float) -> Element:
    """Return the marker of the *series* in a group that is painted as it."""
    return _dot(x, y, series, size, {})


def _dot(x: float, y: float, series: int, size: float, painted: Mapping[str, str]) -> Element:
    if series == 1:
        return element("circle", cx=x, cy=y, r=size, **painted)
    path = line_path([(x + size * right, y + size * down) for right, down in _SHAPES[series - 2]])
    return element("path", d=f"{path}z", **painted)


def cross(x: float, y: float) -> Element:
    """Return the mark of a place without a number."""
    return element(
        "path", d=f"M{coordinate(x - 3)},{coordinate(y - 3)}l6,6m0,-6l-6,6", **paint("gap")
    )


def missing_mark(left: float, width: float, scale: Linear) -> tuple[Element, ...]:
    """Return the mark of a stretch without a number: a strip with a cross near its upper end.

    Nothing of it stands at a number that the axis has a label for, least of all at zero.
    """
    top, foot = sorted((scale.start, scale.end))
    strip = rectangle(left, top, width, foot - top, "void")
    return strip, cross(left + width / 2, top + 9)


def line_path(points: Sequence[tuple[float, float]]) -> str:
    """Return the path through *points*, to a tenth: each by its way from the one before.

    That takes fewer letters.  Ways are those between rounded places, so they add up.
    """
    (x, y), *others = [(round(10 * x), round(10 * y)) for x, y in points]
    path = [f"M{_tenths(x)},{_tenths(y)}"]
    for to_x, to_y in others:
        path.append(_way(to_x - x, to_y - y))
        x, y = to_x, to_y
    return "".join(path)


@lru_cache(maxsize=4_096)  # points of a line are equally far apart
def _way(right: int, down: int) -> str:
    """Return a straight line by so many tenths of a user unit."""
    if not down:
        return f"h{_tenths(right)}"
    if not right:
        return f"v{_tenths(down)}"
    return f"l{_tenths(right)}{',' * (down > 0)}{_tenths(down)}"


def _tenths(number: int) -> str:
    sign, whole, rest = "-" * (number < 0), *divmod(abs(number), 10)
    return f"{sign}{whole or ''}.{rest}" if rest else f"{sign}{whole}"


def rectangle(x: float, y: float, width: float, height: float, style: str) -> Element:
    """Return a painted rectangle."""
    return element("rect", x=x, y=y, width=width, height=height, **paint(style))


def strokes(lines: Iterable[tuple[float, float, float, float]], style: str) -> Element:
    """Return painted straight lines, each from a place to another, as one element."""
    path = "".join(line_path([line[:2], line[2:]]) for line in lines)
    return element("path", d=path, **paint(style))


def stroke(x1: float, y1: float, x2: float, y2: float, style: str) -> Element:
    """Return a painted straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **paint(style))


def _note(row: Row) -> str | None:
    parts = ("in progress" if row.is_open else "", one_line(row.note or ""))
    return " · ".join(part for part in parts if part) or None


def noise_of(rows: Sequence[Row]) -> float | None:
    """Return the half-width of the band around 0, or None if rows of different n share none.

    The noise of a share hardly depends on the share, so the row nearest to zero decides.
    """
    numbered = [(row.n, numbers) for row in rows if (numbers := numbers_of(row))]
    if len(numbered) < _FEWEST or len({n for n, _ in numbered}) > 1:
        return None
    return min((abs(numbers.value), numbers.half_width) for _, numbers in numbered)[1] or None


def widening(rows: Sequence[Row]) -> float:
    """Return how many times as long the intervals of *rows* must be to hold all at once.

    Of rows that are sorted or picked nothing less holds.  1 if they do already.

    Source: Bonferroni, under any dependence; errors taken as normal.
    """
    single = [row for row in rows if numbers_of(row) and not row.simultaneous]
    factors = (_quantile(row.alpha / len(single)) / _quantile(row.alpha) for row in single)
    return max(factors, default=1.0)


def _quantile(alpha: float) -> float:
    """Return what a normal error exceeds, up or down, with *alpha*; ends of (0, 1) are cut off."""
    return -NormalDist().inv_cdf(min(max(alpha, 1e-300), 0.999) / 2)


def median_half_width(rows: Sequence[Row]) -> float | None:
    """Return the median half-width of *rows*, or None if none has a number."""
    halves = sorted(numbers.half_width for row in rows if (numbers := numbers_of(row)))
    return (halves[len(halves) // 2] or None) if halves else None
