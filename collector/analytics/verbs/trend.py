"""How a number runs over time, stretch by stretch, and whether it changed beyond noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, floor, log10
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from client_sdk.core.epoch import DAY, LENGTHS
from client_sdk.registry.domain import Domain
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import BOOLEAN_LABELS

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ...estimation.significance import each_of, holm
from ..comparing.differences import covers_zero, difference
from ..comparing.numbers import (
    DRAWN,
    Population,
    askable,
    estimate_together,
    items_of,
    number_rows,
    others,
    refusal,
    series_of,
    why_none,
)
from ..comparing.scan import Scan, scans_of
from ..distribution import refusal as distribution_refusal
from ..rows import (
    BETWEEN,
    ITEM,
    SHARE,
    TIME,
    Findings,
    Row,
    chance,
    moment,
    with_item,
)
from ..sums import averages
from ..verb import OF_ALL, OF_ANSWERED, Devices, Name, Offer, Slice, Verb, VerbQuery, merged
from .quantile import Level, quantile_rows

_MINUS: Final = "\u2212"
MOST_ITEMS: Final = 20  # lines that one picture can hold
_MOST_LEVELS: Final = 5  # quantiles of one answer
_MOST_WINDOWS: Final = 400  # rows of quantiles take milliseconds each
MOST_FACTS: Final = 100  # series whose change is told
_CLOSEST: Final = 1e-9  # ends of an interval, nearer ones are told apart no further
_DAY: Final = len("2026-11-16")


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """What is followed, how many stretches each row covers, and whose change it is.

    One item, or all of at most MOST_ITEMS; or ``levels``: these quantiles of numbers, 0.95 for p95.
    """

    item: Name | None = None
    levels: Annotated[tuple[Level, ...], Meta(max_length=_MOST_LEVELS)] = ()
    window: Annotated[int, Meta(ge=1, le=92)] = 1
    population: Population = DRAWN


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row an item of each stretch, and with the change of each series in facts.

    Rows of a window are of all reports of its stretches, under the label of the last; the first
    rows are those of full windows.  Intervals are pointwise, those of windows that share stretches
    too.  A stretch without reports is no stretch.  Changes are looked for in stretches, not in
    windows, whose errors are not independent, and not in quantiles, whose errors are no more than
    bounded.  A stretch that is still running is no evidence of one: its devices so far are not
    those of a whole stretch.  It is drawn and marked, and ``unfinished`` in facts names it.

    Raises: QueryError: ``options.item``, ``options.levels``.
    """
    if not slices:
        return Findings((), facts={"series": 0, "changes": []})
    options: Options = query.options
    if options.levels:
        return _of_quantiles(slices, options, query.alpha)
    items = items_of(slices[0].metric, options.item, MOST_ITEMS)
    parts = askable(slices)
    estimate_together(parts, query.alpha)
    all_series = list(series_of(parts))
    rows = [
        row
        for parts in all_series
        for window in _windows(parts, options.window)
        for row in _rows(window, items, query.alpha)
    ]
    changes = _changes(all_series, items, query)
    warnings = [_remark(change, slices[0]) for change in changes if change["detected"]]
    warnings += [] if rows else [_too_short(options)]
    facts: dict[str, Any] = {"series": len(changes), "population": options.population}
    if unfinished := {part.dimensions[TIME]: None for part in parts if part.is_open}:
        facts["unfinished"] = list(unfinished)
    return Findings(tuple(rows), tuple(warnings), {**facts, "changes": changes[:MOST_FACTS]})


def _of_quantiles(slices: Sequence[Slice], options: Options, alpha: float) -> Findings:
    """Return a row a level of each window."""
    metric = slices[0].metric
    if reason := distribution_refusal(metric):
        raise QueryError("options.levels", f"metric={metric.address} {reason}")
    if options.item is not None or len(set(options.levels)) < len(options.levels):
        raise QueryError("options.levels", "must be different, and without an item")
    wholes = [
        merged(window, window[-1].dimensions)
        for parts in series_of(slices)
        for window in _windows(parts, options.window)
    ]
    if len(wholes) > _MOST_WINDOWS:
        rule = f"leaves {len(wholes)} stretches, must be at most {_MOST_WINDOWS} of quantiles"
        raise QueryError("options.levels", f"{rule}; take longer ones or a shorter window")
    rows = [
        row
        for whole in wholes
        for row in quantile_rows(replace(whole, refusal=why_none(whole)), options.levels, alpha)
    ]
    warnings = () if rows else (_too_short(options),)
    return Findings(tuple(rows), warnings, {"series": 0, "changes": []})


def _too_short(options: Options) -> Remark:
    return remark(Code.TOO_SHORT, stretches=options.window)


