"""How numbers are spread: the share of the devices in each of equally wide buckets."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Final

from msgspec import Meta, Struct

from client_sdk.registry.metric import Metric

from ..distribution import Curve, assumption, refusal
from ..postprocess import OF_PARTS, processed
from ..rows import Chart, Findings, Row
from ..verb import Offer, Slice, Verb, VerbQuery, named, of_answered, refused_rows, rows_of

BUCKETS: Final = 20
DASH: Final = "–"  # between the ends of a bucket, which may have a minus sign


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """At most how many buckets, and whether their intervals are to hold at once."""

    buckets: Annotated[int, Meta(ge=1, le=256)] = BUCKETS
    simultaneous: bool = False


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a bucket of each slice.  The item has both ends, such as "10-20".

    A bucket holds its upper end; the first one holds its lower end, too.  Shares add up to 1.
    Intervals hold whatever the population is, unless the metric declares it smooth.
    """
    comparisons = sum(len(_edges(part, query)) - 1 for part in slices)
    alpha = query.alpha / max(comparisons, 1) if query.options.simultaneous else query.alpha
    rows = tuple(row for part in slices for row in _rows(part, query, alpha))
    edges = [float(edge) for edge in _edges(slices[0], query)] if slices else []
    return Findings(rows, facts={"edges": edges})


def _rows(part: Slice, query: VerbQuery, alpha: float) -> Sequence[Row]:
    ends = list(pairwise(_edges(part, query)))
    names = named([f"{float(low):.12g}{DASH}{float(high):.12g}" for low, high in ends])
    simultaneous = query.options.simultaneous
    if part.refusal is not None:
        return refused_rows(part, names, query.alpha, simultaneous=simultaneous)
    buckets = [(None if i == 0 else low, high) for i, (low, high) in enumerate(ends)]
    estimates = Curve.of(part.metric, part.tally, part.n).between(buckets, alpha)
    notes = assumption(part.metric)
    rows = rows_of(part, names, estimates, query.alpha, simultaneous=simultaneous, notes=notes)
    return processed(rows, query.postprocess)


def _edges(part: Slice, query: VerbQuery) -> list[Fraction]:
    return edges_of(part.metric, query.options.buckets)


def edges_of(metric: Metric, parts: int) -> list[Fraction]:
    """Return the ends of *parts* equal parts of the range, or of as many as have a grid step."""
    domain = metric.domain.grid
    assert domain is not None  # noqa: S101 - see refusal
    count = min(parts, domain.size - 1)
    width = (domain.maximum - domain.minimum) / count
    return [domain.minimum + i * width for i in range(count + 1)]


VERB = Verb(
    answer,
    refusal,
    Options,
    OF_PARTS,
    most_slices=400,
    holds=of_answered,
    chart=Chart.BUCKETS,
    title="Distribution",
    panel={"buckets": 24},
    offer=Offer(
        "How are the numbers spread?",
        140,
        typed="histogram distribution spread shape",
    ),
)
