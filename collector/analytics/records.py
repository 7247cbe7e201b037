"""Tables of records: the reports about each attribute, as those of a pair of answers.  Pure.

A device draws one of its attributes and tells of no other, so m of n reports are about one, and the
table of its values by label is in these alone.  They are of devices drawn at random from all n, as
if a panel had drawn a part m/n of them: so ``sample`` of the metric of such a slice says that part,
and intervals widen as they do for a panel, by (1 - m/n) f (1-f) / m for a share f.

A panel that draws a part π itself leaves (1 - π m/n) / m of it, which is both draws together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from client_sdk.core.dataclass import replace as changed
from client_sdk.core.epoch import LENGTHS
from client_sdk.mechanisms import RecordMechanism
from client_sdk.registry.metric import Metric, Sample
from client_sdk.registry.types.record import ATTRIBUTE, AttributeDomain, RecordDomain

from ..core.remarks import Code, remark
from .verb import Slice


def is_of_records(metric: Metric) -> bool:
    """Return whether reports of *metric* are each about one attribute of a record."""
    return isinstance(metric.mechanism, RecordMechanism)


def attributes_of(metric: Metric) -> tuple[AttributeDomain, ...]:
    """Return the attributes of a metric of records, in order."""
    domain = metric.domain
    assert isinstance(domain, RecordDomain)  # noqa: S101 - records are mechanisms' of no other
    return domain.attributes


def by_attribute(part: Slice) -> Iterator[Slice]:
    """Yield the reports of a slice of records about each attribute, as a slice of a pair.

    Raises: InvalidTallyError: the tally cannot have come from its reports.
    """
    metric, domain = part.metric, part.metric.domain
    mechanism: Any = metric.mechanism
    assert isinstance(domain, RecordDomain)  # noqa: S101 - see the verbs' refusals
    tables = mechanism.parts(part.tally, part.n, np)
    for attribute, table in zip(domain.attributes, tables, strict=True):
        yield replace(
            part,
            metric=changed(
                metric,
                domain=domain.pair(attribute),
                mechanism=table.mechanism,
                mechanism_name=table.mechanism.name,
                sample=_drawn(metric, table.n, part.n),
            ),
            dimensions={**part.dimensions, ATTRIBUTE: attribute.name},
            n=table.n,
            tally=table.tally,
            refusal=part.refusal or (None if table.n else remark(Code.NONE_ABOUT)),
            reports={},
            origins={},
        )


def _drawn(metric: Metric, drawn: int, n: int) -> Sample:
    """Return which part of the devices report about an attribute, of a draw for each epoch."""
    share, period, _ = metric.sample
    if share >= 1 and metric.every in LENGTHS:
        period = metric.every
    return Sample(share * drawn / max(n, 1), period)
