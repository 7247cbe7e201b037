"""Ask: questions in plain words, each with choices that already answer.

The address of an answer is the question, so it can be passed on: ``q`` is a question of the API
as it is, the other parameters are fields of the form, which fills in what is not chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any, Final

import msgspec
from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from client_sdk.core.epoch import ONCE
from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import Metric

from ...analytics.comparing.arms import arms_of
from ...analytics.rows import TIME, Chart
from ...analytics.verb import ESTIMATE, Verb, load, names, summary
from ...core.catalog import Catalog
from ...core.credentials import ASK
from ...core.errors import QueryError
from ...estimation.precision import ALPHA
from ...query import Query, read
from ...query.completion import completed as with_defaults
from ...query.options import as_json, options_of, types_of
from ...query.phrases import Match, changed_range, find
from ...query.request import SEGMENT
from ...query.window import PERIOD, PREVIOUS
from ..api.openapi import Operation, in_query
from ..auth import scope
from . import questions
from .choices import (
    AGAINST,
    DATES,
    EARLIER,
    Choices,
    choices_of,
    earlier_of,
    filter_rows,
    filters_of,
    granularity,
    in_words,
    require_known,
    segment_of,
)
from .compare import with_periods
from .devices import with_latest
from .fields import OPTION, as_text, fields_of, labelled
from .files import CSV, FILES, KIND_PARAMETER, name_of
from .items import item_needed, items_of, leading_item, leads_of
from .layout import EARLIER_PARAMETERS, RANGE_PARAMETERS, shown
from .panels import BEFORE_PARAMETER, PERIODS, Answers, Panel, PanelRequest, build_panel, in_page
from .remarks import with_ranking, without_title

blueprint = Blueprint("ask", __name__)

LEVELS: Final = (("0.1", "90 %"), ("0.05", "95 %"), ("0.01", "99 %"))
FIND: Final = "find"
_CHIPS: Final = 5  # further questions that typed words may mean
_TEXT: Final = {"type": "string"}
_PARAMETERS: Final = (
    in_query("q", _TEXT, "The whole question, in JSON; or else:"),
    in_query(
        FIND, _TEXT, "Words of a question: the likeliest that they mean is answered; or else:"
    ),
    in_query("metric", {"type": "array", "items": _TEXT}, "Names of metrics."),
    in_query("verb", _TEXT, "A verb."),
    in_query("by", {"type": "array", "items": _TEXT}, "Dimensions to group rows by."),
    in_query(AGAINST, _TEXT, "``previous``, ``year``, ``dates``, or ``segment.`` and a dimension."),
    *EARLIER_PARAMETERS,
    in_query("alpha", _TEXT, "1 - level of the intervals."),
    in_query("postprocess", _TEXT, "Post-processing of the estimated shares."),
    BEFORE_PARAMETER,
    *RANGE_PARAMETERS,
)


@blueprint.get("/ask")
@scope(ASK, page=True)
def ask_page() -> ResponseReturnValue:
    """Show what can be asked and, once a question is chosen, its answer with its choices."""
    answers = Answers()
    panel: Panel | None = None
    fault = before = ""
    query = original = None
    typed = request.args.get(FIND, "").strip()
    matches = matches_of(typed, list(answers.catalog), answers.today) if typed else []
    if typed and not matches:
        changed = changed_range(typed, list(answers.catalog), answers.today)
        if changed is not None:
            page = url_for("overview.overview") + _picked(changed).address()
            return redirect(f"{page}#changed", 303)
    is_chosen = bool(request.args.get("q") or request.args.get("verb") or matches)
    try:
        require_known(request.args, _PARAMETERS, SEGMENT, OPTION, many=("metric", "by"))
        before = choices_of(request.args).against
        query = original = (
            matches[0].query if matches else question_of(request.args, answers.catalog)
        )
        if is_chosen and not request.args.get("q"):
            query = completed(query, answers, before)
        if is_chosen:
            hint = in_words(query.filters)
            panel_request = PanelRequest(
                "answer",
                title_of(query, answers.catalog),
                query,
                hint,
                wide=True,
                full=True,
                link=leads_of(query, answers.catalog),
                against=before,
            )
            reply = answers.reply(query)
            csv = url_for("ask.ask_file", kind="csv", q=as_json(query), before=before or None)
            drawn = answers.marks(query), answers.before(panel_request, reply)
            panel = without_title(
                with_periods(build_panel(panel_request, reply, csv, *drawn), answers)
            )
            panel = with_latest(with_ranking(panel), list(answers.catalog))
    except (QueryError, UnknownMetricError) as error:
        fault = in_page(error)
    return shown(
        "ask.html",
        400 if fault else 200,
        answer=panel,
        fault=fault,
        is_chosen=is_chosen,
        link=url_for("ask.ask_page", q=as_json(query), before=before or None) if query else "",
        before=before,
        typed=typed,
        unread=matches[0].unread if matches else (),
        chips=[_chip(match.query, answers.catalog) for match in matches[1 : 1 + _CHIPS]],
        common=[] if matches else _common(original, answers.catalog),
        **_form(query, original, answers.catalog),
    )


@blueprint.get("/ask.<kind>")
@scope(ASK, page=True)
@Operation(
    media_type=CSV,
    parameters=(KIND_PARAMETER, *_PARAMETERS[:1], BEFORE_PARAMETER),
    alternatives=FILES,
    problems=(400, 404, 406, 500),
)
def ask_file(kind: str) -> ResponseReturnValue:
    """Send the answer to a question as a file: comma-separated values, Parquet, GeoJSON or SVG."""
    require_known(request.args, (*_PARAMETERS[:1], BEFORE_PARAMETER))
    query, answers = read(request.args.get("q", "").encode()), Answers()
    title = title_of(query, answers.catalog)
    panel_request = PanelRequest("answer", title, query, against=choices_of(request.args).against)
    return answers.file(kind, panel_request, title, name_of(query))


def matches_of(text: str, metrics: Sequence[Metric], today: date) -> list[Match]:
    """Return the questions about *metrics* that *text* may mean, the likeliest first."""
    by_address = {metric.address: metric for metric in metrics}
    matches = find(
        text,
        metrics,
        lambda metric: [q.verb for q in questions.questions_of(metric, metrics)],
        today,
    )
    pairs = ((match, by_address[match.query.metrics[0]]) for match in matches)
    return [
        match
        for match, metric in pairs
        if not questions.partners_of(match.query.verb, metric, metrics)
        or _partners(match.query, metric, metrics)
    ]


def _chip(query: Query, catalog: Catalog) -> dict[str, str]:
    """Return a link to another question that the typed words may mean."""
    address: dict[str, Any] = {
        "metric": query.metrics[0],
        "verb": query.verb,
        "by": query.dimensions,
        **{OPTION + name: as_text(value) for name, value in query.options.items()},
    }
    picked = replace(_picked(query.date_range), segment=segment_of(query.filters))
    rest = picked.address().replace("?", "&", 1)
    return {"words": title_of(query, catalog), "url": url_for("ask.ask_page", **address) + rest}


def question_of(parameters: MultiDict[str, str], catalog: Catalog) -> Query:
    """Read the question: from ``q``, or from the fields of the form.

    Raises: QueryError.
    """
    if parameters.get("q"):
        return read(parameters["q"].encode())
    picked = choices_of(parameters)
    verb = parameters.get("verb") or ESTIMATE
    compares = verb in names() and load(verb).compares
    metrics = [name for name in parameters.getlist("metric") if name]
    first = next(iter(catalog), None)
    against = parameters.get(AGAINST, "")
    beside = [against.removeprefix(SEGMENT)] if against.startswith(SEGMENT) else []
    return Query(
        metrics=metrics or ([first.address] if first else [""]),
        verb=verb,
        date_range=picked.date_range,
        against=earlier_of(parameters) if compares and not beside else None,
        dimensions=[*(name for name in parameters.getlist("by") if name), *beside],
        filters=filters_of(picked.segment),
        alpha=_alpha(parameters.get("alpha", "")),
        postprocess=parameters.get("postprocess") or "raw",
        options=_options(parameters, verb),
    )


def completed(query: Query, answers: Answers, before: str = "") -> Query:
    """Return *query* of the form with what was not chosen in it.

    Args: before: the period that the answer is held against; "" for none.

    Choices that belong to another question, such as the arm of another dimension, are left out.
    What cannot be asked at all stays as it is, to be refused by name.
    """
    metrics = list(answers.catalog)
    metric = answers.catalog.metric(query.metrics[0])
    if query.verb not in names() or not questions.is_answerable(query.verb, metric, metrics):
        return query
    partners = questions.partners_of(query.verb, metric, metrics)
    if partners and len(query.metrics) == 1:
        partner, *_ = [*_partners(query, metric, metrics), *partners]
        query = msgspec.structs.replace(query, metrics=[*query.metrics, partner.address])
    is_over_time = load(query.verb).compares and not _dimension(query, metric)
    if is_over_time and query.date_range is None and metric.every != ONCE:
        query = msgspec.structs.replace(query, date_range=answers.previous_range(metric))
    query = _over_time(with_defaults(_with_own_arms(query, metric), metric), metric)
    options = dict(query.options)
    both = msgspec.structs.replace(query, against=query.against or before or None)
    if questions.needs_item(query.verb, metric) and "item" not in options:
        options |= {"item": _leading_item(both, metric, answers)}
    for side, name in zip(("numerator", "denominator"), query.metrics, strict=False):
        other = answers.catalog.metric(name)
        if side in types_of(query.verb) and side not in options and item_needed(other):
            options |= {side: _leading_item(both, other, answers)}
    return msgspec.structs.replace(query, options=options)


def _partners(query: Query, metric: Metric, metrics: Sequence[Metric]) -> list[Metric]:
    """Return the partners of *metric* that have the dimensions which *query* names, too."""
    named = {*query.dimensions, *(name for _, name, _ in query.filters)} & metric.segments.keys()
    partners = questions.partners_of(query.verb, metric, metrics)
    return [other for other in partners if named <= other.segments.keys()]


def _leading_item(query: Query, metric: Metric, answers: Answers) -> str:
    alone = msgspec.structs.replace(query, against=None)
    leading = (leading_item(each, metric, answers) for each in (query, alone))
    return next(filter(None, leading), items_of(metric)[0])


def _over_time(query: Query, metric: Metric) -> Query:
    """Return *query* with the stretches of time that a line of its verb has points for."""
    if not load(query.verb).offer.joins_stretches or any(map(_is_time, query.dimensions)):
        return query
    stretch = granularity(metric, _picked(query.date_range))
    return msgspec.structs.replace(query, dimensions=[stretch, *query.dimensions])


def _with_own_arms(query: Query, metric: Metric) -> Query:
    """Return *query* without the segments of another dimension that its form may still hold."""
    options, dimension = dict(query.options), _dimension(query, metric)
    values = metric.segments.get(dimension, ())
    held = {"control", AGAINST} & types_of(query.verb).keys()
    if dimension and "control" in held:
        options["dimension"] = dimension
    for name in held:
        if values and options.get(name) not in values:
            options.pop(name, None)
    return msgspec.structs.replace(query, options=options)


def _dimension(query: Query, metric: Metric) -> str:
    """Return the dimension that a question is about, "" if it is about none."""
    return next((name for name in query.dimensions if name in metric.segments), "")


def _is_time(name: str) -> bool:
    return name == TIME or name.startswith(f"{TIME}:")


def _is_drawn_over_time(query: Query) -> bool:
    """Return whether the answer is a line, below which an earlier period can be drawn."""
    is_line = any(_is_time(name) for name in query.dimensions) and query.verb in names()
    return is_line and query.against is None and load(query.verb).chart != Chart.DIFFERENCES


def _picked(date_range: Any) -> Choices:
    """Return the range of a question as a choice."""
    if date_range is None or isinstance(date_range, str):
        return Choices(date_range or "")
    return Choices(DATES, *date_range)


def title_of(query: Query, catalog: Catalog) -> str:
    """Return the question in a few words."""
    metrics = [catalog.metric(name) for name in query.metrics]
    of_what = " and ".join(metric.title for metric in metrics)
    known = query.verb in names()
    is_about = known and load(query.verb).needs_segment
    about = _dimension(query, metrics[0]) if is_about else ""
    words = questions.words_of(query.verb, metrics[0], about) if known else query.verb
    by = [name for name in query.dimensions if name != about and name != f"{TIME}:{PERIOD}"]
    groups = ", ".join(name.removeprefix(f"{TIME}:").replace("_", " ") for name in by)
    return f"{of_what}: {words}" + (f" By {groups}" if groups else "")


def _alpha(text: str) -> float:
    if not text:
        return ALPHA
    if text not in dict(LEVELS):
        raise QueryError("alpha", f"must be one of {', '.join(dict(LEVELS))}; any other is in q")
    return float(text)


def _options(parameters: MultiDict[str, str], verb: str) -> dict[str, Any]:
    """Return the options that belong to *verb*; the form may still hold another verb's."""
    texts = ((name, parameters.get(OPTION + name, "").strip()) for name in types_of(verb))
    return options_of(verb, [(name, text) for name, text in texts if text])


