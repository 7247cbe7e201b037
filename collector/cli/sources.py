"""``hearsay sources``: reports by key, and a mean that no few keys can move far."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from client_sdk.privacy.wording import counted

from ..core.text_tables import table_lines
from ..estimation.precision import ALPHA
from .root import Deployment, Window, json_option, main, show, window_options

if TYPE_CHECKING:
    from ..query import Answer
    from ..query.sources import SourceReports, Trimmed


@main.command()
@click.argument("metric")
@window_options
@click.option(
    "--trim", type=float,
    help="Part of the sources, such as 0.1, that a second mean leaves out at each end.",
)  # fmt: skip
@click.option("--alpha", type=float, default=ALPHA, show_default=True, help="1 - confidence level.")
@json_option
def sources(metric: str, window: Window, trim: float | None, alpha: float, as_json: bool) -> None:
    """Show the reports of METRIC by key; with --trim also a mean that no few keys move far.

    A trimmed mean is another number than the answer, and never takes its place.
    See docs/operate/poisoning.md#a-mean-without-the-worst-keys.
    """
    from ..query import plan, read, run
    from ..query.reading import without_pruned
    from ..query.sources import by_source

    site = Deployment()
    question: dict[str, object] = {"metrics": [metric], "alpha": alpha}
    if window.date_range is not None:
        question["date_range"] = window.date_range
    domain = site.catalog.metric(metric).domain
    if domain.numbers and not domain.labels:
        question["verb"] = domain.verb
    planned = plan(read(json.dumps(question).encode()), site.catalog, time.time())
    resolved = without_pruned(planned, site.reader)
    reports = by_source(resolved, site.reader)
    mean = None if trim is None else reports.trimmed(trim, alpha)
    answer = None if mean is None else run(resolved, site.reader)
    show(_document(reports, answer, mean) if as_json else None, _lines(reports, answer, mean))


def _document(
    reports: SourceReports, answer: Answer | None, mean: Trimmed | None
) -> dict[str, object]:
    document: dict[str, object] = {
        "metric": reports.metric.address,
        "n": reports.n,
        "sources": {name: part.n for name, part in reports.by_source.items()},
        "notes": list(map(str, reports.notes)),
    }
    if mean is not None and answer is not None:
        rows = [
            dict(zip(("item", "value", "ci_low", "ci_high"), (name, *numbers), strict=True))
            for name, numbers in _numbers(reports, mean).items()
        ]
        document["trimmed"] = {"dropped": mean.dropped, "of": mean.of, "rows": rows}
        document["estimate"] = [
            {"item": row.item, "value": row.value, "ci_low": row.ci_low, "ci_high": row.ci_high}
            for row in answer.rows
        ]
    return document


def _lines(reports: SourceReports, answer: Answer | None, mean: Trimmed | None) -> Iterator[str]:
    apart = f"{len(reports.apart)} of them with enough to be held against each other"
    total, kinds = counted(reports.n, "report"), counted(len(reports.by_source), "source")
    yield f"{reports.metric.address}: {total} of {kinds}, {apart}"
    yield from map(str, reports.notes)
    parts = reports.by_source.items()
    if not parts:
        return
    rows = [(name, f"{part.n:,}", f"{100 * part.n / reports.n:.1f} %") for name, part in parts]
    yield from table_lines([("key", "reports", "of all"), *rows], "<>>")
    if mean is None or answer is None:
        return
    yield ""
    numbers = _numbers(reports, mean)
    heads = ("item", "estimate", "from", "to", "trimmed", "from", "to")
    cells = [
        (row.item, *map(_shown, (row.value, row.ci_low, row.ci_high, *numbers[row.item])))
        for row in answer.rows
        if row.item in numbers
    ]
    yield from table_lines([heads, *cells], "<>>>>>>")
    dropped = mean.dropped
    yield (
        f"trimmed: without the {dropped} lowest and {dropped} highest of {mean.of} sources, item by"
        f" item; {dropped} wrong sources cannot move it beyond the others, {dropped + 1} can move"
        " it anywhere"
    )
    yield "each source counts alike there: where keys differ, it is another number, and no answer"


def _numbers(reports: SourceReports, mean: Trimmed) -> Mapping[str, tuple[float, float, float]]:
    columns = mean.values.tolist(), mean.low.tolist(), mean.high.tolist()
    return dict(zip(reports.names, zip(*columns, strict=True), strict=True))


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.4g}"
