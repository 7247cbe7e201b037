"""A registry compiled: the document that devices read instead of ``metrics.toml``.

``client_sdk.registry.compiled`` reads it; what mechanisms say of themselves is written as they say
it, so that a new one needs no line here.  The same registry gives the same bytes.
"""

from __future__ import annotations

import json
from typing import Any

from client_sdk.privacy.caps import Caps
from client_sdk.privacy.panel import panel_of
from client_sdk.privacy.wording import explain, notice
from client_sdk.registry.assembly import constants_of, spent_of
from client_sdk.registry.compiled import FORMAT, VERSION, checksum_of
from client_sdk.registry.compiled_form import dump_parameters
from client_sdk.registry.contract import Registry
from client_sdk.registry.metric import Metric


def compiled(registry: Registry, caps: Caps | None = None) -> str:
    """Return *registry* as the text of a compiled one.

    Args:   caps: those under which its texts tell what it costs; the default ones if None.
    Raises: InvalidParameterError: its panel is too small.
    """
    caps = Caps() if caps is None else caps
    document: dict[str, Any] = {
        FORMAT: VERSION,
        "app": registry.app,
        **({"separate": True} if registry.separate else {}),
        "automation": registry.automation,
        "retire_key": registry.retire_key,
        "segments": {name: list(values) for name, values in registry.segments.items()},
        "panel_week": registry.panel_week,
        "seats": _seats(registry),
        "caps": caps.decimals(),
        "notice": notice(registry, caps),
        "metrics": [_entry(metric, caps) for metric in registry],
    }
    document["checksum"] = checksum_of(document)
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _seats(registry: Registry) -> dict[str, list[int | str]] | None:
    if registry.panel_week is None:
        return None
    panel = panel_of(registry, registry.panel_week)
    return {digest.hex(): list(seat) for digest, seat in panel.seats.items()}


def _entry(metric: Metric, caps: Caps) -> dict[str, Any]:
    otherwise = metric.otherwise
    parameters = dump_parameters(metric.mechanism.parameters)
    return {
        "name": metric.name,
        "title": metric.title,
        "question": metric.question,
        "explanation": explain(metric, caps),
        "owner": metric.owner,
        "type": metric.type,
        "domain": metric.domain.canonical(),
        "domain_size": metric.domain.size,
        "epsilon": str(metric.epsilon),
        "epsilon_permanent": metric.epsilon_permanent,
        "every": metric.every,
        "longitudinal": metric.longitudinal,
        "mechanism": {"name": metric.mechanism_name, **parameters},
        "constants": constants_of(metric),
        "digest": metric.digest.hex(),
        "payload_size": metric.mechanism.payload_size,
        "spent": spent_of(metric),
        "segments": list(metric.segments),
        "expected_devices": metric.expected_devices,
        "min_reports": metric.min_reports,
        "expires": metric.expires.isoformat(),
        "aggregate": metric.aggregate,
        "otherwise": None
        if otherwise is None
        else {
            "value": metric.domain.as_given(otherwise),
            "encoded": metric.domain.encoding.as_json(otherwise),
        },
        "need": None if metric.need is None else str(metric.need),
        "shape": metric.shape,
        "robust": metric.robust,
        "weight": metric.weight,
        "panel": metric.panel,
    }
