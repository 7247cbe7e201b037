"""The mean of vectors: every coordinate with its interval, and an ellipsoid around all of them.

The intervals are pointwise.  The ellipsoid is the set of all w with sum(((w_j - v_j) / s_j)^2) at
most q, v being the estimate and s the standard errors, and holds the true mean with the level that
was asked for.  It is asked of no report what its other coordinates were, so how errors go together
is not measured but bounded: along one line at most, whichever it is, reports scatter more than
across it, by the mechanism's ``stretch``.

Derived: in units of s the errors are nearly normal with eigenvalues 1 + a w_i, w_i >= 0 of sum 1,
a the stretch.  Their sum of squares is largest, where it is large, if all of a is along one line:
(1 + a) times a chi-square of 1 degree and one of d - 1, whose quantile q is found by bisection.
What the mechanism's bias can add is at most its bound in any two coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import Final

from client_sdk.mechanisms import VectorMechanism
from client_sdk.registry.metric import Metric

from ...estimation.significance import chi_square_tail
from ..answer import answer_rows
from ..rows import Findings, Row
from ..verb import Offer, Slice, Verb, VerbQuery, always

_PLACES: Final = 200  # equal parts of a normal law that its square is averaged over
_ROUNDS: Final = 60  # halvings: below every digit that is shown


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with one row a coordinate of each slice; facts tell the ellipsoid of each."""
    rows: list[Row] = []
    ellipsoids = []
    for part in slices:
        of_part = answer_rows(part, query.alpha)
        rows += of_part
        if not (part.refusal or part.mixture):
            ellipsoids.append({"dimensions": dict(part.dimensions), **_ellipsoid(part, of_part)})
    return Findings(tuple(rows), facts={"ellipsoids": ellipsoids} if ellipsoids else {})


def _ellipsoid(part: Slice, rows: Sequence[Row]) -> dict[str, object]:
    """Return the half-axes of the ellipsoid around the estimates of a slice, in order."""
    mechanism = part.metric.mechanism
    assert isinstance(mechanism, VectorMechanism)  # noqa: S101 - see refusal
    errors = [row.std_error or 0.0 for row in rows]
    bias = mechanism.bias * part.metric.domain.extent
    reach = sqrt(largest_square(len(rows), mechanism.stretch, rows[0].alpha))
    reach += sqrt(2) * bias / min(errors)
    return {"half_axes": [reach * error for error in errors], "n": part.n}


@lru_cache(maxsize=256)
def largest_square(length: int, stretch: float, alpha: float) -> float:
    """Return what (1 + *stretch*) χ²(1) + χ²(length - 1) exceeds with *alpha* at most."""
    normal = NormalDist()
    squares = [
        (1 + stretch) * normal.inv_cdf((place + 0.5) / _PLACES) ** 2
        for place in range(_PLACES // 2)
    ]

    def beyond(limit: float) -> float:
        tails = (
            chi_square_tail(limit - square, length - 1) if square < limit else 1.0
            for square in squares
        )
        return 2 * sum(tails) / _PLACES

    low, high = 0.0, float(length + 1 + stretch)
    while beyond(high) > alpha:
        high *= 2
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > alpha else (low, middle)
    return high


def refusal(metric: Metric) -> str | None:
    """Answer metrics of vectors."""
    if isinstance(metric.mechanism, VectorMechanism):
        return None
    return "has no vectors; ask for mean or frequency, or declare a metric of the type vector"


VERB = Verb(
    answer,
    refusal,
    combines=always,
    title="Mean of each",
    offer=Offer("How much of each on average?", 70, typed="each average mean profile"),
)
