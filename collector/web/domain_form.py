"""The domain of a metric as JSON, by the keys of a registry."""

from __future__ import annotations

from client_sdk.domains import Domain, ItemDomain, KeyValueDomain, NumberDomain
from client_sdk.structured_domains import FunnelDomain, GridDomain, PairDomain, RetentionDomain
from client_sdk.text_domain import TextDomain


def domain_form(domain: Domain) -> dict[str, object]:
    """Return which values a metric takes; what has an order is a list, since objects have none."""
    match domain:
        case GridDomain(box=(west, south, east, north), shape=(rows, columns)):
            low, high = (float(west), float(south)), (float(east), float(north))
            return {"min": low, "max": high, "cells": (columns, rows)}
        case PairDomain(parts=parts):
            return {"parts": [{"name": name, "values": parts[name]} for name in parts]}
        case FunnelDomain(steps=steps):
            return {"values": steps}
        case RetentionDomain(periods=periods):
            return {"periods": periods}
        case ItemDomain(labels=labels):
            return {"values": labels}
        case TextDomain(length=length):
            return {"length": length}
        case KeyValueDomain(keys=keys, numbers=numbers, most=most):
            form = {**domain_form(keys), **domain_form(numbers), "most": most}
            del form["step"]  # the whole range, which nobody chose
            return form
        case NumberDomain(minimum=minimum, maximum=maximum, step=step, unit=unit):
            low_end, high_end, width = map(float, (minimum, maximum, step))
            return {"min": low_end, "max": high_end, "step": width, "unit": unit}
