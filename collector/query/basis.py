"""What the numbers of a metric in an answer rest on: reports, window, definitions, sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain
from math import fsum
from typing import Final

from msgspec import UNSET, Struct, UnsetType, field

from client_sdk.core.epoch import epoch_label
from client_sdk.registry.metric import Metric

from ..analytics.answer import expectation
from ..analytics.verb import Origin, Slice
from ..core.cells import ATTESTED, FACTS, RELAYED
from ..core.config import RelayTerms
from ..planning.shuffling import (
    ASSUMED,
    epsilon_of,
    honest_of,
    otherwise,
    refusal,
    rounded_down,
    together,
)
from .exclusions import ExcludedCounts, meets
from .plan import Plan, Reading
from .reader import Reader
from .reading import naming


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


class EpsilonShuffled(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What shuffled reports tell of a device at most, if all of ``assumes`` holds.

    ``n`` is the honest devices of the smallest group.  Where nothing is claimed, only ``because``
    is there.
    """

    epsilon: float | UnsetType = UNSET
    delta: float | UnsetType = UNSET
    n: int | UnsetType = UNSET
    assumes: list[str] | UnsetType = UNSET
    because: str | UnsetType = UNSET


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


@dataclass(frozen=True)
class MetricReports:
    """The reports of one metric that an answer reads, and what of them its numbers rest on."""

    reading: Reading
    definitions: Sequence[Sequence[Slice]]  # slices of the current one, and others with reports
    excluded: ExcludedCounts  # what exclusions have taken out
    used: Sequence[Sequence[Slice]] = ()  # slices of the definitions that numbers rest on

    @classmethod
    def read(cls, plan: Plan, reading: Reading, reader: Reader) -> MetricReports:
        """Read them.  Raises: as ``slices_of``, and DamagedTallyError."""
        with naming(reading.metric):
            each = [reader.slices(plan, reading, metric) for metric in reading.definitions]
            wholes = [
                or_emptied(slices, plan, reading, metric, reader)
                for slices, metric in zip(each, reading.definitions, strict=True)
            ]
        others = [slices for slices in each[1:] if reports_in(slices)]
        return cls(reading, [each[0], *others], excluded_in(chain.from_iterable(wholes)))

    @property
    def metric(self) -> Metric:
        """The current definition."""
        return self.reading.metric

    @property
    def parts(self) -> list[Slice]:
        """The slices of all definitions."""
        return list(chain.from_iterable(self.definitions))


def basis(plan: Plan, reports: MetricReports, relay: RelayTerms | None) -> Basis:
    """Return what the numbers of one metric rest on.

    Args: relay: what is declared of it, where it matters.
    """
    reading, metric, mechanism = reports.reading, reports.metric, reports.metric.mechanism
    n = reports_in(reports.parts)
    late = sum(part.late for part in reports.parts)
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
        definitions=[_definition(slices) for slices in reports.definitions if slices],
        sources=sources_of(reports.parts, n),
        epsilon_shuffled=UNSET if relay is None else shuffled_of(reports.definitions, relay),
        exclusions=list(_exclusions(plan, reading)) or UNSET,
        left_out=reports.excluded.reports if plan.excluded.applied else UNSET,
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


def excluded_in(parts: Iterable[Slice]) -> ExcludedCounts:
    """Return what exclusions have taken out of all *parts*."""
    counts = [(part.excluded, part.merged_key_reports) for part in parts]
    return ExcludedCounts(*map(sum, zip(*counts, strict=True))) if counts else ExcludedCounts(0, 0)


def or_emptied(
    slices: Sequence[Slice], plan: Plan, reading: Reading, metric: Metric, reader: Reader
) -> Sequence[Slice]:
    """Return *slices*; if exclusions left none of a question by groups, that of all groups.

    It has no reports, and says how many were taken out.
    Raises: as ``slices_of``.
    """
    if slices or not (plan.excluded.applied and plan.dimensions):
        return slices
    return reader.slices(replace(plan, dimensions=()), reading, metric)


def _definition(slices: Sequence[Slice]) -> Definition:
    """Return under which definition the reports of *slices* were made."""
    metric = slices[0].metric
    return Definition(
        digest=metric.digest.hex(),
        mechanism=metric.mechanism_name,
        epsilon_per_report=float(metric.mechanism.spent),
        n=reports_in(slices),
    )


