"""An answer as text for people: a table with the digits that each interval deserves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from client_sdk.privacy.wording import counted

from .analytics.rows import Row
from .charts.letters import one_line
from .charts.number import margin, numbers_of, range_of, value_of
from .charts.remarks import remarks
from .core.text_tables import table_lines

_WORDS: Final = {
    "pointwise": "each interval for itself",
    "simultaneous": "all intervals at once",
    "mixed": "intervals each for itself, where a row does not say otherwise",
}


def lines_of(title: str, rows: Sequence[Row], meta: Mapping[str, Any]) -> Iterator[str]:
    """Yield the answer as text, one line after another.

    Args: meta: what the answer rests on, as POST /v1/query tells it.
    """
    yield one_line(title)
    for question in dict.fromkeys(metric["question"] for metric in meta["metrics"]):
        yield one_line(question)
    yield ""
    yield from _table(rows)
    yield ""
    yield from _basis(meta)
    for note in remarks(rows):
        yield f"note: {note.text}"
    for warning in meta["warnings"]:
        yield f"warning: {one_line(warning)}"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    names = list(dict.fromkeys(name for row in rows for name in row.dimensions))
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
        stretch = " to ".join(dict.fromkeys((window["from"], window["to"])))
        yield f"{metric['name']}: {stretch}; ε {metric['epsilon_per_report']:.3g} a report"
