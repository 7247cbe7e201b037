"""Many pairs of slices compared at once: differences whose intervals hold together.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...estimation.estimate import Estimate
from ...estimation.significance import each_of, holm
from ..rows import Row, row_of, with_item
from .differences import NO_CHANGE, covers_zero, difference, flipped_by, p_value
from .measure import Number, Population, numbers_of
from .pairs import Pair

MOST_ITEMS: Final = 1_024  # compared at once; more would leave each interval too wide to tell
MOST_COMPARISONS: Final = 50_000  # of one answer


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
    def note(self) -> str | None:
        """What a reader must know beside the difference."""
        return NO_CHANGE if covers_zero(self.difference) else None


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
    if len(pairs) * len(items) > MOST_COMPARISONS:
        rule = f"must leave at most {MOST_COMPARISONS} comparisons; name one item"
        raise QueryError(f"options.item: {rule}")
    shown = [pair for pair in pairs if pair.refusal is None]
    level = each_of(alpha, len(shown) * len(items))
    numbers = _numbers(shown, items, population, in_time)
    found = [
        (pair, item, first, second, difference(first, second, level))
        for pair in shown
        for item in items
        for first, second in [(numbers[id(pair.first)][item], numbers[id(pair.second)][item])]
    ]
    chances = holm([p_value(one[-1]) for one in found])
    return [Comparison(*one, level, p) for one, p in zip(found, chances, strict=True)]


def difference_row(one: Comparison, alpha: float) -> Row:
    """Return the row of the difference."""
    return row_of(
        with_item(one.pair.dimensions, one.item),
        one.difference,
        one.first.n + one.second.n,
        alpha,
        one.metric.domain.unit,
        simultaneous=True,
        is_open=is_open(one.pair),
        p_value=one.p_value,
        fakes_to_flip=flipped_by(one.metric, one.item, one.first, one.second),
        note=one.note,
    )


def is_open(pair: Pair) -> bool:
    """Return whether either side is still growing."""
    return pair.first.is_open or pair.second.is_open


def sides(one: Comparison) -> dict[str, Any]:
    """Return what was compared, as facts."""
    return {
        "dimensions": with_item(one.pair.dimensions, one.item),
        "first": one.first.value,
        "second": one.second.value,
        "n_first": one.first.n,
        "n_second": one.second.n,
    }


def _numbers(
    pairs: Sequence[Pair], items: Sequence[str], population: Population, in_time: bool
) -> Mapping[int, Mapping[str, Number]]:
    """Return the numbers of every slice by its identity: many pairs may share one."""
    found: dict[int, Mapping[str, Number]] = {}
    for one in (one for pair in pairs for one in (pair.first, pair.second)):
        if id(one) not in found:
            found[id(one)] = numbers_of(one, items, population, in_time=in_time)
    return found
