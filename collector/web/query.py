"""GET /v1/metrics and GET /v1/metrics/<name>/estimate: what can be asked, and the answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from client_sdk.metric import Domain, ItemDomain, KeyValueDomain, Metric

from ..credentials import ASK, VIEW
from ..errors import QueryError
from ..lateness import LAST_VERSION
from ..query import LEAST_ALPHA, MOST_ALPHA, Question, ask, reply
from .answers import Estimate, Metrics
from .auth import scope, visible
from .operations import Operation, documented, in_path, in_query
from .services import services

blueprint = Blueprint("query", __name__)

_DATE: Final = {"type": "string", "format": "date"}
_PARAMETERS: Final = (
    in_path("name", "^[a-z0-9_.]+$", "The name of a metric."),
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


@blueprint.get("/v1/metrics")
@scope(VIEW)
@documented(Operation(Metrics))
def list_metrics() -> ResponseReturnValue:
    """List the metrics with all that an analyst needs to read them."""
    return {"metrics": [describe(metric) for metric in visible()]}


@blueprint.get("/v1/metrics/<name>/estimate")
@scope(ASK)
@documented(Operation(Estimate, parameters=_PARAMETERS, problems=(400, 404, 500)))
def estimate(name: str) -> ResponseReturnValue:
    """Answer a metric's question: from, to (dates), alpha, version, segment.<dimension>."""
    shared = services()
    metric = visible().metric(name)
    known = ("from", "to", "alpha", "version")
    for parameter, values in request.args.lists():
        if parameter not in known and not parameter.startswith("segment."):
            raise QueryError(f"parameter: known are {', '.join(known)}, segment.<dimension>")
        if len(values) > 1:
            dimension = parameter.removeprefix("segment.")
            is_ours = parameter in known or dimension in metric.segments
            named = parameter if is_ours else "segment.<dimension>"
            raise QueryError(f"{named}: must be given once")
    question = ask(metric, request.args.to_dict(), shared.clock())
    answer, n, late_share = reply(question, shared.tallies)
    return {
        "meta": {
            **_meta(question, n),
            "late_share": late_share,
            "unit": answer.unit,
            "expected_half_width": answer.expected_half_width,
        },
        "rows": [asdict(row) for row in answer.rows],
    }


def describe(metric: Metric) -> dict[str, object]:
    """Return a metric as JSON: its question, domain, privacy and name on the wire."""
    return {
        "name": metric.name,
        "title": metric.title,
        "question": metric.question,
        "type": metric.type,
        **_values(metric.domain),
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
        "expires": metric.expires.isoformat(),
    }


def _values(domain: Domain) -> dict[str, object]:
    """Return the values of a metric, by the keys of a registry."""
    if isinstance(domain, ItemDomain):
        return {"values": domain.labels}
    if isinstance(domain, KeyValueDomain):
        numbers = _values(domain.numbers)
        del numbers["step"]
        return {**_values(domain.keys), **numbers, "most": domain.most}
    return {
        "min": float(domain.minimum),
        "max": float(domain.maximum),
        "step": float(domain.step),
        "unit": domain.unit,
    }


def _meta(question: Question, n: int) -> dict[str, object]:
    metric = question.metric
    first, last = question.window
    return {
        "metric": metric.name,
        "question": metric.question,
        "n": n,
        "window": {"from": first, "to": last, "epochs": len(question.epochs)},
        "window_open": question.is_open,
        "version": question.version,
        "segment": question.segment,
        "alpha": question.alpha,
        "intervals": "pointwise",
        "epsilon_per_report": float(metric.mechanism.spent),
        "delta_per_report": float(metric.mechanism.delta),
        "mechanism": metric.mechanism_name,
        "digest": metric.digest.hex(),
    }
