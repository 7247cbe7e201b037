"""The forms in which an answer is sent: JSON, CSV, Arrow, and flat records for dashboards."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from werkzeug.datastructures import MIMEAccept
from werkzeug.exceptions import NotAcceptable

from ...analytics.rows import TIME, Row, flat
from ...core.errors import QueryError
from ...query import Answer
from ...rendering.tables import csv_of

ARROW: Final = "application/vnd.apache.arrow.stream"
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}")
_BEGINNING: Final = "0000-01-01T00:00:00Z"  # what a label of time leaves out
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Form:
    """A form: how it is asked for, named on the wire, and made."""

    name: str  # of ?format=
    media_type: str
    body: Callable[[Answer], bytes]
    charset: str = ""

    @property
    def content_type(self) -> str:
        """The media type as a header says it."""
        return self.media_type + (f"; charset={self.charset}" if self.charset else "")


def _json(reply: Answer) -> bytes:
    return _encode(reply) + b"\n"


def _records(reply: Answer) -> bytes:
    """Return one flat object a row, with time as RFC 3339 has it: what Grafana reads as it is."""
    records = []
    for row in reply.rows:
        record = flat(row)
        if TIME in record:
            record[TIME] = rfc3339(record[TIME])
        records.append(record)
    return _encode(records) + b"\n"


def _arrow(reply: Answer) -> bytes:
    try:
        import pyarrow as pa
    except ImportError:
        rule = (
            "this collector has no Arrow: install hearsay-telemetry[archive], or take json or csv"
        )
        raise NotAcceptable(rule) from None
    names = columns(reply.rows)
    records = [flat(row) for row in reply.rows]
    table = pa.table({name: [record.get(name) for record in records] for name in names})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


FORMS: Final = (
    Form("json", "application/json", _json),
    Form("csv", "text/csv", lambda reply: csv_of(reply.rows).encode(), "utf-8"),
    Form("arrow", ARROW, _arrow),
    Form("rows", "application/json", _records),
)


def form_of(parameters: Mapping[str, str], accepted: MIMEAccept) -> Form:
    """Return the form that ``format`` in *parameters* names, or else the best that is *accepted*.

    Raises: QueryError: there is no such form.
    """
    name = parameters.get("format")
    if name is None:
        best = accepted.best_match([form.media_type for form in FORMS[:3]])
        return next((form for form in FORMS if form.media_type == best), FORMS[0])
    for form in FORMS:
        if form.name == name:
            return form
    raise QueryError(f"format: must be one of {', '.join(form.name for form in FORMS)}")


def columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns of flat *rows*: dimensions as they come, then those of numbers."""
    dimensions = dict.fromkeys(name for row in rows for name in row.dimensions)
    numbers = (name for name in Row.__dataclass_fields__ if name != "dimensions")
    return [*dimensions, *(name for name in numbers if name not in dimensions)]


def rfc3339(label: str) -> str | None:
    """Return the beginning of a stretch of time, whose *label* may leave out what is smallest.

    None for a label that is no time.
    """
    moment = label.partition("/")[0].removesuffix("Z")
    return moment + _BEGINNING[len(moment) :] if _TIME.match(moment) else None
