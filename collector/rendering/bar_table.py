"""A breakdown as a table of bars in HTML: name, bar with its interval, value and ±.

Bars begin at zero and share a scale, so that lengths compare as numbers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..analytics.rows import AGAINST, ITEM, TIME, Chart, Row
from .charts.distribution import cell_of
from .charts.frame import ChartOptions, named, remarks, subtitle_of, unit_words, varying
from .charts.marks import joined
from .charts.svg import Element, element, markup
from .letters import one_line
from .numbers import ends_of, extent, finest, margin, numbers_of, reading, value_of

_WIDTH, _HEIGHT = 100.0, 12.0  # of a bar, in units that its cell stretches
_REACH: Final = 2.0  # how high the line of an interval is
_OTHERS: Final = frozenset({TIME, ITEM})  # what a chart shows better


def is_breakdown(kind: Chart, rows: Sequence[Row]) -> bool:
    """Return whether *rows* are numbers of groups that no bar from zero shows wrongly."""
    names = varying(rows)
    numbered = [numbers for row in rows if (numbers := numbers_of(row))]
    return (
        kind == Chart.ROWS
        and len(names) == 1
        and not _OTHERS.intersection(names)
        and not any(AGAINST in row.dimensions for row in rows)
        and len({row.unit for row in rows}) == 1
        and bool(numbered)
        and all(numbers.low >= 0 for numbers in numbered)
    )


def bar_table(rows: Sequence[Row], title: str, options: ChartOptions) -> str:
    """Return *rows*, of which ``is_breakdown`` is true, as a ``table`` of HTML and its notes."""
    is_place = all(cell_of(row.item) for row in rows)  # which the title names
    labels, common = named(rows, unsaid=(ITEM,) if is_place else ())
    (name,) = varying(rows)
    unit, most = rows[0].unit, options.most_rows
    _, end = extent(rows, 0.0)
    least = finest(rows)
    heads = (
        element("th", name.replace("_", " "), scope="col"),
        element("td"),
        element("th", "value", scope="col"),
        element("th", "±", scope="col"),
    )
    shown = list(zip(rows, labels, strict=True))[:most]
    body = [
        element("tr", *_cells(row, label, end or 1.0, least, options), data_row=_said(row, label))
        for row, label in shown
    ]
    table = element(
        "table",
        element("caption", one_line(subtitle_of(rows, common, unit_words(unit)))),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
        class_="chart-table breakdown",
        aria_label=one_line(title),
    )
    texts = [note.text for note in remarks([row for row, _ in shown])]
    if len(rows) > most:
        texts.append(f"and {len(rows) - most:,} more")
    notes = (element("p", text, class_="hint") for text in texts)
    return "".join(map(markup, (table, *notes)))


def _said(row: Row, label: str) -> str:
    """Return the numbers of *row*, for the script that tells them at the pointer."""
    if numbers_of(row) is None:
        return joined(one_line(label))
    return joined(one_line(label), value_of(row), *ends_of(row))


def _cells(
    row: Row, label: str, end: float, least: float | None, options: ChartOptions
) -> Iterator[Element]:
    """Yield the cells of *row*.

    Args: end: of the scale.  least: the half-width that chooses the digits.
    """
    url = options.link(row) if options.link else ""
    said = one_line(label)
    yield element("th", element("a", said, href=url) if url else said, scope="row")
    numbers = numbers_of(row)
    if numbers is None:
        yield element("td", one_line(reading(row)), colspan="3", class_="reason")
        return
    scale = _WIDTH / end
    reach = element(
        "rect",
        x=scale * numbers.low,
        y=(_HEIGHT - _REACH) / 2,
        width=scale * (numbers.high - numbers.low),
        height=_REACH,
        class_="span",
    )
    bar = element("rect", width=scale * max(numbers.value, 0.0), height=_HEIGHT, class_="bar")
    drawn = element(
        "svg",
        bar,
        reach,
        class_="chart",
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_hidden="true",
    )
    yield element("td", drawn, class_="bars")
    yield element("td", value_of(row, least=least))
    yield element("td", margin(row, least=least).strip("±() "))
