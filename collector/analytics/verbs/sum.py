"""The sum of the numbers over all reports: the mean times their number, which is exact.

Where a panel draws a part π of the devices, the sum over all is the sum over those drawn, over π.
It scatters by (1 - π)/π times the sum of squares; a number x between a and b has a square of at
most (a + b) x - a b, and so has the mean of many.

Source: Horvitz, Thompson, JASA 1952: the estimate and its variance; the bound is derived here.
"""

from __future__ import annotations

from collections.abc import Sequence

from client_sdk.registry.metric import Metric

from ...core.remarks import Code, Remark, remark
from ...estimation.estimate import Estimate
from ..rows import Findings, Row
from ..verb import Offer, Slice, Verb, VerbQuery, refused_rows, rows_of, sampled
from . import mean


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with one row a slice."""
    return Findings(tuple(row for part in slices for row in _rows(part, query.alpha)))


def _rows(part: Slice, alpha: float) -> list[Row]:
    unit = part.metric.domain.unit
    if part.refusal is not None:
        return refused_rows(part, [{}], alpha, unit)
    return rows_of(part, [{}], [_total(part, alpha)], alpha, unit, notes=(_note(part),))


def _note(part: Slice) -> Remark:
    if part.metric.sample.share < 1:
        return remark(Code.SUM_OF_DRAWN)
    if len(part.epochs) < 2:
        return remark(Code.SUM_OF_REPORTS)
    return remark(Code.SUM_OF_EPOCHS, epochs=len(part.epochs))


def _total(part: Slice, alpha: float) -> Estimate:
    """Return the sum over all devices that would have reported, had a panel drawn them all."""
    domain = part.metric.domain
    least, most = domain.least, domain.least + domain.extent

    def squares(number: float) -> float:
        return (least + most) * min(max(number, least), most) - least * most

    of_reports = mean.mean_of_reports(part, alpha)
    (of_all,) = sampled(part, [of_reports], alpha, spread=squares)
    devices = part.n / part.metric.sample.share
    ends = (of_all.value, of_all.std_error, of_all.ci_low, of_all.ci_high)
    return Estimate(*(devices * end for end in ends))


def refusal(metric: Metric) -> str | None:
    """Answer metrics of numbers of which it is known how many devices report."""
    unknown = metric.sample.why_no_totals
    return mean.refusal(metric) or (unknown and f"{unknown}; ask for mean")


VERB = Verb(
    answer,
    refusal,
    offer=Offer("How much in total?", 110, typed="sum total altogether"),
)
