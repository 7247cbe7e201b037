"""What each source of a metric reported in a window, and a mean that no few sources can move far.

A look for operators, beside the answers and never in place of one.  Sources are the keys under
which reports came, by the rule of small sources: in a place where a key has few reports, it is
together with others.  What operators have excluded is left out, as in every answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from client_sdk.registry.metric import Metric

from ..analytics.poisoning.sources import LEAST as LEAST_ALONE
from ..analytics.poisoning.sources import Tallied, least_sources, trimmed
from ..analytics.poisoning.sources import Trimmed as Trimmed
from ..core.cells import MOST_KEYS, Cell
from ..core.errors import QueryError
from ..core.remarks import Remark
from ..estimation.tally import Sum, reports_of
from ..storage.protocols import TallyStore
from ..storage.values import Index
from .exclusions import ExcludedCounts, ExclusionFilter, Place, place_of, remarks_on, together
from .gate import require_affordable
from .plan import Plan
from .reading import index_of

_NOT_KNOWN: Final = "not known"  # reports from before keys were kept apart
SMALL: Final = "small keys"  # those that are together with others
_OTHERS: Final = 2  # beside the keys and those beyond them: the two above


@dataclass(frozen=True)
class SourceReports:
    """The reports of one metric in a window, by source, those with most reports first."""

    metric: Metric
    by_source: Mapping[str, Tallied]
    notes: tuple[Remark, ...] = ()  # on what is pruned and excluded

    @property
    def n(self) -> int:
        """How many reports there are."""
        return sum(part.n for part in self.by_source.values())

    @property
    def names(self) -> tuple[str, ...]:
        """What a mean is of, in its order: the items, or "" of numbers."""
        labels = self.metric.domain.labels
        return tuple(map(str, labels)) if labels else ("",)

    @property
    def apart(self) -> Mapping[str, Tallied]:
        """Those with enough reports to be held against each other."""
        return {name: part for name, part in self.by_source.items() if part.n >= LEAST_ALONE}

    def trimmed(self, part: float, alpha: float) -> Trimmed:
        """Return shares, or the mean in its unit, without a *part* of the sources at each end.

        Raises: QueryError: there are too few sources, or the metric has no mean of sources.
        """
        domain = self.metric.domain
        numbers = None if domain.labels else domain.numbers
        if not self.metric.mechanism.unbiased or not (domain.labels or numbers):
            rule = "has no shares or mean that are means over its reports"
            raise QueryError("metric", f"{rule}, so none over its sources", self.metric.address)
        try:
            needed = least_sources(part)
        except ValueError as error:
            raise QueryError("trim", str(error), part) from None
        result = trimmed(self.metric, list(self.apart.values()), part, alpha)
        if result is None:
            rule = f"needs {needed} sources of {LEAST_ALONE} reports or more, and there are"
            other = "of fewer no estimate can do without the worst; take a larger part or window"
            raise QueryError("trim", f"{rule} {len(self.apart)}; {other}", part)
        count = len(self.names)
        step, least = (float(numbers.step), float(numbers.minimum)) if numbers else (1.0, 0.0)
        values, low, high = (least + step * ends[:count] for ends in result[:3])
        return Trimmed(values, low, high, result.dropped, result.of)


def by_source(plan: Plan, storage: TallyStore) -> SourceReports:
    """Return what each source reported on the one metric of *plan*, by its current definition.

    Args:   plan: of ``without_pruned``.
    Raises: StorageUnavailableError, QueryError: too much to be read at once.
    """
    (reading,) = plan.readings
    metric = reading.metric
    index, width = index_of(plan, reading, metric, storage), metric.mechanism.tally_size + 1
    require_affordable(2 * index.tallies, MOST_KEYS + 1 + _OTHERS, width)
    counts: dict[Place, Counter[str | None]] = defaultdict(Counter)
    for cell, vector in storage.vectors(index, width):
        place, key = place_of(cell)
        counts[place][key] += reports_of(vector)
    small = {place: together(sources) for place, sources in counts.items()}
    sieve = ExclusionFilter(plan.excluded.applied, metric, index.cells)
    sums: dict[str, Sum] = defaultdict(lambda: Sum(width - 1))
    for cell, vector in chain(_passed(sieve, index, storage, width), sieve.rest()):
        place, key = place_of(cell)
        own = _NOT_KNOWN if key is None else key
        sums[SMALL if key in small[place] else own].add([vector])
    known = sorted(sums.items(), key=lambda item: (-item[1].n, item[0]))
    gone = ExcludedCounts(
        sum(n for _, n, _ in sieve.left_out), sum(n for _, n, along in sieve.left_out if along)
    )
    return SourceReports(
        metric,
        {name: Tallied(total.tally, total.n) for name, total in known},
        (*plan.notes, *remarks_on(plan.excluded, metric, reading.epochs, gone)),
    )


def _passed(
    sieve: ExclusionFilter, index: Index, storage: TallyStore, width: int
) -> Iterator[tuple[Cell, bytes]]:
    for cell, vector in storage.vectors(index, width):
        if sieve.passes(cell, vector, wanted=True):
            yield cell, vector
