"""GET /v1/metrics and GET /v1/metrics/<name>/estimate: what can be asked, and the answer."""

from __future__ import annotations

from dataclasses import asdict

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from client_sdk.metric import ItemDomain, Metric

from ..errors import QueryError
from ..query import Question, ask, reply
from .auth import require_read_token
from .services import services

blueprint = Blueprint("query", __name__)


@blueprint.get("/v1/metrics")
def list_metrics() -> ResponseReturnValue:
    """List the metrics with all that an analyst needs to read them."""
    require_read_token()
    return {"metrics": [describe(metric) for metric in services().catalog]}


@blueprint.get("/v1/metrics/<name>/estimate")
def estimate(name: str) -> ResponseReturnValue:
    """Answer a metric's question: from, to (dates), alpha, segment.<dimension>."""
    require_read_token()
    shared = services()
    known = ("from", "to", "alpha")
    for parameter, values in request.args.lists():
        if parameter not in known and not parameter.startswith("segment."):
            raise QueryError(f"parameter: known are {', '.join(known)}, segment.<dimension>")
        if len(values) > 1:
            raise QueryError(f"{parameter}: must be given once")
    question = ask(shared.catalog.metric(name), request.args.to_dict(), shared.clock())
    answer, n = reply(question, shared.storage)
    return {
        "meta": {
            **_meta(question, n),
            "unit": answer.unit,
            "expected_half_width": answer.expected_half_width,
        },
        "rows": [asdict(row) for row in answer.rows],
    }


def describe(metric: Metric) -> dict[str, object]:
    """Return a metric as JSON: its question, domain, privacy and name on the wire."""
    domain = metric.domain
    values: dict[str, object] = (
        {"values": domain.labels}
        if isinstance(domain, ItemDomain)
        else {
            "min": float(domain.minimum),
            "max": float(domain.maximum),
            "step": float(domain.step),
            "unit": domain.unit,
        }
    )
    return {
        "name": metric.name,
        "title": metric.title,
        "question": metric.question,
        "type": metric.type,
        **values,
        "digest": metric.digest.hex(),
        "epsilon_per_report": float(metric.mechanism.spent),
        "delta_per_report": float(metric.mechanism.delta),
        "mechanism": metric.mechanism_name,
        "every": metric.every,
        "longitudinal": metric.longitudinal,
        "segments": metric.segments,
        "min_reports": metric.min_reports,
        "expected_devices": metric.expected_devices,
        "expires": metric.expires.isoformat(),
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
        "segment": question.segment,
        "alpha": question.alpha,
        "intervals": "pointwise",
        "epsilon_per_report": float(metric.mechanism.spent),
        "delta_per_report": float(metric.mechanism.delta),
        "mechanism": metric.mechanism_name,
        "digest": metric.digest.hex(),
    }
