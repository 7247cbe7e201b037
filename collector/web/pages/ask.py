"""Ask: a form over every verb; its address is the query, so that it can be passed on."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import Metric

from ...analytics.rows import TIME
from ...analytics.verb import ESTIMATE, Verb, load, names, summary
from ...core.catalog import Catalog
from ...core.credentials import ASK
from ...core.errors import QueryError
from ...estimation.precision import ALPHA
from ...query import Query, read
from ...query.options import as_json, options_of, types_of
from ...query.request import SEGMENT
from ...query.window import GRANULARITIES, usual_range
from ..api.openapi import Operation, in_query
from ..auth import scope
from .choices import DATES, Choices, choices_of, require_known
from .files import CSV, FILES, KIND_PARAMETER, file_of
from .layout import CONTENT_TYPE, RANGE_PARAMETERS, shown
from .panels import Answers, Panel, PanelRequest, dressed

blueprint = Blueprint("ask", __name__)

OPTION: Final = "option."  # what the name of an option of the verb follows
LEVELS: Final = (("0.1", "90 %"), ("0.05", "95 %"), ("0.01", "99 %"))
_TEXT: Final = {"type": "string"}
_PARAMETERS: Final = (
    in_query("q", _TEXT, "The whole question, in JSON; or else:"),
    in_query("metric", {"type": "array", "items": _TEXT}, "Names of metrics."),
    in_query("verb", _TEXT, "A verb."),
    in_query("by", {"type": "array", "items": _TEXT}, "Dimensions to group rows by."),
    in_query("alpha", _TEXT, "1 - level of the intervals."),
    in_query("postprocess", _TEXT, "Post-processing of the estimated shares."),
    *RANGE_PARAMETERS,
)


@blueprint.get("/ask")
@scope(ASK, page=True)
@Operation(media_type=CONTENT_TYPE, parameters=_PARAMETERS, problems=(400, 404))
def ask_page() -> ResponseReturnValue:
    """Show the form of questions and, once it is sent, the answer."""
    answers = Answers()
    panel: Panel | None = None
    fault, query = "", None
    try:
        require_known(request.args, _PARAMETERS, SEGMENT, OPTION, many=("metric", "by"))
        query = question_of(request.args, answers.catalog)
        if request.args.get("q") or request.args.get("verb"):
            wish = PanelRequest("answer", title_of(query, answers.catalog), query, wide=True)
            csv = url_for("ask.ask_file", kind="csv", q=as_json(query))
            panel = dressed(wish, answers.reply(query), csv)
    except (QueryError, UnknownMetricError) as error:
        fault = str(error)
    return shown(
        "ask.html",
        400 if fault else 200,
        answer=panel,
        fault=fault,
        link=url_for("ask.ask_page", q=as_json(query)) if query else "",
        **_form(query, answers.catalog),
    )


@blueprint.get("/ask.<kind>")
@scope(ASK, page=True)
@Operation(
    media_type=CSV,
    parameters=(KIND_PARAMETER, *_PARAMETERS[:1]),
    alternatives=FILES,
    problems=(400, 404, 406, 500),
)
def ask_file(kind: str) -> ResponseReturnValue:
    """Send the answer to a question as a file: comma-separated values, Parquet, GeoJSON or SVG."""
    require_known(request.args, _PARAMETERS[:1])
    query, answers = read(request.args.get("q", "").encode()), Answers()
    return file_of(kind, answers.reply(query), title_of(query, answers.catalog), query.verb)


def question_of(parameters: MultiDict[str, str], catalog: Catalog) -> Query:
    """Read the question: that of ``q``, or the one that the fields of the form make.

    Raises: QueryError.
    """
    if parameters.get("q"):
        return read(parameters["q"].encode())
    picked = choices_of(parameters.to_dict())
    verb = parameters.get("verb") or ESTIMATE
    metrics = [name for name in parameters.getlist("metric") if name]
    first = next(iter(catalog), None)
    return Query(
        metrics=metrics or ([first.address] if first else [""]),
        verb=verb,
        date_range=picked.date_range,
        dimensions=[name for name in parameters.getlist("by") if name],
        filters=[("is", name, [value]) for name, value in picked.segment],
        alpha=_alpha(parameters.get("alpha", "")),
        postprocess=parameters.get("postprocess") or "raw",
        options=_options(parameters, verb),
    )


def title_of(query: Query, catalog: Catalog) -> str:
    """Return the question in a few words."""
    titles = [catalog.metric(name).title for name in query.metrics]
    of_what = " and ".join(titles)
    by = ", ".join(name.replace(":", " by ").replace("_", " ") for name in query.dimensions)
    return f"{of_what}: {query.verb.replace('_', ' ')}" + (f", by {by}" if by else "")


def _alpha(text: str) -> float:
    if not text:
        return ALPHA
    if text not in dict(LEVELS):
        raise QueryError(f"alpha: must be one of {', '.join(dict(LEVELS))}; any other is in q")
    return float(text)


def _options(parameters: MultiDict[str, str], verb: str) -> dict[str, Any]:
    """Return the options that belong to *verb*; the form may still hold those of another one."""
    texts = ((name, parameters.get(OPTION + name, "").strip()) for name in types_of(verb))
    return options_of(verb, [(name, text) for name, text in texts if text])


def _form(query: Query | None, catalog: Catalog) -> dict[str, Any]:
    """Return what the form shows."""
    metrics = list(catalog)
    picked = [m for m in metrics if query and m.address in query.metrics] or metrics[:1]
    verbs = _verbs(picked[0]) if picked else {}
    verb = query.verb if query and query.verb in names() else ESTIMATE
    loaded: Verb = load(verb)
    options = query.options if query else {}
    date_range = query.date_range if query else None
    dates = date_range if isinstance(date_range, tuple) else ("", "")
    words = date_range if isinstance(date_range, str) else ""
    return {
        "metrics": metrics,
        "picked": [metric.address for metric in picked],
        "verbs": verbs,
        "verb": verb,
        "about": summary(verb),
        "range": DATES if any(dates) else words or usual_range(picked),
        "dates": dates,
        "ranges": Choices(words).ranges(picked),
        "stretches": [name for name in GRANULARITIES if name != "epoch"],
        "by": query.dimensions if query else [],
        "segments": picked[0].segments if picked else {},
        "filtered": {name: values[0] for _, name, values in query.filters} if query else {},
        "levels": LEVELS,
        "alpha": f"{query.alpha:g}" if query else f"{ALPHA:g}",
        "postprocesses": loaded.postprocess,
        "postprocess": query.postprocess if query else "raw",
        "options": {
            name: ("" if options.get(name) is None else _as_text(options[name]))
            for name in types_of(verb)
        },
        "option": OPTION,
        "segment": SEGMENT,
        "time": TIME,
    }


def _verbs(metric: Metric) -> dict[str, tuple[str, str]]:
    """Return each verb with what it answers, and why not of *metric*, "" if it does."""
    return {name: (summary(name), load(name).refusal(metric) or "") for name in names()}


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
