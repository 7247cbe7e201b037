"""What the numbers of a metric in an answer rest on: reports, window, definitions, sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from msgspec import UNSET, Struct, UnsetType, field

from client_sdk.core.epoch import epoch_label
from client_sdk.registry.metric import Metric

from ..analytics.answer import expectation
from ..analytics.verb import Slice
from ..core.cells import ATTESTED, FACTS, RELAYED
from ..core.config import RelayTerms
from ..storage.protocols import TallyStore
from .exclusions import ExcludedCounts, meets
from .plan import Plan, Reading
from .reading import slices_of
from .shuffled import EpsilonShuffled, shuffled_of


class Window(
    Struct, rename={"first": "from", "last": "to"}, frozen=True, forbid_unknown_fields=True
):
    """The epochs that an answer rests on, both ends included."""

    first: str
    last: str
    epochs: int


class Definition(Struct, frozen=True, forbid_unknown_fields=True):
    """A definition of a metric under which reports of the window were made."""

    digest: str
    mechanism: str
    epsilon_per_report: float
    n: int


class Sources(Struct, frozen=True, forbid_unknown_fields=True):
    """Of how many reports, ``of``, it is known how they came; one may count to both."""

    relayed: int  # through a relay, alone in their upload
    attested: int  # with a valid one-time token
    of: int


class ExcludedReports(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an operator has taken out of answers, by whom and why.

    ``applied`` false: it is in this answer, as a version was asked for, which stays as it was.
    """

    id: str
    source: str
    first: str = field(name="from")  # labels of epochs
    last: str = field(name="to")
    because: str
    author: str
    day: str  # of the exclusion
    applied: bool


class Basis(Struct, frozen=True, forbid_unknown_fields=True):
    """What the numbers of a metric rest on.

    ``version`` null: all reports so far, so the answer may still change.  ``sources`` is there
    where something is known of how reports came, ``epsilon_shuffled`` where a relay is in use.
    """

    name: str
    title: str
    question: str
    type: str
    n: int
    late_share: float
    window: Window
    window_open: bool
    version: int | None
    epsilon_per_report: float
    delta_per_report: float
    every: str
    longitudinal: str
    mechanism: str
    digest: str
    unit: str
    expected_half_width: float
    definitions: list[Definition]
    sources: Sources | UnsetType = UNSET
    epsilon_shuffled: EpsilonShuffled | UnsetType = UNSET
    exclusions: list[ExcludedReports] | UnsetType = UNSET
    left_out: int | UnsetType = UNSET  # reports that these have taken out


def basis(
    plan: Plan,
    reading: Reading,
    read: Sequence[list[Slice]],
    relay: RelayTerms | None,
    gone: ExcludedCounts,
) -> Basis:
    """Return what the numbers of one metric rest on.

    Args: read: the slices of each definition.  relay: what is declared of it, where it matters.
          gone: what exclusions have taken out of them.
    """
    metric, mechanism = reading.metric, reading.metric.mechanism
    n = sum(map(reports_in, read))
    late = sum(part.late for definition in read for part in definition)
    first, last = reading.window
    unit, expected = expectation(metric, plan.query.alpha)
    return Basis(
        name=metric.address,
        title=metric.title,
        question=metric.question,
        type=metric.type,
        n=n,
        late_share=late / n if n else 0.0,
        window=Window(first, last, len(reading.epochs)),
        window_open=reading.is_open,
        version=reading.version,
        epsilon_per_report=float(mechanism.spent),
        delta_per_report=float(mechanism.delta),
        every=metric.every,
        longitudinal=metric.longitudinal,
        mechanism=metric.mechanism_name,
        digest=metric.digest.hex(),
        unit=unit,
        expected_half_width=expected,
        definitions=[_definition(slices) for slices in read if slices],
        sources=sources_of(read, n),
        epsilon_shuffled=UNSET if relay is None else shuffled_of(read, relay),
        exclusions=list(_exclusions(plan, reading)) or UNSET,
        left_out=gone.reports if plan.excluded.applied else UNSET,
    )


def _exclusions(plan: Plan, reading: Reading) -> Iterator[ExcludedReports]:
    """Yield the exclusions that a reading meets."""
    metric = reading.metric
    for exclusion in (*plan.excluded.applied, *plan.excluded.later):
        if meets(exclusion, metric, reading.epochs):
            span = exclusion.epochs(metric)
            yield ExcludedReports(
                id=exclusion.id,
                source=exclusion.source,
                first=epoch_label(metric.every, span[0]),
                last=epoch_label(metric.every, span[-1]),
                because=exclusion.because,
                author=exclusion.author,
                day=datetime.fromtimestamp(exclusion.at, UTC).date().isoformat(),
                applied=exclusion in plan.excluded.applied,
            )


def gone_of(read: Iterable[Iterable[Slice]]) -> ExcludedCounts:
    """Return what exclusions have taken out of all slices."""
    parts = [part for definition in read for part in definition]
    return ExcludedCounts(
        sum(part.excluded for part in parts), sum(part.merged_key_reports for part in parts)
    )


def or_emptied(
    slices: list[Slice], plan: Plan, reading: Reading, metric: Metric, storage: TallyStore
) -> list[Slice]:
    """Return *slices*; if exclusions left none of a question by groups, that of all groups.

    It has no reports, and says how many were taken out.
    Raises: as ``slices_of``.
    """
    if slices or not (plan.excluded.applied and plan.dimensions):
        return slices
    return slices_of(replace(plan, dimensions=()), reading, metric, storage)


def _definition(slices: Sequence[Slice]) -> Definition:
    """Return under which definition the reports of *slices* were made."""
    metric = slices[0].metric
    return Definition(
        digest=metric.digest.hex(),
        mechanism=metric.mechanism_name,
        epsilon_per_report=float(metric.mechanism.spent),
        n=reports_in(slices),
    )


def sources_of(read: Iterable[Iterable[Slice]], n: int) -> Sources | UnsetType:
    """Return how many of the *n* reports of all slices came in which way, if anything is known."""
    facts: Counter[str] = Counter()
    for definition in read:
        for part in definition:
            for origin, reports in part.origins.items():
                facts.update(dict.fromkeys(origin.source, reports))
    return Sources(facts[RELAYED], facts[ATTESTED], n) if facts.keys() & set(FACTS) else UNSET


def reports_in(slices: Iterable[Slice]) -> int:
    """Return how many reports *slices* hold."""
    return sum(part.n for part in slices)


def estimand(metric: Metric) -> tuple[object, ...]:
    """Return what a report of *metric* is about, whatever its noise."""
    return metric.domain.canonical(), metric.every, metric.aggregate, metric.otherwise