def sources_of(parts: Iterable[Slice], n: int) -> Sources | UnsetType:
    """Return how many of the *n* reports of *parts* came in which way, if anything is known."""
    facts: Counter[str] = Counter()
    for part in parts:
        for origin, reports in part.origins.items():
            facts.update(dict.fromkeys(origin.source, reports))
    return Sources(facts[RELAYED], facts[ATTESTED], n) if facts.keys() & set(FACTS) else UNSET


def reports_in(slices: Iterable[Slice]) -> int:
    """Return how many reports *slices* hold."""
    return sum(part.n for part in slices)


def estimand(metric: Metric) -> tuple[object, ...]:
    """Return what a report of *metric* is about, whatever its noise."""
    return metric.domain.canonical(), metric.every, metric.aggregate, metric.otherwise


NO_OPERATOR: Final = "no operator of a relay is declared (HEARSAY_RELAY_OPERATOR)"
NONE_RELAYED: Final = "none of these reports came through a relay, alone in its upload"
_NOTHING: Final = 1 - 1e-6  # of what reports tell one by one, from which on a relay hides nothing


def shuffled_of(read: Sequence[Sequence[Slice]], terms: RelayTerms) -> EpsilonShuffled | UnsetType:
    """Return what can be claimed of a device whose reports are in *read*; nothing without relays.

    A claim needs a relay that somebody else runs, and reports that are known to have come through
    it, each alone in its upload.  A device hides among those of the same metric, period, segment
    and source, as all of these are in the clear; the smallest such group decides for its period.
    Periods are added up.  It is never less than what the relayed reports tell of any one device.

    Args: read: the slices of each definition of one metric.
    """
    parts = [_Relayed(slices, terms.colluding) for slices in read if slices]
    relayed = [part for part in parts if part.relayed]
    if not terms.operator:
        return EpsilonShuffled(because=NO_OPERATOR) if relayed else UNSET
    if not relayed:
        return EpsilonShuffled(because=NONE_RELAYED)
    for part in relayed:
        if reason := refusal(part.metric):
            return EpsilonShuffled(because=reason)
    least = min(min(part.groups) for part in relayed)
    alone = fsum(len(part.groups) * epsilon_of(part.metric) for part in relayed)
    groups = [(part.metric, rounded_down(n)) for part in relayed for n in part.groups if n > 0]
    if least < 1 or (claim := together(groups)).epsilon >= alone * _NOTHING:
        rule = f"the smallest group that a device hides in has {least} honest reports"
        return EpsilonShuffled(because=f"too few relayed reports: {rule}")
    count, total = (sum(getattr(part, name) for part in parts) for name in ("relayed", "n"))
    return EpsilonShuffled(
        epsilon=claim.epsilon,
        delta=claim.delta,
        n=least,
        assumes=[
            *_assumptions(terms),
            f"the device is one of those whose {count:,} of {total:,} reports came so",
            otherwise(max(epsilon_of(part.metric) for part in relayed)),
        ],
    )


class _Relayed:
    """The relayed reports of one definition, and the groups that their devices hide in."""

    def __init__(self, slices: Sequence[Slice], colluding: Fraction) -> None:
        """Take of each epoch the smallest group; all of a device's reports are in such."""
        self.metric = slices[0].metric
        self.n = sum(part.n for part in slices)
        known = sum((Counter(part.origins) for part in slices), Counter[Origin]())
        groups = {origin: n for origin, n in known.items() if RELAYED in origin.source and n}
        self.relayed = sum(groups.values())
        smallest: dict[int, int] = {}
        for origin, n in groups.items():
            smallest[origin.epoch] = min(n, smallest.get(origin.epoch, n))
        self.groups = [honest_of(n, colluding) for n in smallest.values()]


def _assumptions(terms: RelayTerms) -> Iterator[str]:
    yield (
        f"the relay is run by {terms.operator}, mixes what it passes on, and does not work with "
        "the collector"
    )
    yield (
        f"of each group at most {float(100 * terms.colluding):g} % are of devices that work with "
        "the collector, forged, or known to it by another way"
        if terms.colluding
        else "no relayed report is forged, or of a device that works with the collector"
    )
    yield from ASSUMED
