"""One number as a multiple of another: the ratio of two metrics, such as revenue for each buyer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ...estimation.significance import each_of
from ..comparing.numbers import (
    REPORTED,
    Number,
    Population,
    Scatter,
    askable,
    items_of,
    refusal,
    scatters_of,
    variance_if,
)
from ..comparing.ratios import ratio_of
from ..rows import SHARE, Findings, Row, empty_row, row_of, with_item
from ..suppression import shortage
from ..verb import MOST_FACTS, Name, Offer, Slice, Verb, VerbQuery, always, draw_law

_TOTALS: Final = "totals"
TIMES: Final = "times"  # the unit of a ratio of two numbers of one unit
_APART: Final = 0.05  # part by which numbers of reports may differ before it is said


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Which numbers of both metrics, of what, and for whom it holds.

    ``numerator`` and ``denominator`` are items of the first and the second metric; none is needed
    of a boolean or a number.  ``of`` "means" divides means and shares of the devices that
    reported, "totals" sums and counts over all reports.
    """

    numerator: Name | None = None
    denominator: Name | None = None
    of: Literal["means", "totals"] = "means"
    population: Population = REPORTED
    simultaneous: bool = False


@dataclass(frozen=True)
class Side:
    """The number of *item* of *metric*, which is above or below the line."""

    metric: Metric
    item: str

    @classmethod
    def of(cls, metric: Metric, item: str | None, option: str) -> Side:
        """Take *item*, or the only one.  Raises QueryError, which names *option*."""
        return cls(metric, items_of(metric, item, 1, f"options.{option}")[0])

    @property
    def name(self) -> str:
        """How a row names it: the metric, with the item where there are several."""
        items = self.metric.domain.answer_items()
        return self.metric.address if len(items) < 2 else f"{self.metric.address} {self.item}"

    def why_none(self, part: Slice | None) -> Remark | None:
        """Return why a group has no such number; None if it has."""
        refusal = shortage(self.metric, 0) if part is None else part.refusal
        return refusal and replace(refusal, metric=self.metric.address)

    def number(self, part: Slice, options: Options) -> tuple[Number, float]:
        """Return the number, and what of its variance the draw of the devices gives it."""
        value, scatter = scatters_of(part, (self.item,))[self.item]
        alone = Scatter(scatter.noise, 0.0, scatter.noise)
        whole, noise = (
            variance_if(part, kind, options.population, in_time=False) for kind in (scatter, alone)
        )
        drawn, factor = max(whole - noise, 0.0), 1.0
        if options.of == _TOTALS:  # of how many devices a panel drew is chance, too
            many = draw_law(part) * value**2
            factor, whole, drawn = part.n / self.metric.sample.share, whole + many, drawn + many
        return Number(value * factor, whole * factor**2, part.n), drawn * factor**2


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with one row a group: the number of the first metric over that of the second.

    Raises: QueryError: ``metrics``, ``options.numerator`` or ``options.denominator``, or
        ``options.population``.
    """
    options: Options = query.options
    first, second = query.metrics
    if first.every != second.every:
        rule = f"must be reported equally often, not every {first.every} and every {second.every}"
        raise QueryError("metrics", rule)
    if options.of == _TOTALS and options.population != REPORTED:
        raise QueryError("options.population", 'totals are of the devices that "reported"')
    for metric in (first, second) if options.of == _TOTALS else ():
        if reason := metric.sample.why_no_totals:
            raise QueryError("options.of", f"metric={metric.address} {reason}; take means")
    sides = (
        Side.of(first, options.numerator, "numerator"),
        Side.of(second, options.denominator, "denominator"),
    )
    groups: dict[tuple[tuple[str, str], ...], dict[str, Slice]] = {}
    for part in askable(slices):
        groups.setdefault(tuple(part.dimensions.items()), {})[part.metric.address] = part
    pairs = [
        (dict(names), [parts.get(side.metric.address) for side in sides])
        for names, parts in groups.items()
    ]
    level = query.alpha
    if options.simultaneous:
        level = each_of(level, sum(_refusal(sides, pair) is None for _, pair in pairs))
    found_rows = [_row(names, sides, pair, level, query) for names, pair in pairs]
    rows = tuple(row for row, _ in found_rows)
    facts = [fact for _, fact in found_rows if fact][:MOST_FACTS]
    return Findings(rows, tuple(_unlike(slices, sides, options)), {"sides": facts})


def _refusal(sides: Sequence[Side], pair: Sequence[Slice | None]) -> Remark | None:
    """Return why a group has no ratio, as far as its reports go."""
    reasons = (side.why_none(part) for side, part in zip(sides, pair, strict=True))
    return next(filter(None, reasons), None)


def _row(
    names: dict[str, str],
    sides: tuple[Side, Side],
    pair: Sequence[Slice | None],
    level: float,
    query: VerbQuery,
) -> tuple[Row, dict[str, Any] | None]:
    """Return the row of a group, and both of its numbers as facts."""
    first, second = sides
    place = with_item(names, f"{first.name} / {second.name}")
    parts = [part for part in pair if part is not None]
    n, unit = sum(part.n for part in parts), _unit(first.metric, second.metric)
    more: dict[str, Any] = {
        "simultaneous": query.options.simultaneous,
        "is_open": any(part.is_open for part in parts),
    }
    if refusal := _refusal(sides, pair):
        return empty_row(place, n, query.alpha, unit, refusal, **more), None
    over, under = (
        side.number(part, query.options) for side, part in zip(sides, parts, strict=True)
    )
    shared = sqrt(over[1] * under[1])
    fact = {
        "dimensions": names,
        "numerator": over[0].value,
        "denominator": under[0].value,
        "n_numerator": over[0].n,
        "n_denominator": under[0].n,
    }
    ratio = ratio_of(over[0], under[0], level, shared)
    if ratio is None:
        return empty_row(place, n, query.alpha, unit, remark(Code.UNBOUNDED), **more), fact
    more["notes"] = (remark(Code.BOUND),) if shared else ()
    return row_of(place, ratio, n, query.alpha, unit, **more), fact


def _unit(first: Metric, second: Metric) -> str:
    """Return the unit of the ratio in words: EUR, EUR per minute, or times."""
    over, under = ("" if m.domain.unit == SHARE else m.domain.unit for m in (first, second))
    if over == under:
        return TIMES
    return f"{over} per {under}".strip() if under else over


def _unlike(slices: Sequence[Slice], sides: Sequence[Side], options: Options) -> Iterator[Remark]:
    """Yield that means are of different devices, where the numbers of reports say so."""
    first, second = (side.metric.address for side in sides)
    n = Counter[str]()
    for part in slices:
        n[part.metric.address] += part.n
    if options.of != _TOTALS and abs(n[first] - n[second]) > _APART * max(n.values(), default=0):
        over, under = n[first], n[second]
        yield remark(Code.OTHER_DEVICES, first=first, over=over, second=second, under=under)


def _is_rate(metric: Metric, other: Metric) -> bool:
    """Return whether one over the other is a rate: of two numbers, or of a number and a boolean."""
    domains = metric.domain, other.domain
    numbers = sum(domain.grid is not None for domain in domains)
    return numbers + sum(domain.boolean for domain in domains) == len(domains) and numbers > 0


VERB = Verb(
    answer,
    refusal,
    Options,
    least_metrics=2,
    most_metrics=2,
    estimates=False,
    joins=True,
    merges_small=False,
    offer=Offer(
        "What is the ratio to another metric?",
        120,
        needs_partner=always,
        may_pair=lambda metric, other: metric.every == other.every,
        is_likely_pair=_is_rate,
        typed="ratio relative quotient",
    ),
)
