"""How many devices were active in each period, and how many of those active in the first."""

from __future__ import annotations

from collections.abc import Sequence

from client_sdk.metric import Metric
from client_sdk.structured_domains import RetentionDomain

from ..items.joined import UNSURE, members_of
from ..items.sums import Shares
from ..items.tables import refused_rows, rows_of
from ..rows import ITEM, Findings, Row
from ..slices import Asked, Slice
from ..verb import Verb
from .funnel import MEASURE

ACTIVE, RETAINED = "active", "of the first period"


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with two rows a period of each slice, but for the first.

    One report joins all periods of a device, so that a device which comes back is seen to.  All
    intervals hold at once; those of devices that came back are Fieller's.
    """
    rows: list[Row] = []
    comparisons = sum(2 * len(_domain(one).periods) - 1 for one in slices)
    for one in slices:
        rows += _rows(one, asked.alpha, asked.alpha / comparisons)
    return Findings(tuple(rows))


def _rows(one: Slice, alpha: float, level: float) -> list[Row]:
    domain = _domain(one)
    active = [{ITEM: period, MEASURE: ACTIVE} for period in domain.periods]
    retained = [{ITEM: period, MEASURE: RETAINED} for period in domain.periods[1:]]
    if one.refusal is not None:
        return refused_rows(one, [*active, *retained], alpha, simultaneous=True)
    found = Shares.of_slice(one)
    members = members_of(domain)
    rows = rows_of(
        one, active, found.groups(members, level), alpha, simultaneous=True, note=found.note
    )
    for name, period in zip(retained, members[1:], strict=True):
        ratio = found.ratio(period & members[0], members[0], level)
        if ratio is None:
            rows += refused_rows(one, [name], alpha, reason=UNSURE, simultaneous=True)
        else:
            rows += rows_of(one, [name], [ratio], alpha, simultaneous=True, note=found.note)
    return rows


def _domain(one: Slice) -> RetentionDomain:
    domain = one.metric.domain
    assert isinstance(domain, RetentionDomain)  # noqa: S101 - see refusal
    return domain


def refusal(metric: Metric) -> str | None:
    """Answer metrics that report the periods of a device together."""
    if isinstance(metric.domain, RetentionDomain):
        return None
    return (
        'does not join the periods of a device, and no analysis can; declare type = "retention", '
        "or ask for actives or trend"
    )


VERB = Verb(answer, refusal, joins=True)
