"""How many devices were active in each period, and how many of those active in the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from client_sdk.registry.metric import Metric
from client_sdk.registry.types.joint import RetentionDomain

from ..rows import ACTIVE, Chart, Findings
from ..sums import answer_joined
from ..verb import Offer, Slice, Verb, VerbQuery

_RETAINED: Final = "of the first period"


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with two rows a period of each slice, but for the first.

    One report joins all periods of a device, so that a device which comes back is seen to.  All
    intervals hold at once; those of devices that came back are Fieller's.
    """
    return answer_joined(
        slices,
        query.alpha,
        measures=(ACTIVE, _RETAINED),
        ratios=lambda members: ((period & members[0], members[0]) for period in members[1:]),
    )


def refusal(metric: Metric) -> str | None:
    """Answer metrics that report the periods of a device together."""
    if isinstance(metric.domain, RetentionDomain):
        return None
    return (
        "does not join the periods of a device, and no analysis can; ask for actives or trend, "
        "or declare a metric of the type retention"
    )


VERB = Verb(
    answer,
    refusal,
    joins=True,
    chart=Chart.ORDERED,
    title="Retention",
    offer=Offer("Who came back?", 50, typed="retention return retained churn cohort"),
)
