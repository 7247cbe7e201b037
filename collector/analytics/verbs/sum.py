"""The sum of the numbers over all reports: the mean times their number, which is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...estimation.estimate import Estimate
from ..rows import Findings, Row
from ..verb import Slice, Verb, VerbQuery, refused_rows, rows_of
from .mean import mean_of, refusal

OF_REPORTS: Final = "the sum over the devices that reported, not over all there are"
OF_EPOCHS: Final = "the sum over the reports, of which a device may have sent one in each of {}"


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with one row a slice."""
    return Findings(tuple(row for part in slices for row in _rows(part, query.alpha)))


def _rows(part: Slice, alpha: float) -> list[Row]:
    epochs = len(part.epochs)
    note = OF_REPORTS if epochs < 2 else OF_EPOCHS.format(f"{epochs} epochs")
    if part.refusal is not None:
        return refused_rows(part, [{}], alpha, part.metric.domain.unit)
    estimate = mean_of(part, alpha)
    ends = (estimate.value, estimate.std_error, estimate.ci_low, estimate.ci_high)
    whole = Estimate(*(part.n * end for end in ends))
    return rows_of(part, [{}], [whole], alpha, part.metric.domain.unit, note=note)


VERB = Verb(answer, refusal)
