"""The charts and tables of a page, kept where the same were drawn before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import chain
from sys import getsizeof
from typing import Final, NamedTuple

from markupsafe import Markup
from msgspec import structs

from ...analytics.rows import AGAINST, ALL, DEVICES, ITEM, MEASURE, TIME, Chart, Row
from ...query.cache import packed
from ...rendering.bar_table import bar_table, is_breakdown
from ...rendering.charts import Before, ChartOptions, Mark, page_chart, pictures_of
from ...rendering.charts.frame import measure_words, varying
from ...rendering.possible import possible
from ...rendering.tables import table_of
from ...rendering.wording import worded
from ..services import services

HEIGHT, WHOLE_HEIGHT = 220, 260  # user units of a plot: in a column, and of the whole width
WINDOW: Final = "window"
_PAIR: Final = "pair"
MOST_ROWS: Final = 20  # of a table; the file has them all
_KIND: Final = "drawing"  # keeps its keys apart from the keys of answers
_OF_TIME: Final = frozenset({TIME, WINDOW})


class Subject(NamedTuple):
    """The facts of a panel that its drawing depends on, apart from the numbers."""

    id: str
    title: str
    chart: Chart
    is_boolean: bool  # its items are yes and no
    every: str  # how long the epochs are, "" if that differs
    most_rows: int  # of a chart
    link: Callable[[Row], str] | None  # data, as every argument is: what it refers to is known
    full: bool = False  # it has the whole width of the page


class Drawing(NamedTuple):
    """The charts of an answer, each with its heading, "" if there is one, and its table."""

    charts: tuple[tuple[str, Markup], ...]
    table: Markup

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return sum(map(getsizeof, (self.table, *chain.from_iterable(self.charts))))


def drawing_of(
    subject: Subject,
    rows: Sequence[Row],
    facts: Mapping[str, object],
    marks: Sequence[Mark],
    before: Before | None,
) -> Drawing:
    """Return the drawing of *rows*, kept where the same was drawn before.

    It is kept by every number and text of the arguments, and nothing else may change it.
    """
    drawings, whole = services().pages, packed((_KIND, subject, rows, facts, marks, before))
    key = None if whole is None else sha256(whole).digest()
    drawing: Drawing | None = drawings.get(key)
    if drawing is None:
        words = partial(
            worded, is_boolean=subject.is_boolean, every=subject.every, chart=subject.chart
        )
        table = table_of(words(rows), subject.title, most=MOST_ROWS, facts=facts)
        charts = _charts(subject, rows, facts, marks, before, words)
        drawing = Drawing(tuple(charts), Markup(table))  # noqa: S704  # it escapes
        drawings.put(key, drawing, drawing.size)
    return drawing


def _charts(
    subject: Subject,
    rows: Iterable[Row],
    facts: Mapping[str, object],
    marks: Sequence[Mark],
    before: Before | None,
    words_of: Callable[[Sequence[Row]], list[Row]],
) -> Iterator[tuple[str, Markup]]:
    """Yield a chart, or one a measure where shares of different groups stand in one answer."""
    drawn: dict[str, list[Row]] = {}
    for row in possible(rows, subject.chart):
        if row.dimensions.get(TIME) != ALL:
            drawn.setdefault(row.dimensions.get(MEASURE, ""), []).append(row)
    for number, (measure, some) in enumerate(drawn.items()):
        words = measure_words(measure)
        plain = labelled(words_of([_plain_row(row) for row in some]))
        past = before and replace(before, rows=words_of(_past_of(before, measure)))
        name = f"{subject.title} {words}".strip()
        if is_breakdown(subject.chart, plain):
            options = ChartOptions(most_rows=subject.most_rows, link=subject.link)
            table = Markup(bar_table(plain, name, options, past))  # noqa: S704  # it escapes
            yield words if len(drawn) > 1 else "", table
            continue
        draw = partial(
            pictures_of, subject.chart, plain, name, facts=facts, marks=marks, before=past
        )
        chart = page_chart(
            draw,
            f"{identifier(subject.id)}-{number}",
            height=WHOLE_HEIGHT if subject.full else HEIGHT,
            most_rows=subject.most_rows,
            link=subject.link,
        )
        yield words if len(drawn) > 1 else "", Markup(chart)  # noqa: S704  # it escapes


def _past_of(before: Before, measure: str) -> list[Row]:
    """Return the rows of *before* that are of *measure*, as its panel draws them."""
    return [
        _plain_row(row)
        for row in possible(before.rows)
        if row.dimensions.get(TIME) != ALL and row.dimensions.get(MEASURE, "") == measure
    ]


def identifier(text: str) -> str:
    """Return *text* as the beginning of ids."""
    return "c-" + re.sub(r"[^A-Za-z0-9-]", "-", text)[:60]


def _plain_row(row: Row) -> Row:
    """Return *row* without its measure and how it was counted, which its panel shows."""
    dimensions = {
        WINDOW if name == TIME and "/" in value else name: value  # two windows make no line
        for name, value in row.dimensions.items()
        if name != MEASURE
    }
    notes = () if row.unit == DEVICES else row.notes
    if notes == row.notes and dimensions == row.dimensions:
        return row
    return structs.replace(row, dimensions=dimensions, notes=notes)


def labelled(rows: Sequence[Row]) -> Sequence[Row]:
    """Return differences with labels as short as they can be and still differ."""
    if not all(AGAINST in row.dimensions for row in rows):
        return rows
    telling = set(varying(rows)) or {ITEM}
    first = rows[0].dimensions if rows else {}
    groups = [name for name in first if name not in (AGAINST, ITEM)]
    if groups and telling == {ITEM} and not _OF_TIME & set(first):  # one group against another
        pair = f"{' · '.join(first[name] for name in groups)} against {first[AGAINST]}"
        items = [{ITEM: row.dimensions[ITEM]} if len(rows) > 1 else {} for row in rows]
        return [
            structs.replace(row, dimensions={_PAIR: pair, **item})
            for row, item in zip(rows, items, strict=True)
        ]
    return [
        structs.replace(row, dimensions={k: v for k, v in row.dimensions.items() if k in telling})
        for row in rows
    ]
