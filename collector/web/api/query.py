"""What can be asked, and the answers: /v1/metrics, /v1/metrics/<name>/estimate, /v1/query."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from client_sdk.registry.metric import Metric

from ...core.catalog import ADDRESS
from ...core.cells import LAST_VERSION
from ...core.credentials import ASK, VIEW
from ...core.errors import QueryError, UnsupportedTypeError
from ...intake.wire import JSON
from ...query import Answer, Query, Reader, answer, plan, question, read, without_pruned
from ...query.cache import key_of
from ...query.request import LEAST_ALPHA, MOST_ALPHA, PARAMETERS, SEGMENT
from ..auth import admit_question, scope, visible
from ..ingest import upload
from ..services import CACHE, REVALIDATE, services
from .formats import FORMS, form_of
from .openapi import Operation, Parameter, in_path, in_query, in_query_as_json
from .schemas import ALTERNATIVES, Metrics, forms

blueprint = Blueprint("query", __name__)

MOST_BYTES: Final = 64 * 1024  # of a question
_DATE: Final = {"type": "string", "format": "date"}
_PARAMETERS: Final = (
    in_path("name", f"^{ADDRESS}$", "The name of a metric, or app/name."),
    in_query("range", {"type": "string"}, "A range in words, such as 28d; or:"),
    in_query("from", _DATE, "The first day; thirty days up to `to` if left out."),
    in_query("to", _DATE, "The last day; today if left out."),
    in_query(
        "alpha",
        {"type": "number", "minimum": LEAST_ALPHA, "maximum": MOST_ALPHA},
        "1 - level of the intervals.",
    ),
    in_query(
        "version",
        {"type": "integer", "minimum": 0, "maximum": LAST_VERSION},
        "A published version, whose answer never changes; the latest if left out.",
    ),
    {
        **in_query(
            "segment",
            {
                "type": "object",
                "propertyNames": {"pattern": r"^segment\..+$"},
                "additionalProperties": {"type": "string"},
            },
            "`segment.<dimension>=<value>`: only reports with this value of a public dimension.",
        ),
        "style": "form",
        "explode": True,
    },
)


_FORMAT: Final = in_query(
    "format", {"enum": [form.name for form in FORMS]}, "The form of the answer; see Accept."
)
_FORMS_OF_QUESTIONS: Final = tuple(forms())


def _operation(*parameters: Parameter, **more: Any) -> Operation:
    """Declare a route that answers a question, in all forms."""
    problems = (400, 404, 406, 410, 429, 500, *((413, 415) if "takes" in more else ()))
    return Operation(
        Answer,
        parameters=parameters,
        problems=problems,
        alternatives=ALTERNATIVES,
        is_kept=True,
        **more,
    )


@blueprint.get("/v1/metrics")
@scope(VIEW)
@Operation(Metrics)
def list_metrics() -> ResponseReturnValue:
    """List the metrics with all that an analyst needs to read them."""
    return {"metrics": [describe(metric) for metric in visible()]}


@blueprint.get("/v1/metrics/<metric:name>/estimate")
@scope(ASK)
@_operation(*_PARAMETERS, _FORMAT)
def estimate(name: str) -> ResponseReturnValue:
    """Answer a metric's question: range, or from and to, alpha, version, segment.<dimension>."""
    shared = services()
    metric = visible().metric(name)
    for parameter, values in request.args.lists():
        if parameter not in (*PARAMETERS, "format") and not parameter.startswith(SEGMENT):
            raise QueryError("parameter", f"known are {', '.join(PARAMETERS)}, segment.<dimension>")
        if len(values) > 1:
            dimension = parameter.removeprefix(SEGMENT)
            is_ours = parameter in PARAMETERS or dimension in metric.segments
            named = parameter if is_ours else "segment.<dimension>"
            raise QueryError(named, "must be given once")
    return _answer(question(metric, request.args.to_dict(), shared.clock()))


@blueprint.post("/v1/query")
@scope(ASK)
@_operation(_FORMAT, takes={JSON: _FORMS_OF_QUESTIONS})
def ask() -> ResponseReturnValue:
    """Answer one question: metrics, a verb, a window, dimensions, filters, and how to show it."""
    if request.mimetype != JSON:
        raise UnsupportedTypeError(f"the body must be {JSON}")
    _require_parameters("format")
    return _answer(read(upload.read(request.stream, MOST_BYTES)))


@blueprint.get("/v1/query")
@scope(ASK)
@_operation(in_query_as_json("q", _FORMS_OF_QUESTIONS, "The question."), _FORMAT)
def ask_by_link() -> ResponseReturnValue:
    """Answer the question in parameter ``q``, as POST /v1/query takes it, by a link."""
    _require_parameters("q", "format")
    if "q" not in request.args:
        raise QueryError("q", "must be a question in JSON, as POST /v1/query takes it")
    return _answer(read(request.args["q"].encode()))


def _require_parameters(*known: str) -> None:
    """Raise QueryError if the address has another parameter than those *known*, or one twice."""
    for parameter, values in request.args.lists():
        if parameter not in known:
            raise QueryError("parameter", f"known are {', '.join(known)}")
        if len(values) > 1:
            raise QueryError(parameter, "must be given once")


def _answer(query: Query) -> ResponseReturnValue:
    """Answer from the cache where the answer cannot change; then the browser may keep it, too."""
    shared = services()
    form = form_of(request.args, request.accept_mimetypes)
    shared.pressure.require_contents()
    reader = Reader(shared.tallies, shared.gate)
    resolved = without_pruned(plan(query, visible(), shared.clock()), reader)
    admit_question(resolved)
    key = key_of(resolved, form.name, shared.pressure.contents, shared.config.relay)
    tag = key.hex() if key else None
    if tag and tag in request.if_none_match:
        response = Response(status=304)
    else:
        body = shared.answers.get(key)
        if body is None:
            body = form.body(answer(resolved, reader, relay=shared.config.relay))
            shared.answers.put(key, body, len(body))
        response = Response(body, content_type=form.content_type)
    response.headers["Vary"] = "Accept, Authorization, Cookie"
    if tag:
        response.set_etag(tag)
        response.headers[CACHE] = REVALIDATE
    return response


def describe(metric: Metric) -> dict[str, object]:
    """Return a metric as JSON: its question, domain, privacy and name on the wire."""
    return {
        "name": metric.address,
        "app": metric.app,
        "title": metric.title,
        "group": metric.group,
        "show": metric.show,
        "question": metric.question,
        "type": metric.type,
        **metric.domain.as_json(),
        **({"shape": metric.shape} if "shape" in metric.domain.table_keys else {}),
        "digest": metric.digest.hex(),
        "epsilon_per_report": float(metric.mechanism.spent),
        "delta_per_report": float(metric.mechanism.delta),
        "mechanism": metric.mechanism_name,
        "every": metric.every,
        "longitudinal": metric.longitudinal,
        "aggregate": metric.aggregate,
        "segments": metric.segments,
        "min_reports": metric.min_reports,
        "expected_devices": metric.expected_devices,
        "inclusion": metric.sample.share,
        "expires": metric.expires.isoformat(),
    }
