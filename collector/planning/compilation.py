"""A registry compiled: the document that devices read instead of ``metrics.toml``.

``client_sdk.registry.compiled`` reads it; what mechanisms say of themselves is written as they say
it, so that a new one needs no line here.  The same registry gives the same bytes.
"""

from __future__ import annotations

import json

from client_sdk.privacy.caps import Caps
from client_sdk.privacy.panel import panel_of
from client_sdk.privacy.wording import explain, notice
from client_sdk.registry.assembly import constants_of, spent_of
from client_sdk.registry.compiled import VERSION, checksum_of
from client_sdk.registry.contract import Registry
from client_sdk.registry.keys import FORMAT, METRIC, dump_parameters
from client_sdk.registry.metric import Metric


def compiled(registry: Registry, caps: Caps | None = None) -> str:
    """Return *registry* as the text of a compiled one.

    Args:   caps: the caps by which its texts state its cost; the default ones if None.
    Raises: InvalidParameterError: its panel is too small.
    """
    caps = Caps() if caps is None else caps
    document: dict[str, object] = {
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


def _entry(metric: Metric, caps: Caps) -> dict[str, object]:
    domain, mechanism, otherwise = metric.domain, metric.mechanism, metric.otherwise
    own: dict[str, object] = {
        "explanation": explain(metric, caps),
        "domain": domain.canonical(),
        "domain_size": domain.size,
        "epsilon": str(metric.epsilon),
        "mechanism": {"name": metric.mechanism_name, **dump_parameters(mechanism.parameters)},
        "constants": constants_of(metric),
        "digest": metric.digest.hex(),
        "payload_size": mechanism.payload_size,
        "spent": spent_of(metric),
        "segments": list(metric.segments),
        "expires": metric.expires.isoformat(),
        "otherwise": None
        if otherwise is None
        else {
            "value": domain.as_given(otherwise),
            "encoded": domain.encoding.as_json(otherwise),
        },
        "need": None if metric.need is None else str(metric.need),
    }
    keys = (key.name for key in METRIC if key.compiled)
    return {key: own[key] if key in own else getattr(metric, key) for key in keys}
