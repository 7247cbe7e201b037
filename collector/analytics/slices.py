"""What a verb is given: the merged reports of each slice, and what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from client_sdk.registry.metric import Metric

from .rows import RAW, TIME

NOT_SAID: Final = "(not said)"  # the value of a dimension that a device did not tell
OTHER: Final = "(other)"  # the value of dimensions of groups that are told together


@dataclass(frozen=True)
class Slice:
    """The reports of one metric that share the values of all dimensions that were asked for.

    ``refusal`` says why there is no number: too few reports.  A verb that estimates must give a row
    with this reason, so that no report is missing from its answer.  One that only counts reports
    need not heed it, nor need sums over several slices.
    """

    metric: Metric
    dimensions: Mapping[str, str]  # in the order asked: "time" to a label, a dimension to a value
    n: int  # reports
    tally: Any  # int64, shape (metric.mechanism.tally_size,)
    epochs: tuple[int, ...]  # whose reports are here, ascending
    is_open: bool = False  # the last epoch is still running
    late: int = 0  # of the n reports, those folded later than a day after their epoch
    refusal: str | None = None


@dataclass(frozen=True)
class Asked:
    """What was asked of the slices: 1 - level, post-processing and the verb's own options."""

    alpha: float
    postprocess: str = RAW
    options: Any = field(default=None)  # a frozen struct of the verb's own type
    segments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # grouped by, in order


def merged(parts: Sequence[Slice], dimensions: Mapping[str, str]) -> Slice:
    """Return the reports of at least one slice together, as the slice of *dimensions*."""
    return replace(
        parts[0],
        dimensions=dimensions,
        n=sum(one.n for one in parts),
        tally=sum(one.tally for one in parts),
        epochs=tuple(sorted({epoch for one in parts for epoch in one.epochs})),
        is_open=any(one.is_open for one in parts),
        late=sum(one.late for one in parts),
        refusal=None,
    )


def in_order(slices: Iterable[Slice]) -> list[Slice]:
    """Return *slices* in the order of time, and of values as they are declared."""
    return sorted(slices, key=_place)


def _place(one: Slice) -> tuple[Any, ...]:
    """Return where a slice stands: what was not said, and what is told together, come last."""
    places: list[Any] = []
    for name, value in one.dimensions.items():
        declared = one.metric.segments.get(name, ())
        last = len(declared) + (value == OTHER)
        place: Any = value if name == TIME else declared.index(value) if value in declared else last
        places.append(place)
    return tuple(places)
