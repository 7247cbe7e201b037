"""How many devices took part, exactly for each epoch, and between hard bounds for longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from client_sdk.metric import Metric

from ...estimate import Estimate
from ..comparing.series import others
from ..rows import TIME, Findings, Row, row_of
from ..slices import Asked, Slice
from ..verb import Verb
from .adoption import alike

DEVICES: Final = "devices"
ALL: Final = "(all)"  # stretches of time together
EXACT: Final = "exact: counted in the clear"
BOUNDS: Final = "at least the first, at most the second: bounds that hold whatever happened"
CAVEAT: Final = (
    "devices that reported: not those that run without consent, were not sampled, had no budget "
    "left or nothing to report; whoever has a write key can add to them"
)


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with a row a stretch of time: of one epoch its reports, as a device makes one in it.

    Of E epochs there were at least as many devices as reports in any epoch, thus 1/E of all, and
    at most as many as all reports: the interval has these ends, and the value is the first.  The
    last row of several stretches is of all together, at least those of any stretch.
    """
    if not slices:
        return Findings(())
    expected = slices[0].metric.expected_devices
    together = [_together(parts, asked.alpha, expected) for parts in alike(slices)]
    rows = (*together, *_wholes(slices, together, asked.alpha, expected))
    return Findings(rows, (CAVEAT,), {"expected_devices": expected})


def _together(parts: Sequence[Slice], alpha: float, expected: int) -> Row:
    """Return the row of slices of the same dimensions: of each definition of the metric one."""
    one, n = parts[0], sum(part.n for part in parts)
    is_open = any(part.is_open for part in parts)
    # a device reports under one definition an epoch, but another may have the same epochs
    epochs = len({epoch for part in parts for epoch in part.epochs})
    return _row(dict(one.dimensions), -(-n // max(epochs, 1)), n, alpha, expected, is_open)


def _wholes(
    slices: Sequence[Slice], rows: Sequence[Row], alpha: float, expected: int
) -> Iterator[Row]:
    """Yield a row for each group of several stretches, if they have numbers."""
    groups: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for parts, row in zip(alike(slices), rows, strict=True):
        groups.setdefault(tuple(others(parts[0], TIME).items()), []).append(row)
    for group, found in groups.items():
        known = [row.value for row in found if row.value is not None]
        if len(found) > 1 and known:
            name = {TIME: ALL, **dict(group)}
            is_open = any(row.is_open for row in found)
            total = sum(row.n for row in found)
            yield _row(name, round(max(known)), total, alpha, expected, is_open)


def _row(
    dimensions: dict[str, str], least: int, most: int, alpha: float, expected: int, is_open: bool
) -> Row:
    bounds = Estimate(float(least), 0.0, float(least), float(most))
    part = f"{100 * least / expected:.3g} % of the {expected:,} expected"
    note = f"{EXACT if least == most else BOUNDS}; {part}"
    more = {"simultaneous": True, "is_open": is_open, "note": note}
    return row_of(dimensions, bounds, most, alpha, DEVICES, **more)


def refusal(metric: Metric) -> str | None:
    """Answer every metric."""
    return None


VERB = Verb(answer, refusal, needs_time=True, estimates=False, counts=lambda _: True)
