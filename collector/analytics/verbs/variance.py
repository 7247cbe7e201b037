"""How much the numbers of the devices differ: their variance, and in words the deviation.

For a report y of bin i, E[y | i] and E[y^2 | i] are a line and a parabola in i.  So there are
weights u, a line in y, and v, a parabola in y, that a report of bin i meets with i and i^2 on
average.  The population's variance is the mean of v less the square of the mean of u, to which the
variance of that mean is added, as a square takes it in.

Its own error follows from that of v - 2 m u, m being the mean (the delta method), for the devices
that reported.  A number between two bins is rounded to one of them at random, which adds at most a
quarter of a bin's square to the variance: the interval reaches that much lower.

Source: Li et al., SIGMOD 2020, for the reports; the estimator is derived here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry.domain import NumberGrid
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ...core.text_tables import in_digits
from ...estimation.arrays import Floats, Ints
from ...estimation.estimate import Estimate, normal_quantile
from ..quantiles import linear_cdf
from ..rows import Findings, Row
from ..verb import Offer, Slice, Verb, VerbQuery, never, of_answered, refused_rows, rows_of
from . import mean

POSSIBLE: Final = "possible"  # what noise moved beyond a variance that numbers can have: the end
ROUNDING: Final = 1 / 4  # of a bin's square: the most that rounding at random adds
_CLOSE: Final = 1e-6  # of the largest square; more is no parabola
_MEAN_ONLY: Final = (
    'has reports that tell the mean, not how numbers differ; declare it with ask = ["quantiles"]'
)


def population_variance(
    mechanism: DistributionMechanism, domain: NumberGrid, tally: Ints, n: int, alpha: float
) -> Estimate:
    """Return the variance of the numbers of *n* > 0 devices, in the unit of *domain*, squared.

    The value is unbiased but for rounding, so it may be below 0; its interval is cut off at what
    numbers of the range can have.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
            QueryError: reports of this mechanism do not meet squares.
    """
    seen = mechanism.require_counts(tally, n, np) / n
    line, square = moment_weights(mechanism)
    mean = float(line @ seen)
    of_mean = float(_variances(mechanism, line[None, :], seen, n)[0])
    value = float(square @ seen) - mean**2 + of_mean
    error = float(np.sqrt(_variances(mechanism, (square - 2 * mean * line)[None, :], seen, n)[0]))
    reach = normal_quantile(alpha) * error
    scale = (float(domain.maximum - domain.minimum) / (mechanism.bins - 1)) ** 2  # a bin's square
    most = (mechanism.bins - 1) ** 2 / 4  # half of the devices at either end
    low, high = np.clip([value - ROUNDING - reach, value + reach], 0, most)
    return Estimate(value * scale, error * scale, float(low) * scale, float(high) * scale)


def moment_weights(mechanism: DistributionMechanism) -> tuple[Floats, Floats]:
    """Return the weights of symbols, shape (symbols,), that are met with i and with i^2 by bin i.

    Raises: QueryError: no line and no parabola in the symbols is.
    """
    places, symbols = np.arange(mechanism.bins), np.linspace(-1, 1, mechanism.symbols)
    powers = np.vstack([symbols**0, symbols, symbols**2])
    met = mechanism.gather(powers, np).T
    moments = np.vstack([places, places**2]).T.astype(np.float64)
    mixed, *_ = np.linalg.lstsq(met, moments, rcond=None)
    if np.abs(met @ mixed - moments).max() > _CLOSE * moments.max():
        raise QueryError("metrics", f"mechanism {mechanism.name} does not tell a variance")
    line, square = (powers.T @ mixed).T
    return line, square


def _variances(mechanism: DistributionMechanism, weights: Floats, seen: Floats, n: int) -> Floats:
    """Return the variance of the mean of each of *weights*, shape (k, symbols), for these devices.

    At least what it would be if all sat in the bin of the least noise.
    """
    response = mechanism.gather(weights, np)
    least = (mechanism.gather(weights**2, np) - response**2).min(axis=1)
    held = linear_cdf(mechanism, n).shares @ seen
    spread: Floats = np.maximum(weights**2 @ seen - response**2 @ held, least)
    return spread / n


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with one row a slice, in the square of the unit.

    Of a value that no numbers can have the nearest possible one is told, and it as ``raw``.
    It is the variance of the devices that reported, without the noise of their reports.
    """
    return Findings(tuple(row for part in slices for row in _rows(part, query.alpha)))


def _rows(part: Slice, alpha: float) -> list[Row]:
    unit = part.metric.domain.unit
    if part.refusal is not None:
        return refused_rows(part, [{}], alpha, f"{unit}²")
    mechanism: Any = part.metric.mechanism
    domain: Any = part.metric.domain
    estimate = population_variance(mechanism, domain, part.tally, part.n, alpha)
    value = min(max(estimate.value, estimate.ci_low), estimate.ci_high)
    notes = (_deviation(value, estimate, unit),)
    rows = rows_of(part, [{}], [estimate], alpha, f"{unit}²", notes=notes)
    if value == estimate.value:
        return rows
    return [replace(row, value=value, raw=row.value, postprocess=POSSIBLE) for row in rows]


def _deviation(value: float, estimate: Estimate, unit: str) -> Remark:
    middle, low, high = (
        in_digits(sqrt(number)) for number in (value, estimate.ci_low, estimate.ci_high)
    )
    return remark(Code.DEVIATION, middle=middle, unit=unit, low=low, high=high)


def refusal(metric: Metric) -> str | None:
    """Answer metrics whose reports tell of a distribution."""
    if metric.domain.grid is None:
        return mean.refusal(metric)
    return None if isinstance(metric.mechanism, DistributionMechanism) else _MEAN_ONLY


VERB = Verb(
    answer,
    refusal,
    most_slices=400,
    holds=of_answered,
    offer=Offer(
        "How much do devices differ?",
        230,
        is_usual=never,
        typed="variance deviation standard sigma vary",
    ),
)
