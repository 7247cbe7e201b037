"""Differences of numbers of different reports: of which slices, and whether beyond noise.  Pure.

Errors of different reports are independent, so variances add.  Each comparison stays within one
value of every other dimension, and the intervals of all comparisons of an answer hold together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, erfc, isfinite, sqrt
from statistics import NormalDist
from typing import Final

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import listed

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ...estimation.estimate import Estimate, normal_quantile
from ...estimation.significance import each_of, holm
from ..poisoning.influence import Side, fakes_to_flip
from ..rows import AGAINST, REST, TIME, Row, empty_row, row_of, with_item
from ..sums import unsure
from ..suppression import too_few
from ..verb import Slice, alike, each_definition, merged, without
from .numbers import (
    Number,
    Population,
    numbers_of,
    others,
    parted,
    reach_of,
    scatters_of,
    series_of,
)
from .ratios import ratio_of

POWER: Final = 0.8  # the chance with which an effect is to be seen
_MOST_REPORTS: Final = 10**12  # needed; beyond, it is as good as never
_MOST_EPOCHS: Final = 10**5
PREVIOUS, FIRST = "previous", "first"  # stretches of time
MOST_ITEMS: Final = 1_024  # compared at once; more would leave each interval too wide to tell
_MOST_COMPARISONS: Final = 50_000  # of one answer


def difference(first: Number, second: Number, alpha: float) -> Estimate:
    """Return *first* less *second*."""
    value, error = first.value - second.value, sqrt(first.variance + second.variance)
    reach = normal_quantile(alpha) * error
    return Estimate(value, error, value - reach, value + reach)


def p_value(estimate: Estimate) -> float:
    """Return the chance to be as far from 0 as *estimate*, were the truth 0."""
    return erfc(abs(estimate.value) / estimate.std_error / sqrt(2)) if estimate.std_error else 1.0


def covers_zero(estimate: Estimate) -> bool:
    """Return whether the truth may be 0."""
    return estimate.ci_low <= 0 <= estimate.ci_high


def lift(first: Number, second: Number, alpha: float) -> Estimate | None:
    """Return by which part of *second*, which must be above 0, *first* is more.

    None where the interval of *second* reaches 0: the ratio then has no bounds.
    """
    ratio = ratio_of(first, second, alpha) if second.value > 0 else None
    if ratio is None:
        return None
    return Estimate(ratio.value - 1, ratio.std_error, ratio.ci_low - 1, ratio.ci_high - 1)


def smallest_seen(error: float, alpha: float) -> float:
    """Return the difference that a test at *alpha* finds with POWER, given its standard *error*."""
    return (normal_quantile(alpha) + NormalDist().inv_cdf(POWER)) * error


def reports_needed(error: float, effect: float, n: int, alpha: float) -> int | None:
    """Return how many reports would show *effect* with POWER, where *n* leave the standard *error*.

    None: it is so small that no number of reports that anybody has would.
    """
    if not effect:
        return None
    needed = n * (smallest_seen(error, alpha) / effect) ** 2
    return ceil(needed) if isfinite(needed) and needed <= _MOST_REPORTS else None


def epochs_needed(
    pair: Pair, item: str, effect: float, level: float, population: Population
) -> int | None:
    """Return how many epochs, each with as many reports as now, show *effect* with POWER.

    What devices may repeat does not become surer: None if that alone hides the effect, or of a
    metric that is reported once.
    """
    metric, sides = pair.first.metric, (pair.first, pair.second)
    epochs = [epoch for part in sides for epoch in part.epochs]
    if metric.every == ONCE or not effect or not epochs:
        return None
    span = max(epochs) - min(epochs) + 1
    fresh = alike = 0.0
    for side in sides:
        for part in each_definition(side):
            _, scatter = scatters_of(part, (item,))[item]
            law = parted(part.metric, scatter, population)
            rate = span * part.n / side.n**2
            fresh, alike = (old + x * rate for old, x in zip((fresh, alike), law, strict=True))
    room = (effect / smallest_seen(1, level)) ** 2 - alike
    return None if room * _MOST_EPOCHS <= fresh else max(ceil(fresh / room), 1)


def _flipped_by(comparison: Comparison) -> int | None:
    """Return how many fake devices could turn the sign of a difference, if it is known.

    They report under the definition under which it takes fewest.
    """
    pair, first, second = comparison.pair, comparison.first, comparison.second
    sides = each_definition(pair.first) + each_definition(pair.second)
    metrics = {each.metric.digest: each.metric for each in sides}
    reaches = [reach_of(metric, comparison.item) for metric in metrics.values()]
    if first.value == second.value:
        return None
    fakes = []
    for reach in reaches:
        if reach is None:
            return None
        fakes.append(
            fakes_to_flip(Side(first.value, reach, first.n), Side(second.value, reach, second.n))
        )
    return min((number for number in fakes if number is not None), default=None)


@dataclass(frozen=True)
class Pair:
    """Two slices to compare, or the *refusal*."""

    dimensions: Mapping[str, str]  # of the first, with AGAINST
    first: Slice
    second: Slice
    refusal: Remark | None = None


def pairs_of(slices: Sequence[Slice], by: str, against: str | None) -> list[Pair]:
    """Return the pairs along dimension *by*.

    Args: against: of time "previous", the default, or "first"; of another dimension one of its
          values, or None: of all others together.
    Raises: QueryError: names ``options.against``: no slice has this value.
    """
    if by == TIME:
        if against not in (None, PREVIOUS, FIRST):
            raise QueryError("options.against", f"of time must be {PREVIOUS} or {FIRST}")
        return [
            _pair(second, parts[0 if against == FIRST else i], by)
            for parts in series_of(slices)
            for i, second in enumerate(parts[1:])
        ]
    groups = alike(slices, by)
    if against is None:
        return [pair for group in groups for pair in _with_rest(group, by)]
    require_value(slices, by, against, "options.against")
    return [pair for group in groups for pair in _with_value(group, by, against)]


def require_value(slices: Sequence[Slice], by: str, value: str, field: str) -> None:
    """Raise QueryError, which names *field*, unless some slice has this *value* of *by*."""
    values = tuple(dict.fromkeys(part.dimensions[by] for part in slices))
    if value not in values:
        raise QueryError(field, f"must be a value of {by} that has reports: {listed(values)}")


def _with_value(group: Sequence[Slice], by: str, value: str) -> Iterator[Pair]:
    reference = next((part for part in group if part.dimensions[by] == value), None)
    for part in group:
        if reference is not None and part is not reference:
            yield _pair(part, reference, by)


def _pair(first: Slice, second: Slice, by: str) -> Pair:
    named = {**first.dimensions, AGAINST: second.dimensions[by]}
    return Pair(named, first, second, first.refusal or second.refusal)


def _with_rest(group: Sequence[Slice], by: str) -> Iterator[Pair]:
    """Compare each with all others together, however few reports some of them have."""
    whole = merged(group, {**others(group[0], by), by: REST})
    for part in group:
        rest = without(whole, part, whole.dimensions)
        few = too_few(rest.metric, rest.n)
        alone = remark(Code.NO_OTHERS) if few else unsure(rest)
        yield Pair({**part.dimensions, AGAINST: REST}, part, rest, part.refusal or alone)


@dataclass(frozen=True)
class Comparison:
    """The numbers of one item on both sides of a pair, and their *difference*.

    ``difference`` and ``level``, its α, count all comparisons of the answer; so does ``p_value``.
    """

    pair: Pair
    item: str
    first: Number
    second: Number
    difference: Estimate
    level: float
    p_value: float

    @property
    def metric(self) -> Metric:
        """Of what."""
        return self.pair.first.metric

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What a reader must know beside the difference."""
        return (remark(Code.NO_CHANGE),) if covers_zero(self.difference) else ()


