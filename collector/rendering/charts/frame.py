"""The frame of a picture: title, description, names of rows and units, and notes.

It makes a chart stand alone, and says once what a reader must know of all its rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from client_sdk.core.errors import InvalidParameterError

from ...analytics.rows import AGAINST, ITEM, MEASURE, POSSIBLE, RAW, RELATIVE, SHARE, Row
from ...core.remarks import Remark
from ..letters import one_line, shortened, wrapped
from ..numbers import POINTS, numbers_of
from .svg import (
    CSS,
    FONT,
    SMALL,
    TEXT,
    TITLE,
    Attribute,
    Drawn,
    Element,
    Placed,
    element,
    group,
    markup,
    paint,
)

PAD: Final = 10  # user units around everything
SEPARATOR: Final = " · "
_BOLD: Final = 1.06  # how much wider bold letters are
_LINE: Final = 18  # user units, of the title and of the subtitle
_NOTE: Final = 15  # user units a line
SAMPLE_WIDTH, SAMPLE_HEIGHT = 12, 9  # user units, of a sample before a note
NARROW: Final = 400  # user units, below which a chart is drawn for a phone
_NARROWEST, _WIDEST = 280, 2_000  # user units
_PREFIX: Final = re.compile(r"[A-Za-z][\w-]{0,63}", re.ASCII)
_ADDRESS: Final = re.compile(r"/(?![/\\])|https?://", re.ASCII)
_SINKS: Final = {SMALL: 4.0, TEXT: 4.2, TITLE: 5.2}  # from the middle of a line to its foot
_WORDS: Final = {
    SHARE: "share of devices",
    POINTS: "percentage points",
    RELATIVE: "relative to the control",
}
_MEASURES: Final = {
    "reached": "reached the step",
    "of the step before": "of those that reached the step before",
    "active": "active in the period",
    "of the first period": "of those active in the first period",
    "lift": "relative difference",
}
_MOST: Final = 3  # notes of single rows; the others are in tips and in the table


@dataclass(frozen=True)
class ChartOptions:
    """How a chart is shown, apart from what it shows.

    ``prefix`` begins its ids and must be unique within a page.  A chart that stands alone brings
    its style sheet and its paper.  ``most_rows`` bounds what is drawn of long answers.  A chart
    that is narrower than NARROW has its labels above its marks.
    """

    prefix: str = "chart"
    standalone: bool = False
    heading: bool = True  # the title is drawn; readers of screens get it anyway
    width: int = 640  # user units
    height: int = 220  # user units of the plot of a line over time
    most_rows: int = 20
    css_class: str = ""  # an extra class of the chart
    styled: bool = False  # the page has the style sheet, so that marks need but their classes
    interactive: bool = True  # marks carry their numbers for a pointer
    link: Callable[[Row], str] | None = None  # where a row leads, "" for nowhere

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise InvalidParameterError("prefix", self.prefix, "must be letters, digits, - and _")
        if not _NARROWEST <= self.width <= _WIDEST:
            rule = f"must be {_NARROWEST} to {_WIDEST}"
            raise InvalidParameterError("width", self.width, rule)
        if self.most_rows < 1:
            raise InvalidParameterError("most_rows", self.most_rows, "must be at least 1")

    @property
    def is_narrow(self) -> bool:
        """Whether labels and numbers have no room next to their marks."""
        return self.width < NARROW

    def linked(self, row: Row, drawn: Iterable[Drawn], hover_box: Element) -> Iterator[Drawn]:
        """Yield what is *drawn* of *row*, as a link if it leads somewhere.

        Args: hover_box: the area that reacts to a pointer.
        """
        url = self.link(row) if self.link else ""
        if not url:
            yield from drawn
        else:
            yield element("a", hover_box, *drawn, href=url)


@dataclass(frozen=True)
class Mark:
    """A note on a time axis: what happened *at* a time, as answers name it, such as a day.

    ``url`` leads to what it is about: a path of these pages, or an address of the web.
    """

    at: str
    text: str
    url: str = ""

    def __post_init__(self) -> None:
        if self.url and not _ADDRESS.match(self.url):
            raise InvalidParameterError("url", self.url, "must begin with /, http:// or https://")


@dataclass(frozen=True)
class Before:
    """The rows of an earlier period, drawn below a later period's at the same places.

    ``days`` is how much later a row is drawn than it was; ``name`` names the period.  ``changes``
    are differences from it, one a group, where there is a row a group and no line.  ``remarks``
    are of the earlier period alone, for the text next to the chart.
    """

    rows: Sequence[Row]
    days: int
    name: str
    reason: str = ""  # why there are no rows
    changes: Sequence[Row] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class Note:
    """A line below a chart, after the mark that it explains, if any."""

    text: str
    style: str | None = None  # of a small box
    line: str = ""  # the style of a line across it

    def sample(self, x: float = 0.0, y: float = 0.0) -> Iterator[Element]:
        """Yield what the note is about, in small, from *x* and *y* user units."""
        if self.style is not None:
            box = {"x": x, "y": y, "width": SAMPLE_WIDTH, "height": SAMPLE_HEIGHT}
            yield element("rect", **box, **paint(self.style))
        if self.line:
            middle = y + SAMPLE_HEIGHT / 2
            yield element(
                "line", x1=x, y1=middle, x2=x + SAMPLE_WIDTH, y2=middle, **paint(self.line)
            )


@dataclass(frozen=True)
class Picture:
    """What a kind of chart draws: a body *height* high, and the words around it.

    ``plot`` are the ends between which a page may stretch it; None if it is drawn for one width.
    What stands in columns is drawn in another way for a phone.  ``series`` are the names of its
    lines, if there are several, with their numbers.
    """

    title: str
    subtitle: str
    description: str
    body: tuple[Drawn, ...]
    height: float  # user units
    notes: tuple[Note, ...] = ()
    plot: tuple[float, float] | None = None  # user units
    has_columns: bool = False
    series: tuple[tuple[str, int], ...] = ()


DEFAULT: Final = ChartOptions()


def finish(picture: Picture, options: ChartOptions) -> str:
    """Return *picture* as the text of an SVG."""
    content, height = _framed(picture, options)
    return _document(picture.title, picture.description, content, height, options)


def stacked(title: str, pictures: Sequence[Picture], options: ChartOptions) -> str:
    """Return *pictures* below one another as one SVG named *title*."""
    content, top = [], 0.0
    for i, picture in enumerate(pictures):
        below, height = _framed(replace(picture, title="") if i else picture, options)
        content.append(group(below, transform=f"translate(0,{top:.0f})"))
        top += height
    description = " ".join(picture.description for picture in pictures)
    return _document(title, description, content, top, options)


def nothing(title: str, rows: Sequence[Row], options: ChartOptions) -> Picture:
    """Return the picture of *rows* without a number: their reasons, and how many have each."""
    reasons = Counter(row.reason or "no number" for row in rows)
    lines = [f"{n:,} × {reason}" for reason, n in reasons.most_common(5)] or ["no rows"]
    room = options.width - 2 * PAD
    shown = [part for line in lines for part in wrapped(line, TEXT, room)]
    body = [text(line, PAD, 12 + 18 * i, "reason", room=room) for i, line in enumerate(shown)]
    description = f"No numbers: {'; '.join(lines)}."
    return Picture(title, "", description, tuple(body), 18.0 * len(shown) + 8)


def text(
    content: str, x: float, y: float, style: str, anchor: str = "start", room: float | None = None
) -> Element:
    """Return one line whose middle is at *y*, shortened to *room* with the whole in its title."""
    painted = paint(style)
    size = float(painted["font_size"])
    whole = one_line(content)
    shown = whole if room is None else shortened(content, size, room)
    return element(
        "text",
        shown,
        element("title", whole) if shown != whole else None,
        x=x,
        y=y + _SINKS[int(size)],
        text_anchor=None if anchor == "start" else anchor,
        **painted,
    )


def level_of(rows: Iterable[Row]) -> str:
    """Return what the intervals of *rows* promise: "95 % intervals"."""
    numbered = [row for row in rows if row.value is not None]
    if not numbered:
        return ""
    if not any(row.std_error or row.end for row in numbered):  # counted, not estimated
        return "counted" if all(row.ci_low == row.ci_high for row in numbered) else "sure bounds"
    levels = {f"{100 * (1 - row.alpha):.6g} %" for row in numbered}
    at_once = ", all at once" if all(row.simultaneous for row in numbered) else ""
    return f"{' and '.join(sorted(levels))} intervals{at_once}"


def subtitle_of(rows: Sequence[Row], *first: str) -> str:
    """Return *first*, the level of the intervals and the number of reports, as one line."""
    counts = {row.n for row in rows}  # of rows without a number too: they are in view
    reports = f"{counts.pop():,} reports" if len(counts) == 1 else ""
    return SEPARATOR.join(part for part in (*first, level_of(rows), reports) if part)


def _framed(picture: Picture, options: ChartOptions) -> tuple[list[Element], float]:
    """Return the elements of *picture* and the height that they take."""
    room = options.width - 2 * PAD
    content, top = [], float(PAD)
    for words, style in ((picture.title, "title"), (picture.subtitle, "subtitle")):
        if style == "title" and not options.heading:
            continue
        for line in _as_lines(words, style, room):
            content.append(text(line, PAD, top + 8, style, room=room))
            top += _LINE
    content.append(group(picture.body, transform=f"translate(0,{top:.0f})"))
    top += picture.height
    for note in picture.notes:
        indent = PAD if note.style is None else PAD + 18
        content += note.sample(PAD, top + 3)
        for line in wrapped(note.text, SMALL, options.width - PAD - indent):
            content.append(text(line, indent, top + _NOTE / 2, "note"))
            top += _NOTE
    return content, top + PAD / 2


def _as_lines(words: str, style: str, room: float) -> list[str]:
    """Return *words* as lines: a title as at most two, the rest of the second is cut when drawn."""
    if not words:
        return []
    between = " " if style == "title" else SEPARATOR
    first, *others = wrapped(words, _BOLD * float(paint(style)["font_size"]), room, between)
    if style != "title":
        return [first, *others]
    return [first, between.join(others)] if others else [first]


def _document(
    title: str, description: str, content: Sequence[Element], height: float, options: ChartOptions
) -> str:
    high = -(-height // 1)
    alone = options.standalone
    paper = element("rect", width=options.width, height=high, **paint("paper"))
    size: dict[str, Attribute] = {"width": options.width, "height": high} if alone else {}
    root = titled(
        title,
        description,
        (element("style", CSS), paper, *content) if alone else content,
        options,
        viewBox=f"0 0 {options.width} {high:.0f}",
        **size,
    )
    return markup(root, options.styled)


def titled(
    title: str,
    description: str,
    content: Iterable[Drawn],
    options: ChartOptions,
    **size: Attribute,
) -> Element:
    """Return *content* as an SVG with its name and description for readers of screens."""
    names = f"{options.prefix}-title", f"{options.prefix}-desc"
    drawn = tuple(content)
    return element(
        "svg",
        element("title", one_line(title) or "Chart", id=names[0]),
        element("desc", one_line(description), id=names[1]) if options.interactive else None,
        *drawn,
        xmlns=None if options.styled else "http://www.w3.org/2000/svg",  # in HTML it has one
        class_=" ".join(filter(None, ("chart", options.css_class))),
        **size,
        role="group" if any(map(_leads, drawn)) else "img",  # an image holds no links
        aria_labelledby=" ".join(names if options.interactive else names[:1]),
        font_family=None if options.styled else FONT,
    )


def _leads(node: Drawn | str) -> bool:
    """Return whether *node* holds a link."""
    if isinstance(node, Placed):
        return _leads(node.drawn)
    return isinstance(node, Element) and (node.tag == "a" or any(map(_leads, node.children)))


def unit_words(unit: str) -> str:
    """Return what the numbers of an axis are."""
    return _WORDS.get(unit, unit)


def label_of(row: Row, without: Iterable[str] = ()) -> str:
    """Return the dimensions of *row* as one label, the item last."""
    left_out = {ITEM, MEASURE, *without}
    parts = [_part(name, value) for name, value in row.dimensions.items() if name not in left_out]
    item = "" if ITEM in without else row.dimensions.get(ITEM, "")
    return " · ".join(part for part in (*parts, item) if part)


def named(
    rows: Sequence[Row], without: Iterable[str] = (), unsaid: Iterable[str] = ()
) -> tuple[list[str], str]:
    """Return the labels of *rows* by what they differ in, and what all have in common.

    Args: without: dimensions left out of the labels.  unsaid: of what is common.
    """
    left_out = {*without, *(constant(rows) if len(rows) > 1 else ())}
    shared = [name for name in constant(rows) if len(rows) > 1 or name == MEASURE]
    said = [name for name in shared if name not in unsaid]
    common = " · ".join(_part(name, rows[0].dimensions[name]) for name in said)
    return [label_of(row, left_out) for row in rows], common


def varying(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the dimensions in which *rows* differ, in order."""
    each = [row.dimensions for row in rows]
    names = dict.fromkeys(chain.from_iterable(each))
    return tuple(name for name in names if len({own.get(name) for own in each}) > 1)


