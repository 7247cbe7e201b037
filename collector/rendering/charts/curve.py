"""Curves of a plan: the error expected against the number of devices, for several ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...analytics.rows import SHARE
from ..letters import width_of
from ..numbers import POINTS, number, tick_labels
from .axes import label_width
from .frame import DEFAULT, PAD, ChartOptions, Note, Picture, finish, text, unit_words
from .marks import dot, line_path, stroke
from .scale import Log, log_ticks
from .svg import SERIES, SMALL, Drawn, Element, Placed, element, paint

_HEIGHT: Final = 240  # user units of the plot
_FOOT: Final = 36  # user units: labels, and the name of the axis
_LINE: Final = 15.0  # user units between labels


@dataclass(frozen=True)
class Curve:
    """Half-widths expected by numbers of devices, ascending; all above 0."""

    label: str
    points: tuple[tuple[float, float], ...]


def curve(
    curves: Sequence[Curve],
    title: str,
    options: ChartOptions = DEFAULT,
    unit: str = SHARE,
    devices: float | None = None,
    need: float | None = None,
) -> str:
    """Return an SVG of *curves* on logarithmic axes.

    Args: devices: that are expected, marked.  need: the half-width that is wished, marked.
    """
    return finish(curve_picture(curves, title, options, unit, devices, need), options)


def curve_picture(
    curves: Sequence[Curve],
    title: str,
    options: ChartOptions,
    unit: str = SHARE,
    devices: float | None = None,
    need: float | None = None,
) -> Picture:
    """Return the curves, at most SERIES of them."""
    drawn = [curve for curve in curves if curve.points][:SERIES]
    if not drawn:
        return Picture(title, "", "No curves.", (text("no curves", PAD, 12, "reason"),), 26.0)
    plot = _plot(drawn, unit, options, devices, need)
    body: list[Drawn] = [*_axes(plot, unit)]
    for i, curve in enumerate(drawn, 1):
        places = [(plot.x.at(n), plot.y.at(error)) for n, error in curve.points]
        body.append(element("path", d=line_path(places), **paint(f"line-{i}")))
    body += _references(plot, devices, need)
    body += _names(drawn, plot, options)
    notes = tuple(_notes(len(curves) - len(drawn), unit, devices, need))
    words = POINTS if unit == SHARE else unit_words(unit)
    subtitle = f"half-width of the interval, {words}" if unit else "half-width"
    description = _described(drawn, unit)
    return Picture(
        title,
        subtitle,
        description,
        tuple(body),
        _HEIGHT + 8 + _FOOT,
        notes,
        plot=(plot.x.start, plot.x.end),
    )


@dataclass(frozen=True)
class _Plot:
    x: Log
    y: Log
    xs: tuple[float, ...]
    ys: tuple[float, ...]


def _plot(
    curves: Sequence[Curve],
    unit: str,
    options: ChartOptions,
    devices: float | None,
    need: float | None,
) -> _Plot:
    ns = [n for curve in curves for n, _ in curve.points] + ([devices] if devices else [])
    errors = [e for curve in curves for _, e in curve.points] + ([need] if need else [])
    xs, ys = log_ticks(min(ns), max(ns)), log_ticks(min(errors), max(errors))
    left = PAD + max(width_of(label, SMALL) for label in _labels(ys, unit)) + 16
    right = max(label_width(curve.label) for curve in curves) + 26
    x = Log(
        min(ns), max(ns) if max(ns) > min(ns) else 2 * min(ns), left, options.width - PAD - right
    )
    y = Log(min(ys[0], min(errors)), max(ys[-1], max(errors)), 8 + _HEIGHT, 8)
    return _Plot(x, y, tuple(n for n in xs if x.low <= n <= x.high), ys)


def _labels(ticks: Sequence[float], unit: str) -> list[str]:
    """Return each tick with its own digits: steps of a logarithmic axis are not equal."""
    if unit == SHARE:
        return [number(100 * tick, "", 0) for tick in ticks]
    return [tick_labels((tick,), unit)[0] for tick in ticks]


def _count(devices: float) -> str:
    """Return a number of devices as a tick."""
    return f"{devices / 1e6:,.6g} M" if devices >= 1e6 else f"{devices:,.6g}"


def _axes(plot: _Plot, unit: str) -> Iterator[Drawn]:
    foot, left, right = plot.y.start, plot.x.start, plot.x.end
    for tick, label in zip(plot.ys, _labels(plot.ys, unit), strict=True):
        y = plot.y.at(tick)
        yield stroke(left, y, right, y, "grid")
        yield Placed(left, text(label, left - 6, y, "tick", "end"))
    yield stroke(left, foot, right, foot, "axis")
    free = float("-inf")
    for tick in plot.xs:
        x, label = plot.x.at(tick), _count(tick)
        half = width_of(label, SMALL) / 2
        yield stroke(x, 8, x, foot, "grid")
        if x - half >= free:
            yield Placed(x, text(label, x, foot + 12, "tick", "middle"))
            free = x + half + 10
    middle = (left + right) / 2
    yield Placed(middle, text("devices", middle, foot + 27, "note", "middle"))


def _references(plot: _Plot, devices: float | None, need: float | None) -> Iterator[Element]:
    if devices:
        x = plot.x.at(devices)
        yield stroke(x, 8, x, plot.y.start, "reference")
    if need:
        y = plot.y.at(need)
        yield stroke(plot.x.start, y, plot.x.end, y, "reference")


def _notes(left_out: int, unit: str, devices: float | None, need: float | None) -> Iterator[Note]:
    """Yield what stands below the plot, where no line runs through it at any width."""
    if devices:
        yield Note(f"Dashed line upwards: {_count(devices)} devices")
    if need:
        yield Note(f"Dashed line across: ± {number(need, _unit_of(unit), 0)} needed")
    if left_out:
        yield Note(f"and {left_out:,} more")


def _unit_of(unit: str) -> str:
    """Return the unit of a half-width: points for a share."""
    return POINTS if unit == SHARE else unit


def _names(curves: Sequence[Curve], plot: _Plot, options: ChartOptions) -> Iterator[Placed]:
    ends = sorted((plot.y.at(curve.points[-1][1]), i) for i, curve in enumerate(curves))
    last = float("-inf")
    shift = min(0.0, plot.y.start - (ends[0][0] + _LINE * (len(ends) - 1)))
    for y, i in ends:
        last = max(y + shift, last + _LINE)
        x = plot.x.end + 12
        end = plot.x.at(curves[i].points[-1][0])
        yield Placed(end, dot(end, y, i + 1, size=3.5))
        name = text(curves[i].label, x, last, "label", room=options.width - PAD - x)
        yield Placed(plot.x.end, name)


def _described(curves: Sequence[Curve], unit: str) -> str:
    ends = "; ".join(
        f"{curve.label}: ± {number(curve.points[-1][1], _unit_of(unit), curve.points[-1][1] / 3)}"
        f" at {curve.points[-1][0]:,.0f} devices"
        for curve in curves
    )
    return f"Curves of the error expected against devices, both axes logarithmic. {ends}."