def compared(
    pairs: Sequence[Pair],
    items: Sequence[str],
    population: Population,
    alpha: float,
    *,
    in_time: bool = False,
) -> list[Comparison]:
    """Return the comparisons of all *items* of the *pairs* that are not refused, in order.

    Args: in_time: the pairs are stretches of time.
    Raises: QueryError: there are too many.  InvalidTallyError.
    """
    if len(pairs) * len(items) > _MOST_COMPARISONS:
        rule = f"must leave at most {_MOST_COMPARISONS} comparisons; name one item"
        raise QueryError("options.item", rule)
    open_pairs = [pair for pair in pairs if pair.refusal is None]
    level = each_of(alpha, len(open_pairs) * len(items))
    numbers = _numbers(open_pairs, items, population, in_time)
    entries = [
        (pair, item, first, second, difference(first, second, level))
        for pair in open_pairs
        for item in items
        for first, second in [(numbers[id(pair.first)][item], numbers[id(pair.second)][item])]
    ]
    chances = holm([p_value(entry[-1]) for entry in entries])
    return [Comparison(*entry, level, p) for entry, p in zip(entries, chances, strict=True)]


def difference_row(comparison: Comparison, alpha: float) -> Row:
    """Return the row of the difference."""
    return row_of(
        with_item(comparison.pair.dimensions, comparison.item),
        comparison.difference,
        comparison.first.n + comparison.second.n,
        alpha,
        comparison.metric.domain.unit,
        simultaneous=True,
        is_open=is_open(comparison.pair),
        p_value=comparison.p_value,
        fakes_to_flip=_flipped_by(comparison),
        notes=comparison.notes,
    )


def refused_row(pair: Pair, item: str, alpha: float) -> Row:
    """Return the row of a pair that has a refusal."""
    assert pair.refusal is not None  # noqa: S101 - the caller has looked
    return empty_row(
        with_item(pair.dimensions, item),
        pair.first.n,
        alpha,
        pair.first.metric.domain.unit,
        pair.refusal,
        is_open=is_open(pair),
    )


def is_open(pair: Pair) -> bool:
    """Return whether either side is still growing."""
    return pair.first.is_open or pair.second.is_open


def sides(comparison: Comparison) -> dict[str, object]:
    """Return what was compared, as facts."""
    return {
        "dimensions": with_item(comparison.pair.dimensions, comparison.item),
        "first": comparison.first.value,
        "second": comparison.second.value,
        "n_first": comparison.first.n,
        "n_second": comparison.second.n,
    }


def _numbers(
    pairs: Sequence[Pair], items: Sequence[str], population: Population, in_time: bool
) -> Mapping[int, Mapping[str, Number]]:
    """Return the numbers of every slice by its identity: many pairs may share one."""
    numbers: dict[int, Mapping[str, Number]] = {}
    for part in (part for pair in pairs for part in (pair.first, pair.second)):
        if id(part) not in numbers:
            numbers[id(part)] = numbers_of(part, items, population, in_time=in_time)
    return numbers
