"""Commands for answers: ``hearsay query`` asks a collector, ``hearsay release`` publishes."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from ..core.errors import AnswerError, ConfigError, foreign
from ..core.text_tables import plain, plain_line
from ..estimation.precision import ALPHA
from .root import (
    Collector,
    Deployment,
    Window,
    collector_options,
    main,
    output_option,
    require_archive,
    say,
    window_options,
)

if TYPE_CHECKING:
    from ..client import Client, Result

_ROUND_S: Final = 0.5  # seconds between two looks; a person reads


@main.command()
@click.argument("metrics", nargs=-1, required=True)
@click.option(
    "--verb", default="estimate", show_default=True, help="What to ask; see docs/ask/query.md."
)
@window_options
@click.option(
    "--against", help="Compare with an earlier range: previous, year, or 2026-01-01/2026-01-31."
)
@click.option(
    "--dimension",
    "dimensions",
    multiple=True,
    help="Break down by this dimension, or by time:week; may be repeated.",
)
@click.option(
    "--filter", "filters", multiple=True,
    help="platform=linux,mac keeps only these, platform!=mac all others; may be repeated.",
)  # fmt: skip
@click.option("--order-by", multiple=True, help="Column, or -column; may be repeated.")
@click.option(
    "--option",
    "options",
    multiple=True,
    help="Option of the verb, such as k=5 or levels=0.5,0.9; may be repeated.",
)
@click.option("--alpha", type=float, help=f"1 - confidence level; {ALPHA} by default.")
@click.option("--postprocess", help="Such as norm_sub; raw by default.")
@click.option(
    "--small-cells", type=click.Choice(("other", "withhold")),
    help="Groups with too few reports: one row (other), by default; or no number.",
)  # fmt: skip
@click.option("--definition", help="Digest of an earlier definition: answer about it alone.")
@click.option("--limit", type=click.IntRange(1), help="Most rows; all by default.")
@click.option(
    "--format", "form", type=click.Choice(("table", "csv", "json", "svg")), default="table",
    show_default=True, help="What to print.",
)  # fmt: skip
@output_option
@click.option("--explain", is_flag=True, help="Print curl and Python that ask the same instead.")
@collector_options
def query(metrics: tuple[str, ...], collector: Collector, form: str, output: str | None,
          explain: bool, **options: Any) -> None:  # fmt: skip
    """Ask a running collector about METRICS: numbers with intervals, or why there are none.

    See docs/ask/query.md.
    """
    fields = dict(_fields(**options))
    if explain:
        _explain(collector.address, metrics, fields)
        return
    with collector.client() as client:
        result = _result(client, metrics, fields)
    with foreign(f"url={collector.address}: the answer"):
        parts = list(_printed(result, form))
    text = "".join(part if part.endswith("\n") else f"{part}\n" for part in parts)
    exact = text.encode(errors="backslashreplace")
    if output is not None:
        Path(output).write_bytes(exact)
    elif form in ("csv", "json") and not sys.stdout.isatty():
        click.echo(exact, nl=False)  # a program reads it
    else:
        click.echo(plain(text), nl=False)


@main.command()
@click.option("--once", is_flag=True, help="Print what is there and end.")
@collector_options
def tail(collector: Collector, once: bool) -> None:
    """Print each report that a development collector accepts, in words, as it comes.

    See docs/guide/embed.md#see-reports-arrive.
    """
    seen = 0
    with collector.client() as client:
        while True:
            for report in _recent(client, seen):
                with foreign(f"{client!r}: the answer"):
                    seen = max(seen, int(report["number"]))
                    text = "\n".join(map(plain_line, _lines(report)))
                click.echo(text)
            if once:
                return
            time.sleep(_ROUND_S)


@main.command()
@click.argument("text")
@click.option("--at", help="Day, such as 2026-11-20; today in UTC by default.")
@click.option("--metric", default="", help="Only on charts of this metric.")
@click.option("--app", default="", help="Only on charts of metrics of this app.")
@click.option("--link", default="", help="Address of a page with more.")
@collector_options
def note(text: str, collector: Collector, at: str | None, metric: str, app: str, link: str) -> None:
    """Mark a day with TEXT, such as "2.4 out", on every chart over time.

    See docs/operate/boards.md#notes-and-releases.
    """
    day = at or datetime.now(UTC).date().isoformat()
    with collector.client() as client:
        kept = client.note(day, text, metric=metric, app=app, url=link)
    planned = "; charts show it from that day on" if kept.get("planned") else ""
    click.echo(plain_line(f"noted: {kept['at']} {kept['text']}{planned}"))


def _recent(client: Client, seen: int) -> list[dict[str, Any]]:
    try:
        return client.recent(seen)
    except AnswerError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        rule = "keeps no reports; start it with hearsay serve --development"
        raise ConfigError("url", repr(client), rule) from None


def _lines(report: Mapping[str, object]) -> Iterator[str]:
    """Yield a report in words; the payload is what the device's own history names it by."""
    segment = f"  {report['segment']}" if report["segment"] else ""
    yield f"{report['metric']}  {report['epoch']} ({report['every']})  {report['payload']}{segment}"
    yield f"  sent: {report['sent']}"
    yield f"  means: {report['means']}"


_WRITTEN: Final = {  # by field of a question: the option
    "metrics": "METRICS",
    "date_range": "--range",
    "date_range.0": "--from",
    "date_range.1": "--to",
    "dimensions": "--dimension",
    "filters": "--filter",
    "options": "--option",
    "order_by": "--order-by",
    "small_cells": "--small-cells",
    "pagination": "--limit",
}


