"""Tables of rows: in HTML under a chart, as comma-separated values, and as text for a terminal."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from types import MappingProxyType
from typing import Any, Final

from client_sdk.privacy.wording import counted

from ..analytics.rows import COLUMNS, LEFT_OUT, SHARE, Chart, Row, chance
from ..core import remarks as api
from ..core.cells import FACTS
from ..core.text_tables import above, table_lines
from .charts.frame import remarks
from .charts.svg import Element, element, markup
from .letters import one_line
from .numbers import (
    POINTS,
    end_words,
    ends_of,
    margin,
    number,
    numbers_of,
    range_of,
    reading,
    unit_of,
    value_of,
)
from .places import leading_columns, located, records_of
from .possible import possible
from .wording import last_day

_MOST: Final = 1_000  # rows of a page; the file has them all
# What a spreadsheet would run: a cell that begins so and is not a number or a range of numbers.
_FORMULA: Final = re.compile(r"[\s]*[=@]|[\t\r]|\s*[-+](?![\d.,\s–…-]*$)")
_NO_FACTS: Final[Mapping[str, Any]] = MappingProxyType({})
_WORDS: Final = {
    "pointwise": "each interval for itself",
    "simultaneous": "all intervals at once",
    "mixed": "intervals each for itself, where a row does not say otherwise",
}


def table_of(
    rows: Sequence[Row],
    caption: str = "",
    unit: str | None = None,
    most: int = _MOST,
    facts: Mapping[str, Any] = _NO_FACTS,
) -> str:
    """Return *rows* as a ``table`` of HTML: dimensions, value, interval, reports, and remarks.

    Args: unit: in place of the rows' own, such as POINTS for differences of shares.
          facts: of the answer; for a map they hold the places of its cells.
    """
    rows = located(rows, facts)
    names = _dimensions(rows)
    heads = [*names, "value", "±", "low", "high", "reports", "remarks"]
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in heads)))
    body = element(
        "tbody", *(element("tr", *_cells(row, names, unit or unit_of(row))) for row in rows[:most])
    )
    rest = len(rows) - most
    foot = element("tr", element("td", f"and {rest:,} more", colspan=str(len(heads))))
    return markup(
        element(
            "table",
            element("caption", one_line(caption)) if caption else None,
            head,
            body,
            element("tfoot", foot) if rest > 0 else None,
            class_="chart-table",
        )
    )


def csv_of(rows: Sequence[Row], facts: Mapping[str, Any] = _NO_FACTS) -> str:
    """Return *rows* as comma-separated values with a header: numbers exact, shares as parts of 1.

    Texts that a spreadsheet would run as a formula begin with an apostrophe.
    Args: facts: of the answer; of a map they bring the degrees of each cell.
    """
    names = leading_columns(rows, facts)
    columns = [*COLUMNS, *((LEFT_OUT,) if LEFT_OUT in facts else ())]
    out = StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([*map(inert, names), *columns])
    for record in records_of(rows, facts):
        writer.writerow([*(_plain(record.get(name)) for name in (*names, *columns))])
    return out.getvalue()


def _dimensions(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.dimensions))


def _cells(row: Row, names: Sequence[str], unit: str) -> Iterator[Element]:
    for name in names:
        yield element("th", one_line(row.dimensions.get(name, "")), scope="row")
    numbers = numbers_of(row)
    if numbers is None:
        yield element("td", one_line(reading(row, unit)), colspan="4", class_="reason")
    else:
        low, high = ends_of(row, unit)
        yield element("td", value_of(row, unit))
        yield element("td", margin(row, unit).strip("±() "))
        yield element("td", low)
        yield element("td", high)
    yield element("td", f"{row.n:,}")
    said = _remarks(row)
    yield element("td", said, class_="remarks" if said else None)


def _remarks(row: Row) -> str:
    influence = flip = None
    if row.fakes_to_flip:
        flip = f"{counted(row.fakes_to_flip, 'fake device')} could reverse it"
    if row.influence is not None:
        unit = POINTS if row.unit == SHARE else row.unit
        moved = number(row.influence, unit, abs(row.influence) / 2)
        influence = f"1 fake device in 100 could shift it by {moved}"
    parts = (
        "in progress" if row.is_open else None,
        chance(row.p_value) if row.p_value is not None else None,
        flip,
        influence,
        f"likely {number(row.shrunken, row.unit, row.std_error or 0.0)}: picked for its size"
        if row.shrunken is not None
        else None,
        end_words(row),
        row.note,
    )
    return one_line(" · ".join(part for part in parts if part))


def _plain(value: Any) -> Any:
    return inert(value) if isinstance(value, str) else "" if value is None else value


def inert(text: str) -> str:
    """Return *text* so that no spreadsheet runs it as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def lines_of(title: str, rows: Sequence[Row], meta: Mapping[str, Any]) -> Iterator[str]:
    """Yield the answer as text, one line after another.

    Args: meta: of the answer, as POST /v1/query returns it.
    """
    rows = possible(rows, Chart(meta["chart"]))
    yield one_line(title)
    if len(meta["metrics"]) == 1:  # two metrics together answer neither's question
        yield one_line(meta["metrics"][0]["question"])
    yield ""
    yield from _table(located(rows, meta["facts"]))
    yield ""
    yield from _basis(meta)
    for note in remarks(rows):
        yield f"note: {note.text}"
    for warning in meta["warnings"]:
        yield f"warning: {one_line(str(api.read(warning)))}"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    names = _dimensions(rows)
    cells = [[*names, "value", "±", "reports", ""]]
    for row in rows:
        where = [one_line(row.dimensions.get(name, "")) for name in names]
        if numbers_of(row) is None:
            value, after, reason = range_of(row) or "–", "", one_line(row.reason or "no number")
        else:
            value, after, reason = value_of(row), margin(row).removeprefix("± "), ""
        cells.append([*where, value, after, f"{row.n:,}", reason])
    return table_lines(cells, "<" * len(names) + ">>><")


def _basis(meta: Mapping[str, Any]) -> Iterator[str]:
    level = f"{100 * (1 - meta['alpha']):g} %"
    yield f"{counted(meta['n'], 'report')}; {level}, {_WORDS[meta['intervals']]}"
    for metric in meta["metrics"]:
        window = metric["window"]
        stretch = " to ".join(
            dict.fromkeys((window["from"], last_day(window["to"], metric["every"])))
        )
        yield f"{metric['name']}: {stretch}; ε {metric['epsilon_per_report']:.3g} a report"
        if sources := metric.get("sources"):
            ways = ", ".join(f"{sources[fact]:,} {fact}" for fact in FACTS)
            yield f"{metric['name']}: of {counted(sources['of'], 'report')}, {ways}"
        if shuffled := metric.get("epsilon_shuffled"):
            yield f"{metric['name']}: shuffled ε: {_shuffled(shuffled)}"


def _shuffled(claim: Mapping[str, Any]) -> str:
    """Return a claim for shuffled reports, never without what it assumes."""
    if "because" in claim:
        return f"none is stated: {one_line(claim['because'])}"
    bound = f"at most {above(claim['epsilon'])}, but for a chance of {above(claim['delta'])}"
    return f"{bound}, if {one_line('; '.join(claim['assumes']))}"
