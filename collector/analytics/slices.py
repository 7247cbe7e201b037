"""What a verb is given: the merged reports of each slice, and what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from client_sdk.metric import Metric

from .rows import RAW

FLOOR: Final = 100  # reports that any difference of two answers must hold, if it holds any


@dataclass(frozen=True)
class Slice:
    """The reports of one metric that share the values of all dimensions that were asked for.

    ``refusal`` says why there may be no number: too few reports, of this slice or of what would be
    left of the others beside it.  A verb must give a row with this reason, and may not use the
    tally in any other row but those of sums over all slices, or of so many of them that FLOOR
    reports of the ``whole``, or none, are in no row.
    """

    metric: Metric
    dimensions: Mapping[str, str]  # in the order asked: "time" to a label, a dimension to a value
    n: int  # reports
    tally: Any  # int64, shape (metric.mechanism.tally_size,)
    epochs: tuple[int, ...]  # whose reports are here, ascending
    is_open: bool = False  # the last epoch is still running
    late: int = 0  # of the n reports, those folded later than a day after their epoch
    refusal: str | None = None
    whole: int | None = None  # reports of its stretch of time, if slices of it may be left out


@dataclass(frozen=True)
class Asked:
    """What was asked of the slices: 1 - level, post-processing and the verb's own options."""

    alpha: float
    postprocess: str = RAW
    options: Any = field(default=None)  # a frozen struct of the verb's own type
    segments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # grouped by, in order
