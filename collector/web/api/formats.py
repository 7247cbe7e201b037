"""The forms in which an answer is sent: JSON, CSV, Arrow, Parquet, GeoJSON, and flat records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import msgspec
from werkzeug.datastructures import MIMEAccept
from werkzeug.exceptions import NotAcceptable

from ...analytics.rows import COLUMNS, LEFT_OUT, TIME, Period
from ...core.errors import QueryError
from ...query import Answer
from ...rendering.places import geojson_of, leading_columns, records_of
from ...rendering.tables import csv_of

ARROW: Final = "application/vnd.apache.arrow.stream"
PARQUET: Final = "application/vnd.apache.parquet"
GEOJSON: Final = "application/geo+json"
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


def _csv(reply: Answer) -> bytes:
    return csv_of(reply.rows, reply.meta.facts).encode()


def _records(reply: Answer) -> bytes:
    """Return one flat object a row, with time as RFC 3339 has it: what Grafana reads as it is."""
    records = records_of(reply.rows, reply.meta.facts)
    for record in records:
        if TIME in record:
            record[TIME] = rfc3339(record[TIME])
    return _encode(records) + b"\n"


def _arrow(reply: Answer) -> bytes:
    pa, columns = _pyarrow("pyarrow"), columns_of(reply)
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _parquet(reply: Answer) -> bytes:
    """Return the columns as a file; time is a time in it where every label is one."""
    pa, columns = _pyarrow("pyarrow"), columns_of(reply)
    periods = [Period.read(label or "") for label in columns.get(TIME, ())]
    if periods and None not in periods:
        times = [period and period.begin for period in periods]
        columns[TIME] = pa.array(times, pa.timestamp("ms", "UTC"))
    sink = pa.BufferOutputStream()
    _pyarrow("pyarrow.parquet").write_table(pa.table(columns), sink)
    return bytes(sink.getvalue())


def _pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        rule = (
            "this collector has no Arrow: install hearsay-collector[archive], or take json or csv"
        )
        raise NotAcceptable(rule) from None


def _geojson(reply: Answer) -> bytes:
    return geojson_of(reply.rows, reply.meta.facts).encode()


FORMS: Final = (
    Form("json", "application/json", _json),
    Form("csv", "text/csv", _csv, "utf-8"),
    Form("arrow", ARROW, _arrow),
    Form("parquet", PARQUET, _parquet),
    Form("geojson", GEOJSON, _geojson),
    Form("rows", "application/json", _records),
)


def form_of(parameters: Mapping[str, str], accepted: MIMEAccept) -> Form:
    """Return the form that ``format`` in *parameters* names, or else the best that is *accepted*.

    Raises: QueryError: there is no such form.
    """
    name = parameters.get("format")
    if name is None:
        best = accepted.best_match([form.media_type for form in FORMS[:-1]])
        return next((form for form in FORMS if form.media_type == best), FORMS[0])
    for form in FORMS:
        if form.name == name:
            return form
    raise QueryError("format", f"must be one of {', '.join(form.name for form in FORMS)}")


def columns_of(reply: Answer) -> dict[str, Any]:
    """Return the columns of the flat rows: dimensions in their order, then numbers."""
    records = records_of(reply.rows, reply.meta.facts)
    said = (LEFT_OUT,) if LEFT_OUT in reply.meta.facts else ()
    names = (*leading_columns(reply.rows, reply.meta.facts), *COLUMNS, *said)
    return {name: [record.get(name) for record in records] for name in names}


def rfc3339(label: str) -> str | None:
    """Return the beginning of the stretch of time that *label* names; None of what is no time."""
    period = Period.read(label)
    return f"{period.begin:%Y-%m-%dT%H:%M:%SZ}" if period else None