def _common(original: Query | None, catalog: Catalog) -> list[dict[str, str]]:
    """Return the questions that some metric answers, as links, if none of either is chosen."""
    if original is None or any(request.args.get(name) for name in ("q", "verb", "metric")):
        return []
    rest = _picked(original.date_range).address().replace("?", "&", 1)
    return [
        {
            "words": question.words,
            "of": metric.title,
            "url": url_for("ask.ask_page", metric=metric.address, verb=question.verb) + rest,
        }
        for question, metric in questions.common_questions(list(catalog))
    ]


def _form(query: Query | None, original: Query | None, catalog: Catalog) -> dict[str, Any]:
    """Return what the page shows besides the answer.

    Args: original: the question as it was chosen, which others keep the range of.
    """
    metrics = list(catalog)
    metric = metrics[0] if metrics else None
    with suppress(UnknownMetricError, QueryError):
        # An address with another fault keeps what it names.
        named = query.metrics[0] if query else request.args.get("metric")
        metric = catalog.metric(named) if named else metric
    if metric is None:
        return {"metric": None, "metrics": []}
    verb = query.verb if query else request.args.get("verb")
    verb = verb if verb in names() else ESTIMATE
    kind = load(verb)
    query = query or Query(metrics=[metric.address])
    picked = _picked(query.date_range)
    dimension = _dimension(query, metric)
    partners = questions.partners_of(verb, metric, metrics)
    second = query.metrics[1] if len(query.metrics) > 1 else ""
    partner = next((other for other in partners if other.address == second), None)
    return {
        "metric": metric,
        "metrics": metrics,
        "partners": partners,
        "partner": second,
        "questions": _links(metric, metrics, verb, original or query),
        "verb": verb,
        "about": summary(verb),
        "chosen": picked.shown_for([metric]),
        "ranges": picked.ranges([metric]),
        "by": query.dimensions,
        "earlier": EARLIER if kind.compares and metric.every != ONCE else {},
        "compares": kind.compares,
        "against": _against_words(query, dimension),
        "other": query.against if isinstance(query.against, tuple) else ("", ""),
        "between": _between(kind, metric, dimension),
        "dimension": dimension,
        "stretches": [] if kind.chart == Chart.DIFFERENCES else questions.stretches_of([metric]),
        "is_over_time": kind.needs_time,
        "periods": PERIODS if _is_drawn_over_time(query) and metric.every != ONCE else {},
        "segments": metric.segments,
        "filter_rows": filter_rows(metric, query.filters),
        "levels": LEVELS,
        "alpha": f"{query.alpha:g}",
        "postprocesses": labelled(kind.postprocess),
        "postprocess": query.postprocess,
        "fields": list(
            fields_of(verb, metric, query.options, dimension=dimension, partner=partner)
        ),
        "option": OPTION,
        "segment": SEGMENT,
        "time": TIME,
    }


def _between(verb: Verb, metric: Metric, dimension: str) -> list[str]:
    """Return the dimensions that *verb* can be about: for an experiment, its arms."""
    arms = arms_of(metric)
    if verb.about is arms_of and dimension in (*arms, ""):
        return arms
    return list(metric.segments) if verb.needs_segment else []


def _against_words(query: Query, dimension: str) -> str:
    """Return what the field of the comparison shows."""
    if isinstance(query.against, tuple):
        return DATES
    return query.against or (SEGMENT + dimension if dimension else PREVIOUS)


def _links(
    metric: Metric, metrics: Sequence[Metric], verb: str, query: Query
) -> list[dict[str, Any]]:
    """Return the questions as links that keep the range and the filters."""
    kept = _picked(query.date_range)
    segment = [pair for pair in segment_of(query.filters) if pair[0] in metric.segments]
    chosen = Choices(kept.range, kept.first, kept.last, tuple(segment))
    rest = chosen.address().replace("?", "&", 1)
    return [
        {
            "words": question.words,
            "verb": question.verb,
            "is_usual": question.is_usual,
            "url": url_for("ask.ask_page", metric=metric.address, verb=question.verb) + rest,
        }
        for question in questions.questions_of(metric, metrics)
    ]
