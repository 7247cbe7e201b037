"""Shares and means that were found under several definitions of a metric, as one.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

from ..estimation.estimate import Estimate, normal_quantile
from .rows import Findings, Row, quality_of

_NOTE = "over several definitions of the metric, each by its reports"


def combined(findings: Sequence[Findings], alpha: float) -> Findings:
    """Return *findings* as one: rows of the same dimensions weighted by their reports.

    So a row is about all devices that reported, as ever.  Weights by inverse variance would scatter
    less and be about nobody: users of the two definitions may differ.  Definitions have reports of
    different devices or epochs, so their errors are independent.  Reports of a definition that has
    no number for a row, as one that has just begun, are not in it, which its ``n`` and note say.

    Derived: the mean of n_i reports each, sum(n_i x_i)/n, has variance sum((n_i s_i)^2)/n^2.
    """
    if len(findings) == 1:
        return findings[0]
    places: dict[tuple[tuple[tuple[str, str], ...], str], list[Row]] = {}
    for found in findings:
        for row in found.rows:
            places.setdefault((tuple(row.dimensions.items()), row.unit), []).append(row)
    rows = tuple(_combine(rows, alpha) for rows in places.values())
    warnings = tuple(dict.fromkeys(text for found in findings for text in found.warnings))
    return Findings(rows, warnings)


def _combine(rows: Sequence[Row], alpha: float) -> Row:
    """Return one row of several about the same, each with its own reports."""
    missing = [row for row in rows if row.value is None or row.std_error is None]
    if len(rows) == 1 or len(missing) == len(rows):
        return replace(rows[0], n=sum(row.n for row in rows))
    if missing:
        found = _combine([row for row in rows if row not in missing], alpha)
        few = sum(row.n for row in missing)
        return replace(found, note=f"without {few} reports under another definition, too few alone")
    n = sum(row.n for row in rows)

    def mean(numbers: Sequence[float | None]) -> float:
        return sum(row.n * (x or 0.0) for row, x in zip(rows, numbers, strict=True)) / n

    value = mean([row.value for row in rows])
    error = sqrt(sum((row.n * (row.std_error or 0.0)) ** 2 for row in rows)) / n
    reach = normal_quantile(alpha) * error
    estimate = Estimate(value, error, value - reach, value + reach)
    raws = [row.value if row.raw is None else row.raw for row in rows]
    is_raw = all(row.raw is None for row in rows)
    centre = value if is_raw else mean(raws)  # the interval is that of the unbiased number
    return replace(
        rows[0],
        value=value,
        ci_low=centre - reach,
        ci_high=centre + reach,
        std_error=error,
        n=n,
        quality=quality_of(estimate),
        raw=None if is_raw else centre,
        is_open=any(row.is_open for row in rows),
        note=_NOTE,
    )
