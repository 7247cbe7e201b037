"""The sum of the numbers over all reports: the mean times their number, which is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...estimation.estimate import Estimate
from ..rows import Findings, Row
from ..verb import Asked, Slice, Verb, refused_rows, rows_of
from .mean import mean_of, refusal

OF_REPORTS: Final = "the sum over the devices that reported, not over all there are"
OF_EPOCHS: Final = "the sum over the reports, of which a device may have sent one in each of {}"


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with one row a slice."""
    return Findings(tuple(row for part in slices for row in _rows(part, asked.alpha)))


def _rows(one: Slice, alpha: float) -> list[Row]:
    epochs = len(one.epochs)
    note = OF_REPORTS if epochs < 2 else OF_EPOCHS.format(f"{epochs} epochs")
    if one.refusal is not None:
        return refused_rows(one, [{}], alpha, one.metric.domain.unit)
    found = mean_of(one, alpha)
    ends = (found.value, found.std_error, found.ci_low, found.ci_high)
    whole = Estimate(*(one.n * end for end in ends))
    return rows_of(one, [{}], [whole], alpha, one.metric.domain.unit, note=note)


VERB = Verb(answer, refusal)
