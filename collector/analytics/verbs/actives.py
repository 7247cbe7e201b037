"""How many devices reported: exact in one period of the metric, between sure bounds in several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from client_sdk.registry.metric import Metric

from ...estimation.estimate import Estimate
from ..comparing.numbers import others
from ..rows import ALL, TIME, Findings, Row, empty_row, row_of
from ..verb import Slice, Verb, VerbQuery
from .adoption import alike

DEVICES: Final = "devices"
EXACT: Final = "exact: counted in the clear"
BOUNDS: Final = "no more than bounds is known: reports do not tell which devices came again"
WEEKLY: Final = (
    "A device reports once in each period of a metric, and again if its definition changes: a "
    "metric that is asked every week counts the devices of a week, and one that is asked every 28 "
    "days those of 28 days"
)
CAVEAT: Final = (
    "Only devices that sent a report are counted: not those without consent, outside the sample or "
    "out of budget. Anyone with a write key can add reports"
)


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a stretch of time: of one epoch its reports, as a device makes one in it.

    Of E epochs there were at least as many devices as reports in any epoch, thus 1/E of all, and
    at most as many as all reports: the row has these ends, and no value.  A device that is updated
    may report again under the new definition, so of several definitions there were at least the
    devices of any.  The last row of several stretches is of all together, at least those of any.
    """
    if not slices:
        return Findings(())
    expected = slices[0].metric.expected_devices
    together = [_together(parts, query.alpha, expected) for parts in alike(slices)]
    rows = (*together, *_wholes(slices, together, query.alpha, expected))
    is_bounded = any(row.value is None for row in rows)
    warnings = (CAVEAT, WEEKLY) if is_bounded else (CAVEAT,)
    return Findings(rows, warnings, {"expected_devices": expected})


def _together(parts: Sequence[Slice], alpha: float, expected: int) -> Row:
    """Return the row of slices of the same dimensions: of each definition of the metric one."""
    first, n = parts[0], sum(part.n for part in parts)
    is_open = any(part.is_open for part in parts)
    least = max(-(-part.n // max(len(part.epochs), 1)) for part in parts)
    return _row(dict(first.dimensions), least, n, alpha, expected, is_open)


def _wholes(
    slices: Sequence[Slice], rows: Sequence[Row], alpha: float, expected: int
) -> Iterator[Row]:
    """Yield a row for each group of several stretches."""
    groups: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for parts, row in zip(alike(slices), rows, strict=True):
        groups.setdefault(tuple(others(parts[0], TIME).items()), []).append(row)
    for group, wholes in groups.items():
        if len(wholes) > 1:
            name = {TIME: ALL, **dict(group)}
            is_open = any(row.is_open for row in wholes)
            total = sum(row.n for row in wholes)
            least = max(round(row.ci_low or 0) for row in wholes)
            yield _row(name, least, total, alpha, expected, is_open)


def _row(
    dimensions: dict[str, str], least: int, most: int, alpha: float, expected: int, is_open: bool
) -> Row:
    part = f"{100 * least / expected:.3g} % of the {expected:,} expected"
    more: dict[str, Any] = {"simultaneous": True, "is_open": is_open}
    if least == most:
        exact = Estimate(float(most), 0.0, float(most), float(most))
        return row_of(dimensions, exact, most, alpha, DEVICES, note=f"{EXACT}; {part}", **more)
    ends = float(least), float(most)
    note = f"at least {part}"
    return empty_row(dimensions, most, alpha, DEVICES, BOUNDS, ends=ends, note=note, **more)


def refusal(metric: Metric) -> str | None:
    """Answer every metric of which all devices report."""
    if (sample := metric.sample.in_words) is None:
        return None
    return (
        f"is in the panel: {sample}, so its reports do not count devices; declare panel = false, "
        "or count by a metric of its own that has it"
    )


VERB = Verb(answer, refusal, needs_time=True, estimates=False, counts=lambda _: True)