def constant(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the dimensions that all *rows* share with one value."""
    names = dict.fromkeys(chain.from_iterable(row.dimensions for row in rows))
    differing = varying(rows)
    return tuple(name for name in names if name not in differing)


def measure_words(measure: str) -> str:
    """Return the measure of a row, as a reader of reports calls it."""
    return _MEASURES.get(measure, measure)


def _part(name: str, value: str) -> str:
    if name == MEASURE:
        return measure_words(value)
    return f"against {value}" if name == AGAINST and value else value


_MOVED: Final = "shown as the nearest possible value; downloads keep the estimate"


def remarks(rows: Sequence[Row], still_open: str = "Current period, not complete") -> list[Note]:
    """Return the remarks on *rows*: open periods, post-processing, and their notes."""
    numbered = [row for row in rows if numbers_of(row)]
    notes = [Note(still_open)] if any(row.is_open for row in numbered) else []
    moved = sorted({row.postprocess for row in numbered if row.raw is not None} - {RAW})
    if POSSIBLE in moved:
        moved.remove(POSSIBLE)
        notes.append(Note(_MOVED))
    if moved:
        words = "values are post-processed ({}); intervals are of the unbiased numbers"
        notes.append(Note(words.format(", ".join(moved))))
    return [*notes, *map(Note, _note_texts(numbered))]


def _note_texts(rows: Sequence[Row]) -> Iterator[str]:
    counts = Counter(one_line(row.note) for row in rows if row.note)
    single = [note for note, count in counts.items() if count == 1 and len(rows) > 1]
    for note, count in counts.items():
        if count == len(rows):
            yield note
        elif count > 1:
            yield f"{count:,} of the {len(rows):,} shown: {note}"
    for row in rows if len(single) <= _MOST else ():
        if row.note and one_line(row.note) in single:
            yield f"{label_of(row)}: {one_line(row.note)}"
