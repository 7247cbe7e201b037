"""How many devices reached each step, and how many of those that reached the step before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from client_sdk.metric import Metric
from client_sdk.structured_domains import FunnelDomain

from ..items.joined import UNSURE, members_of
from ..items.sums import Shares
from ..items.tables import refused_rows, rows_of
from ..rows import ITEM, Findings, Row
from ..slices import Asked, Slice
from ..verb import Verb

MEASURE: Final = "measure"  # the dimension that tells of what a share is
REACHED, CONVERTED = "reached", "of the step before"


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with two rows a step of each slice, but for the first, which has no step before.

    One report joins all steps of a device, so both are shares of devices that took the steps.  All
    intervals hold at once; those of conversions are Fieller's.
    """
    rows: list[Row] = []
    comparisons = sum(2 * len(_domain(one).steps) - 1 for one in slices)
    for one in slices:
        rows += _rows(one, asked.alpha, asked.alpha / comparisons)
    return Findings(tuple(rows))


def _rows(one: Slice, alpha: float, level: float) -> list[Row]:
    domain = _domain(one)
    steps = domain.steps
    reached = [{ITEM: step, MEASURE: REACHED} for step in steps]
    converted = [{ITEM: step, MEASURE: CONVERTED} for step in steps[1:]]
    if one.refusal is not None:
        return refused_rows(one, [*reached, *converted], alpha, simultaneous=True)
    found = Shares.of_slice(one)
    members = members_of(domain)
    rows = rows_of(
        one, reached, found.groups(members, level), alpha, simultaneous=True, note=found.note
    )
    for name, part, whole in zip(converted, members[1:], members[:-1], strict=True):
        ratio = found.ratio(part, whole, level)
        if ratio is None:
            rows += refused_rows(one, [name], alpha, reason=UNSURE, simultaneous=True)
        else:
            rows += rows_of(one, [name], [ratio], alpha, simultaneous=True, note=found.note)
    return rows


def _domain(one: Slice) -> FunnelDomain:
    domain = one.metric.domain
    assert isinstance(domain, FunnelDomain)  # noqa: S101 - see refusal
    return domain


def refusal(metric: Metric) -> str | None:
    """Answer metrics that report the furthest step of a device."""
    if isinstance(metric.domain, FunnelDomain):
        return None
    return (
        'does not join the steps of a device, and no analysis can; declare type = "funnel", '
        "or ask for frequency or mean"
    )


VERB = Verb(answer, refusal, joins=True)
