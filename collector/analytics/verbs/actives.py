"""How many devices reported: exact in one period of the metric, between sure bounds in several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from client_sdk.registry.metric import Metric

from ...core.remarks import Code, Remark, remark
from ...estimation.estimate import Estimate
from ..comparing.numbers import others
from ..rows import ALL, DEVICES, TIME, Findings, Row, empty_row, row_of
from ..verb import Offer, Slice, Verb, VerbQuery, alike, always


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether stretches of several epochs have the average of those that are over."""

    average: bool = False


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a stretch of time: of one epoch its reports, as a device makes one in it.

    Of E epochs there were at least as many devices as reports in any epoch, thus 1/E of all, and
    at most as many as all reports: the row has these ends, and no value.  A device that is updated
    may report again under the new definition, so of several definitions there were at least the
    devices of any.  The last row of several stretches is of all together, at least those of any.

    The average over the epochs of a stretch is counted as each of them is.
    """
    if not slices:
        return Findings(())
    expected = slices[0].metric.expected_devices
    row = _average if query.options.average else _together
    rows = tuple(row(parts, query.alpha, expected) for parts in _stretches(slices))
    is_bounded = any(row.value is None for row in rows)
    codes = (Code.ONLY_REPORTING, Code.PERIODS) if is_bounded else (Code.ONLY_REPORTING,)
    return Findings(rows, tuple(map(remark, codes)), {"expected_devices": expected})


def _stretches(slices: Sequence[Slice]) -> Iterator[Sequence[Slice]]:
    """Yield the slices of the same dimensions, then those of each group of several stretches."""
    yield from alike(slices)
    for parts in alike(slices, TIME):
        if len({part.dimensions[TIME] for part in parts}) > 1:
            whole = {TIME: ALL, **others(parts[0], TIME)}
            yield [replace(part, dimensions=whole) for part in parts]


def _together(parts: Sequence[Slice], alpha: float, expected: int) -> Row:
    """Return the row of slices of the same dimensions: of each definition of the metric one."""
    first, n = parts[0], sum(part.n for part in parts)
    is_open = any(part.is_open for part in parts)
    least = max(-(-part.n // max(len(part.epochs), 1)) for part in parts)
    names, counted = dict(first.dimensions), remark(Code.EXACT)
    return _row(names, (least, n), n, alpha, expected, is_open=is_open, counted=counted)


def _average(parts: Sequence[Slice], alpha: float, expected: int) -> Row:
    """Return the row of the average of the epochs of *parts*, without the running one if others."""
    epochs = {epoch for part in parts for epoch in part.epochs}
    running = {part.epochs[-1] for part in parts if part.is_open}
    epochs = epochs - running or epochs
    reports: dict[bytes, Counter[int]] = {}
    for part in parts:
        reports.setdefault(part.metric.digest, Counter()).update(part.reports)
    each = [[counts[epoch] for counts in reports.values()] for epoch in epochs]
    n, many = sum(map(sum, each)), max(len(epochs), 1)
    ends = sum(map(max, each)) / many, n / many
    counted = remark(Code.AVERAGE, periods=many) if many > 1 else None
    is_open = bool(running & epochs)
    names = dict(parts[0].dimensions)
    return _row(names, ends, n, alpha, expected, is_open=is_open, counted=counted)


def _row(
    dimensions: dict[str, str],
    ends: tuple[float, float],
    n: int,
    alpha: float,
    expected: int,
    *,
    is_open: bool,
    counted: Remark | None,
) -> Row:
    """Return the row of a number of devices between *ends*, of *n* reports.

    Args: counted: how; None where it needs no word.
    """
    least, most = map(float, ends)
    code = Code.OF_EXPECTED if least == most else Code.AT_LEAST
    part = remark(code, percent=100 * least / expected, expected=expected)
    more: dict[str, Any] = {"simultaneous": True, "is_open": is_open}
    if least == most:
        more["notes"] = (counted, part) if counted else ()
        return row_of(dimensions, Estimate(most, 0.0, most, most), n, alpha, DEVICES, **more)
    more |= {"ends": (least, most), "notes": (part,)}
    return empty_row(dimensions, n, alpha, DEVICES, remark(Code.BOUNDS), **more)


def refusal(metric: Metric) -> str | None:
    """Answer every metric of which all devices report."""
    if (sample := metric.sample.in_words) is None:
        return None
    return (
        f"is in the panel: {sample}, so its reports do not count devices; declare panel = false, "
        "or count by a metric of its own that has it"
    )


VERB = Verb(
    answer,
    refusal,
    Options,
    needs_time=True,
    estimates=False,
    counts=always,
    counts_devices=True,
    is_bounded=True,
    offer=Offer(
        "How many devices reported?",
        210,
        typed="active reported devices audience reach",
    ),
)
