"""What each digest in the store means, and which of these definitions no registry file has.

A tally is kept under a digest, which does not name its metric.  So what a digest stands for is
recorded before anything is folded under it: the metric, the lines of a registry that choose its
mechanism, and a digest of each part of its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from client_sdk.registry.lock import parameters_text
from client_sdk.registry.metric import Metric

from .catalog import Catalog


class Orphan(NamedTuple):
    """A definition that no registry file has."""

    digest: bytes
    name: str
    pin: str  # the lines of a registry that choose its mechanism, and where
    in_use: str | None  # the mechanism of the metric now; None: no registry file has it
    changed: tuple[str, ...]  # parts of the meaning that are others now
    reports: int = 0  # that are stored


def records_of(catalog: Catalog) -> dict[bytes, str]:
    """Return the record of each definition, by its digest."""
    return {
        digest: json.dumps([f"{metric.app}/{metric.name}", _pin(metric), _parts(metric)])
        for digest, metric in catalog.by_digest.items()
    }


def orphans_among(records: Mapping[bytes, bytes], catalog: Catalog) -> Iterator[Orphan]:
    """Yield the definitions of *records* that *catalog* has in no registry file.

    What is no record of ours is passed over, and so is what a terminal could act on.
    """
    metrics = {f"{metric.app}/{metric.name}": metric for metric in catalog}
    for digest in sorted(records.keys() - catalog.by_digest.keys()):
        try:
            name, pin, then = json.loads(records[digest])
            metric = metrics.get(name)
            now = {} if metric is None else _parts(metric)
            changed = tuple(key for key in {**then, **now} if then.get(key) != now.get(key))
            is_ours = "".join((name, pin, *then)).isprintable()
        except (ValueError, TypeError, AttributeError):
            continue
        in_use = None if metric is None else metric.mechanism_name
        if is_ours:
            address = name if metric is None else metric.address
            yield Orphan(digest, address, pin, in_use, changed)


def _pin(metric: Metric) -> str:
    heading = f'metrics."{metric.name}"' if "." in metric.name else f"metrics.{metric.name}"
    own = parameters_text(metric)
    parameters = "" if own == "{}" else f", parameters = {own}"
    return f'mechanism = "{metric.mechanism_name}"{parameters} under [{heading}]'


def _parts(metric: Metric) -> dict[str, str]:
    return {
        key: sha256(json.dumps(part).encode()).hexdigest()[:12]
        for key, part in json.loads(metric.meaning).items()
    }
