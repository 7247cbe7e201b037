"""Factors of tastes: the eigenvectors of a mean moment that stand above the noise of its reports.

Reports of a taste of K items tell the mean M of y yᵀ, a matrix of K rows, up to a symmetric error
E.  Its eigenvectors V with the largest eigenvalues λ are the factors: V diag(λ) Vᵀ is the matrix of
their rank that is nearest to M (Eckart, Young, Psychometrika 1936).  Noise has eigenvectors, too,
so only those are published whose eigenvalue noise alone reaches with FALSE_ALARM at most.

Derived.  The K(K+1)/2 numbers e of E, entries beside the diagonal times √2, have the covariance
(C/n)(I + s W) at most: C is the variance of a report in a direction, s the mechanism's ``stretch``
and W a matrix of trace 1, that of the devices' own directions; they are a sum of n independent
reports, so nearly normal.  Write e = e' + e'' with the covariances (C/n) I and (C/n) s W.

  1. For unit vectors u and w, (uᵀE'u - wᵀE'w)² has the mean (C/n) |u uᵀ - w wᵀ|², which is
     (2C/n)(1 - (uᵀw)²), and so at most that of a normal vector g of variance 2C/n an entry,
     (gᵀu - gᵀw)² of mean (2C/n)|u - w|².  By Sudakov and Fernique the largest eigenvalue of E' has
     a mean of at most that of |g|, √(2KC/n).  That of E'' is at most its length: √(sC/n).
  2. uᵀE u has a variance of (1 + s) C/n at most, so its largest value is above its mean by more
     than √(2 (1+s) (C/n) ln(1/α)) with chance α at most (Borell; Tsirelson, Ibragimov, Sudakov).
  3. What the mechanism's bias adds is of length √2 times its bound at most, as in ``vector``, and
     the rounding of moments adds less than K parts of UNIT.

So the largest eigenvalue of E is at most ``noise(α)``, the sum of all four, but for α.  By Weyl an
eigenvalue of M + E is at most that of M at its place and the largest of E.  Therefore

  - where M has q eigenvalues above 0, more than q directions are published with α at most,
  - every eigenvalue of M is within noise(α/2) of its estimate, all at once, with level 1 - α.

Tests hold the first against the draws of real reports, and step 1 and 2 against normal matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, Final

import numpy as np

from client_sdk.core.errors import InvalidParameterError
from client_sdk.learning.factors import KIND
from client_sdk.learning.model import Model
from client_sdk.mechanisms import UNIT, VectorMechanism
from client_sdk.privacy.wording import counted
from client_sdk.registry.types.vector import TasteDomain

from ..analytics.verb import Slice
from ..core.errors import QueryError
from ..estimation.arrays import Floats
from ..estimation.estimate import coordinates
from ..estimation.precision import ALPHA
from ..query.reading import naming

FALSE_ALARM: Final = 1e-3  # chance that a direction of noise is published, at most
_DIGITS: Final = 6  # after the point; of a billion reports the noise is larger


@dataclass(frozen=True)
class Moment:
    """The estimated mean moment of n tastes, and how far noise may have moved it.

    ``matrix`` has shape (K, K).  ``error`` is √(C/n), ``stretch`` that of the mechanism, and
    ``bias`` the length of what no number of reports takes away.
    """

    matrix: Floats
    n: int
    error: float
    stretch: float
    bias: float

    @classmethod
    def of(cls, part: Slice) -> Moment:
        """Return that of the n > 0 reports of a slice.  Raises InvalidTallyError."""
        mechanism, count = part.metric.mechanism, len(part.metric.domain.labels)
        assert isinstance(mechanism, VectorMechanism)  # noqa: S101 - what tastes encode
        totals, variances = mechanism.debias(part.tally, part.n, np)
        entries = 2 * totals / part.n - 1
        matrix = np.diag(entries[:count])
        above = np.triu_indices(count, 1)
        matrix[above] = entries[count:] / sqrt(2)
        matrix[above[::-1]] = matrix[above]
        # the squares of a mean, whose length is 1 at most, are missing from variances
        variance = 4 * float(variances.mean()) / part.n + 1 / mechanism.domain_size
        bias = sqrt(2) * 2 * mechanism.bias + count / UNIT
        return cls(matrix, part.n, sqrt(variance / part.n), mechanism.stretch, bias)

    def noise(self, alpha: float) -> float:
        """Return what the largest eigenvalue of the error exceeds with *alpha* at most."""
        return self._scatter(alpha) + self.bias

    def reports_for(self, eigenvalue: float) -> int | None:
        """Return how many reports make the noise that small; None: no number does."""
        left = eigenvalue - self.bias
        return ceil(self.n * (self._scatter(FALSE_ALARM) / left) ** 2) if left > 0 else None

    def _scatter(self, alpha: float) -> float:
        mean = sqrt(2 * len(self.matrix)) + sqrt(self.stretch)
        return self.error * (mean + sqrt(2 * (1 + self.stretch) * log(1 / alpha)))


def learn(part: Slice, rank: int | None = None) -> Model:
    """Return the factors of the reports of a slice, *rank* of them at most.

    Raises: QueryError: its metric is no taste, or no eigenvalue is above the noise; says how many
            reports would do.  DamagedTallyError.  InvalidParameterError: *rank* is below 1.
    """
    metric, count = part.metric, len(part.metric.domain.labels)
    if not isinstance(metric.domain, TasteDomain):
        raise QueryError("metric", "must be of type taste to have factors", metric.address)
    if rank is not None and rank < 1:
        raise InvalidParameterError("rank", rank, "must be at least 1")
    with naming(metric):
        moment = Moment.of(part)
    values, vectors = np.linalg.eigh(moment.matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    limit = moment.noise(FALSE_ALARM)
    above = int((values > limit).sum())
    if above == 0:
        raise QueryError("metric", f"{_too_few(moment, float(values[0]))}", metric.address)
    kept = min(above, rank or count)
    shown = vectors[:, :kept]
    shown = shown * np.where(shown.sum(axis=0) < 0, -1, 1)  # either sign says the same
    reach = moment.noise(ALPHA / 2)
    parts = {
        "items": list(metric.domain.labels),
        "rank": kept,
        "eigenvalues": [_within(value, reach) for value in values[:kept].tolist()],
        "factors": [[round(x, _DIGITS) for x in row] for row in shown.tolist()],
        "shares": _shares(part),
        "level": 1 - ALPHA,
        "noise": round(limit, _DIGITS),
        "false_alarm": FALSE_ALARM,
    }
    return Model.of(KIND, metric, part.n, parts)


def summary(model: Model) -> Iterator[str]:
    """Yield what factors that were learned here are of, in words, and what they do not tell."""
    parts = model.parts
    count = counted(parts["rank"], "factor")
    yield f"{count} of {counted(model.reports, 'report')} at ε {model.epsilon}"
    for value, low, high in parts["eigenvalues"][:1]:
        rule = f"noise alone stays below {parts['noise']:.3f}"
        yield f"largest eigenvalue {value:.3f} ({low:.3f} to {high:.3f}); {rule}"
    few = [
        item for item, (_, low, _) in zip(parts["items"], parts["shares"], strict=True) if low <= 0
    ]
    if few:
        yield f"perhaps liked by nobody, as too few devices report it: {', '.join(few)}"


def _shares(part: Slice) -> list[list[float]]:
    """Return the part of all likes of each item with its own interval, as ``vector`` answers."""
    mechanism: Any = part.metric.mechanism
    extent = part.metric.domain.extent / 2  # what 1 is in the unit of answers
    rows = coordinates(mechanism, part.metric.domain, part.tally, part.n, ALPHA)
    return [
        [round(x / extent, _DIGITS) for x in (row.value, row.ci_low, row.ci_high)] for row in rows
    ]


def _within(value: float, reach: float) -> list[float]:
    """Return a number with its interval, cut off at what the truth can be."""
    ends = max(value - reach, 0.0), min(value + reach, 1.0)
    return [round(number, _DIGITS) for number in (value, *ends)]


def _too_few(moment: Moment, largest: float) -> str:
    """Return why there are no factors, and how many reports would do."""
    count, limit = len(moment.matrix), moment.noise(FALSE_ALARM)
    said = f"no eigenvalue is above the noise: largest is {largest:.3g}, noise gives {limit:.3g}"
    if seeming := moment.reports_for(largest):
        said += f"; if it is that large, {seeming:,} reports would do in place of {moment.n:,}"
    # the eigenvalues of tastes add up to 1, so that the largest of K is 1/K at least
    if enough := moment.reports_for(1 / (2 * count)):
        said += f"; {enough:,} are enough for the first factor where every device likes something"
    return said
