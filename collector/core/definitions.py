"""What each digest in the store means, and which of these definitions no registry file has.

A tally is kept under a digest, which does not name its metric.  So what a digest stands for is
recorded before anything is folded under it: the metric, its mechanism with the parameters, and each
other part of its meaning, long ones as their SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.fields import parameters_text
from client_sdk.registry.metric import Metric

from .catalog import Catalog

_OWN: Final = {"name", "mechanism"}  # parts of a meaning that are recorded apart


class Orphan(NamedTuple):
    """A definition that no registry file has, against the one that is in use."""

    digest: bytes
    name: str
    mechanism: str
    pin: str  # the lines of a registry that choose this mechanism, parameters included
    in_use: str | None  # the mechanism; None: no registry file has the metric
    changed: tuple[str, ...]  # keys that differ, besides the mechanism
    reports: int | None = None  # that are stored; None: that may not be asked


def records_of(catalog: Catalog) -> dict[bytes, str]:
    """Return the record of each definition, by its digest."""
    return {digest: _record(metric) for digest, metric in catalog.by_digest.items()}


def orphans_among(records: Mapping[bytes, bytes], catalog: Catalog) -> Iterator[Orphan]:
    """Yield the definitions of *records* that *catalog* has in no registry file.

    What is no record of ours is passed over.
    """
    for digest in sorted(records.keys() - catalog.by_digest.keys()):
        try:
            yield _orphan(digest, json.loads(records[digest]), catalog)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue


def _record(metric: Metric) -> str:
    own = {
        "app": metric.app,
        "name": metric.name,
        "mechanism": metric.mechanism_name,
        "parameters": parameters_text(metric),
        "parts": _parts(metric),
    }
    return json.dumps(own)


def _parts(metric: Metric) -> dict[str, str]:
    meaning = json.loads(metric.meaning)
    return {key: _short(part) for key, part in meaning.items() if key not in _OWN}


def _short(part: object) -> str:
    if isinstance(part, str):
        return part
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()


def _orphan(digest: bytes, record: Mapping[str, Any], catalog: Catalog) -> Orphan:
    name, mechanism, parameters = record["name"], record["mechanism"], record["parameters"]
    pin = f'mechanism = "{mechanism}"' + (
        "" if parameters == "{}" else f", parameters = {parameters}"
    )
    try:
        metric = catalog.metric(f"{record['app']}/{name}")
    except UnknownMetricError:
        return Orphan(digest, name, mechanism, pin, None, ())
    then, now = record["parts"], _parts(metric)
    changed = [key for key in {**now, **then} if then.get(key) != now.get(key)]
    return Orphan(digest, metric.address, mechanism, pin, metric.mechanism_name, tuple(changed))
