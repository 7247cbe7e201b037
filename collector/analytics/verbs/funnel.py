"""How many devices reached each step, and how many of those that reached the step before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from client_sdk.registry.metric import Metric
from client_sdk.registry.types.joint import FunnelDomain

from ..rows import REACHED, Chart, Findings
from ..sums import answer_joined
from ..verb import Offer, Slice, Verb, VerbQuery

_CONVERTED: Final = "of the step before"


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with two rows a step of each slice, but for the first, which has no step before.

    One report joins all steps of a device, so both are shares of devices that took the steps.  All
    intervals hold at once; those of conversions are Fieller's.
    """
    return answer_joined(
        slices,
        query.alpha,
        measures=(REACHED, _CONVERTED),
        ratios=lambda members: zip(members[1:], members[:-1], strict=True),
    )


def refusal(metric: Metric) -> str | None:
    """Answer metrics that report the furthest step of a device."""
    if isinstance(metric.domain, FunnelDomain):
        return None
    return (
        "does not join the steps of a device, and no analysis can; ask for frequency or mean, "
        "or declare a metric of the type funnel"
    )


VERB = Verb(
    answer,
    refusal,
    joins=True,
    chart=Chart.STEPS,
    title="Funnel",
    offer=Offer(
        "How far did they get?",
        40,
        typed="funnel conversion convert step drop dropoff leave reach far",
    ),
)
