"""The answer of a panel as a file: its numbers, its chart, or the cells of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from ...analytics.rows import Chart
from ...analytics.verb import load
from ...query import Answer, Query
from ...rendering.charts import Before, ChartOptions, Mark, chart_of
from ..api.formats import FORMS
from ..api.openapi import in_path

SVG: Final = "svg"
KINDS: Final = {"csv": "CSV", "parquet": "Parquet", "geojson": "GeoJSON", SVG: "SVG"}
KIND_PARAMETER: Final = in_path("kind", f"^({'|'.join(KINDS)})$", "Which kind of file.")
CSV: Final = "text/csv; charset=utf-8"
FILES: Final[Mapping[str, Mapping[str, str]]] = {  # as the description of the routes has them
    **{form.media_type: {} for form in FORMS if form.name in KINDS and form.name != "csv"},
    "image/svg+xml": {"type": "string"},
}
_WIDTH: Final = 720  # user units of a chart by itself


@dataclass(frozen=True)
class _Kind:
    content_type: str
    body: Callable[[Answer], bytes]


def file_of(
    kind: str,
    reply: Answer,
    title: str,
    name: str,
    marks: Sequence[Mark] = (),
    before: Before | None = None,
) -> Response:
    """Return *reply* as a file of *kind* called *name*, of plain letters, to be saved.

    Args:   marks: notes that a chart shows.  before: the earlier period below its lines.
    Raises: QueryError: such an answer has no file of this kind.  NotAcceptable: no pyarrow.
            NotFound: there is no such kind.
    """
    if kind not in KINDS:
        raise NotFound
    form = _kinds(title, marks, before)[kind]
    response = Response(form.body(reply), content_type=form.content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return response


def name_of(query: Query, panel: str = "") -> str:
    """Return how files of the answer to *query* are called: by its metric, and *panel* or verb."""
    return f"{query.metrics[0].rpartition('/')[2]}-{panel or query.verb}"


def files_of(csv: str, verb: str) -> Iterator[tuple[str, str]]:
    """Yield the name and address of each file that this collector can make of an answer of *verb*.

    Args: csv: the address of the first.
    """
    path, mark, parameters = csv.partition("?")
    missing = {
        "geojson": load(verb).chart != Chart.MAP,
        "parquet": find_spec("pyarrow") is None,
    }
    for kind, name in KINDS.items():
        if not missing.get(kind):
            yield name, f"{path.removesuffix('csv')}{kind}{mark}{parameters}"


def _kinds(title: str, marks: Sequence[Mark], before: Before | None) -> dict[str, _Kind]:
    kinds = {form.name: _Kind(form.content_type, form.body) for form in FORMS}

    def svg(reply: Answer) -> bytes:
        options = ChartOptions("chart", standalone=True, width=_WIDTH)
        kind, facts = reply.meta.chart, reply.meta.facts
        chart = chart_of(kind, reply.rows, title, options, facts=facts, marks=marks, before=before)
        return chart.encode() + b"\n"

    return {**kinds, SVG: _Kind("image/svg+xml", svg)}
