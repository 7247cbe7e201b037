"""A breakdown as a table of bars in HTML: name, bar with its interval, value, ± and change.

Bars begin at zero and share a scale, so that lengths compare as numbers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..analytics.rows import AGAINST, ITEM, SHARE, TIME, Chart, Row
from .charts.distribution import cell_of
from .charts.frame import Before, ChartOptions, named, remarks, subtitle_of, unit_words, varying
from .charts.marks import joined
from .charts.svg import Element, element, markup
from .letters import one_line
from .numbers import POINTS, ends_of, extent, finest, margin, numbers_of, reading, value_of

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


def bar_table(
    rows: Sequence[Row], title: str, options: ChartOptions, before: Before | None = None
) -> str:
    """Return *rows*, of which ``is_breakdown`` is true, as a ``table`` of HTML and its notes.

    Args: before: with the changes since an earlier period, which get a column.
    """
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
    changes = {row.dimensions.get(name, ""): row for row in before.changes} if before else {}
    period = f"change: {before.name}" if before and changes else ""
    changed = (element("th", "change", scope="col"),) if changes else ()
    shown = list(zip(rows, labels, strict=True))[:most]
    body = [
        element(
            "tr",
            *_cells(row, label, end or 1.0, least, options),
            *([_change(changes.get(row.dimensions[name]))] if changes else ()),
            data_row=_said(row, label),
        )
        for row, label in shown
    ]
    table = element(
        "table",
        element("caption", one_line(subtitle_of(rows, common, unit_words(unit), period))),
        element("thead", element("tr", *heads, *changed)),
        element("tbody", *body),
        class_="chart-table breakdown",
        aria_label=one_line(title),
    )
    texts = [note.text for note in remarks([row for row, _ in shown])]
    if len(rows) > most:
        texts.append(f"and {len(rows) - most:,} more")
    if before and before.reason:
        texts.append(f"{before.name}: {before.reason}")
    notes = (element("p", text, class_="hint") for text in texts)
    return "".join(map(markup, (table, *notes)))


def _change(row: Row | None) -> Element:
    """Return the cell of a difference: bold where its interval leaves zero out, or why none."""
    if row is None:
        return element("td", "none known", class_="reason")
    numbers = numbers_of(row)
    if numbers is None:
        return element("td", one_line(reading(row)), class_="reason")
    unit = POINTS if row.unit == SHARE else row.unit
    half = margin(row, unit).replace(" ", "\N{NO-BREAK SPACE}")  # a phone breaks the line before it
    said = f"{value_of(row, unit, signed=True)} {half}"
    is_sure = numbers.low > 0 or numbers.high < 0
    return element("td", element("strong", said) if is_sure else said, class_="nowrap")


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