def _result(client: Client, metrics: Sequence[str], fields: dict[str, Any]) -> Result:
    """Ask.  Raises click.ClickException: the collector refused an option, named as it is typed."""
    try:
        return client.query(metrics, **fields)
    except AnswerError as error:
        fault = next((each for each in error.faults if each.get("pointer")), None)
        if fault is None or error.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND):
            raise
        field, *below = fault["pointer"].split("/")[1:]
        written = _WRITTEN.get(".".join((field, *below))) or _WRITTEN.get(field) or f"--{field}"
        of = f" {below[0]}=…" if field == "options" and below else ""
        raise click.ClickException(plain_line(f"{written}{of}: {fault['detail']}")) from None


def _fields(
    verb: str, window: Window, against: str | None,
    dimensions: tuple[str, ...], filters: tuple[str, ...], order_by: tuple[str, ...],
    options: tuple[str, ...], alpha: float | None, postprocess: str | None,
    small_cells: str | None, definition: str | None, limit: int | None,
) -> Iterator[tuple[str, object]]:  # fmt: skip
    """Yield the fields of the question by name, those that were given."""
    yield "verb", verb
    if against not in (None, "previous", "year") and str(against).count("/") != 1:
        rule = "must be previous, year, or two days such as 2026-01-01/2026-01-31"
        raise click.BadParameter(rule, param_hint="--against")
    fields: dict[str, object] = {
        "date_range": window.date_range,
        "against": against.split("/") if against and "/" in against else against,
        "dimensions": list(dimensions) or None,
        "filters": list(map(_filter, filters)) or None,
        "order_by": list(map(_column, order_by)) or None,
        "options": _options(verb, options) or None,
        "alpha": alpha,
        "postprocess": postprocess,
        "small_cells": small_cells,
        "definition": definition,
        "pagination": None if limit is None else {"limit": limit},
    }
    # An empty text or 0 was given, and is for the collector to refuse.
    yield from ((name, value) for name, value in fields.items() if value is not None)


def _filter(text: str) -> list[object]:
    name, sign, values = text.partition("=")
    if not sign or not name.strip("!") or not values:
        raise click.BadParameter("must be name=value,value or name!=value", param_hint="--filter")
    return ["is_not" if name.endswith("!") else "is", name.rstrip("!"), values.split(",")]


def _column(text: str) -> list[str]:
    name = text.removeprefix("-")
    if not name:
        raise click.BadParameter("must be a column, or -column", param_hint="--order-by")
    return [name, "asc" if name == text else "desc"]


def _options(verb: str, texts: Sequence[str]) -> dict[str, object]:
    from ..query.options import options_of

    parts = [text.partition("=") for text in texts]
    if not all(name and sign for name, sign, _ in parts):
        raise click.BadParameter("must be name=value", param_hint="--option")
    return options_of(verb, [(name, value) for name, _, value in parts])


def _printed(result: Result, form: str) -> Iterator[str]:
    if form == "csv":
        yield result.to_csv()
    elif form == "svg":
        yield result.to_svg()
    elif form == "json":
        answer = {"meta": result.meta, "rows": result.rows}
        yield json.dumps(answer, ensure_ascii=False, indent=2)
    else:
        from ..rendering.tables import lines_of

        yield from map(plain_line, lines_of(result.title, result.typed(), result.meta))


def _explain(address: str, metrics: Sequence[str], fields: dict[str, object]) -> None:
    """Print curl and Python that ask the same.  Raises QueryError: the question is wrong."""
    from ..query import read
    from ..query.options import curl, python

    query = read(json.dumps({"metrics": metrics, **fields}).encode())
    click.echo(f"{curl(query, address)}\n\n{python(query, address)}")


_FORMATS = ("csv", "parquet")
_MOST_SEED = (1 << 53) - 1  # every reader of JSON keeps so large an integer exactly


@main.command()
@click.argument("metric")
@window_options
@click.option(
    "--by",
    multiple=True,
    help="Dimension that becomes a column, such as platform or time:week; may be repeated.",
)
@click.option(
    "--small-cells", type=click.Choice(("other", "withhold")), default="other", show_default=True,
    help="Groups with too few reports become one, or are left out and counted in the sheet.",
)  # fmt: skip
@click.option("--synthetic", type=click.IntRange(1), help="Also write so many synthetic records.")
@click.option(
    "--seed",
    type=click.IntRange(0, _MOST_SEED),
    help="Seed of the records, to make the same ones again; drawn, and shown, by default.",
)
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="csv", show_default=True, help="Files."
)
@click.option("--alpha", help=f"1 - confidence level; {ALPHA} by default.")
@click.option("--version", help="Published version of the window; all reports so far by default.")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False),
    required=True,
    help="Folder to write to; made if missing.",
)
def release(
    metric: str,
    window: Window,
    by: tuple[str, ...],
    small_cells: Literal["other", "withhold"],
    synthetic: int | None,
    seed: int | None,
    form: str,
    alpha: str | None,
    version: str | None,
    folder: str,
) -> None:
    """Write a consistent histogram of METRIC, and a data sheet, for anybody to analyse.

    It is computed from randomized reports alone: publishing it costs no privacy.  See
    docs/ask/release.md.
    """
    from ..query.release.publish import ReleaseRequest
    from ..query.release.publish import release as write

    if form == "parquet":
        require_archive("pyarrow.parquet")
    site = Deployment()
    more = {"alpha": alpha, "version": version}
    request = ReleaseRequest(
        metric=metric,
        parameters=window.parameters | {name: text for name, text in more.items() if text},
        by=by,
        size=synthetic,
        seed=secrets.randbelow(_MOST_SEED + 1) if seed is None else seed,
        form=form,
        small_cells=small_cells,
    )
    say(write(request, site.catalog, site.reader, time.time(), Path(folder)))
