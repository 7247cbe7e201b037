"""Numbers of one question that were found under several definitions of a metric, as one.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import erfc, sqrt

from ..estimate import Estimate, normal_quantile
from .rows import Findings, Row, quality_of


def combined(findings: Sequence[Findings], alpha: float) -> Findings:
    """Return *findings* as one: rows of the same dimensions weighted by inverse variance.

    The definitions have reports of different devices, so that their errors are independent.  Rows
    that only one has are left as they are; facts are those of the first.

    Derived: weights 1/s_i^2 make the least variance, 1/sum(1/s_i^2), of an unbiased mean.
    """
    if len(findings) == 1:
        return findings[0]
    places: dict[tuple[tuple[tuple[str, str], ...], str], list[Row]] = {}
    for found in findings:
        for row in found.rows:
            places.setdefault((tuple(row.dimensions.items()), row.unit), []).append(row)
    rows = tuple(_combine(rows, alpha) for rows in places.values())
    warnings = tuple(dict.fromkeys(text for found in findings for text in found.warnings))
    return Findings(rows, warnings, findings[0].facts)


def _combine(rows: Sequence[Row], alpha: float) -> Row:
    """Return one row of several that estimate the same."""
    known = [row for row in rows if row.value is not None and row.std_error]
    if len(known) < 2:
        return known[0] if known else rows[0]
    weights = [1 / (row.std_error or 1.0) ** 2 for row in known]
    total = sum(weights)

    def mean(numbers: Sequence[float | None]) -> float:
        return sum(w * (x or 0.0) for w, x in zip(weights, numbers, strict=True)) / total

    value, error = mean([row.value for row in known]), total**-0.5
    # A simultaneous interval is wider than z; the widest of the rows says by how much.
    reach = max(
        [
            normal_quantile(alpha),
            *(((row.ci_high or 0) - (row.ci_low or 0)) / 2 / (row.std_error or 1) for row in known),
        ]
    )
    estimate = Estimate(value, error, value - reach * error, value + reach * error)
    raws = [row.value if row.raw is None else row.raw for row in known]
    return replace(
        known[0],
        value=value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        std_error=error,
        n=sum(row.n for row in known),
        quality=quality_of(estimate),
        raw=None if known[0].raw is None else mean(raws),
        p_value=None if known[0].p_value is None else 2 * _upper_tail(abs(value) / error),
        fakes_to_flip=None,
        note="combined over definitions of the metric by inverse variance",
    )


def _upper_tail(z: float) -> float:
    return 0.5 * erfc(z / sqrt(2))