def _windows(parts: Sequence[Slice], length: int) -> Iterator[Sequence[Slice]]:
    for end in range(length, len(parts) + 1):
        yield parts[end - length : end]


def _rows(window: Sequence[Slice], items: Sequence[str], alpha: float) -> list[Row]:
    whole = window[0]
    if len(window) > 1:
        whole = merged(window, window[-1].dimensions)
        whole = replace(whole, refusal=why_none(whole))
    return number_rows(whole, items, alpha, alpha)


def _changes(
    all_series: Sequence[Sequence[Slice]], items: Sequence[str], query: VerbQuery
) -> list[dict[str, Any]]:
    """Return what is known of the change of each series with two numbers or more, surest first."""
    scanned: list[tuple[Sequence[Slice], str, Scan]] = []
    for series in all_series:
        parts = [part for part in series if part.refusal is None and not part.is_open]
        if len(parts) > 1:
            scans = scans_of(parts, items, query.options.population)
            scanned += [(parts, item, scan) for item, scan in scans.items()]
    corrected = holm([scan.p_value for _, _, scan in scanned])
    splits = sum(len(parts) - 1 for parts, _, _ in scanned)
    level = each_of(query.alpha, splits)
    changes = [_change(*part, p, level, query) for part, p in zip(scanned, corrected, strict=True)]
    return sorted(changes, key=lambda change: change["p_value"])


def _change(
    parts: Sequence[Slice], item: str, scan: Scan, p: float, level: float, query: VerbQuery
) -> dict[str, Any]:
    """Return one change as facts; the interval holds at once over all splits of all series.

    It is detected if the interval shows it, too: an answer never says both.
    """
    step = difference(scan.after, scan.before, level)
    detected = p <= query.alpha and not covers_zero(step)
    return {
        "dimensions": with_item(others(parts[0], TIME), item),
        "changed_at": parts[scan.place].dimensions[TIME],
        "stretch": _stretch(parts),
        "before": scan.before.value,
        "after": scan.after.value,
        "difference": step.value,
        "ci_low": step.ci_low,
        "ci_high": step.ci_high,
        "p_value": p,
        "p_value_constant": scan.constant_p,
        "detected": detected,
        "note": None if detected else remark(Code.NO_CHANGE).text,
    }


def _stretch(parts: Sequence[Slice]) -> str:
    """Return how long the stretches of a series are, as far as their labels do not tell."""
    every = parts[0].metric.every
    longest = max(part.epochs[-1] - part.epochs[0] for part in parts) * LENGTHS[every]
    return "7d" if DAY <= longest < LENGTHS["7d"] else every  # months have labels of their own


def _at(change: dict[str, Any]) -> str:
    words = moment(change["changed_at"], change["stretch"])
    if words != change["changed_at"]:
        return f"in {words}"
    if BETWEEN in words:
        return "between " + words.replace(BETWEEN, " and ")
    return f"on {words}" if len(words) == _DAY else f"at {words}"


def _remark(change: dict[str, Any], part: Slice) -> Remark:
    unit = part.metric.domain.unit
    scale, ending, apart = (100, " %", " points") if unit == SHARE else (1, f" {unit}", f" {unit}")
    before, after, low, high = (
        scale * change[name] for name in ("before", "after", "ci_low", "ci_high")
    )
    places = max(0, 1 - floor(log10(max(high - low, _CLOSEST) / 2)))  # two digits of the half-width
    grid = 10**places
    if unit == SHARE:  # in words as it can be; the facts have the estimates
        before, after = (min(max(level, 0.0), 100.0) for level in (before, after))
    numbers = (before, after, floor(low * grid) / grid, ceil(high * grid) / grid)
    start, end, least, most = (f"{value:,.{places}f}".replace("-", _MINUS) for value in numbers)
    is_boolean = part.metric.domain.labels == BOOLEAN_LABELS
    words = (
        "yes" if is_boolean and name == ITEM and value == "true" else value
        for name, value in change["dimensions"].items()
    )
    return remark(
        Code.CHANGE,
        part.metric.address,
        what=", ".join(words),
        at=_at(change),
        before=start,
        after=end + ending,
        least=least,
        most=most + apart,
        chance=chance(change["p_value"]),
    )


def _combines(domain: Domain, options: Options) -> bool:
    """Return whether numbers are followed that are averages, rather than quantiles."""
    return averages(domain, options) and not options.levels


def _holds(_: Metric, options: Options) -> Devices:
    return OF_ANSWERED if options.levels else OF_ALL


VERB = Verb(
    answer,
    refusal,
    Options,
    needs_time=True,
    combines=_combines,
    unites=True,
    joins=True,
    holds=_holds,
    offer=Offer(
        "How did it run over time?",
        170,
        joins_stretches=True,
        typed="trend overtime line history daily weekly monthly evolution graph chart curve",
    ),
)
