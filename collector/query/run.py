"""From a plan to an answer: read, ask the verb, put in order, and say what it all rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import thread_time
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from client_sdk.privacy.time_off import DAYS_ON, HOURS_ON
from client_sdk.registry.metric import Metric

from ..analytics.answer import combined
from ..analytics.poisoning.findings import missed, with_influence
from ..analytics.records import is_of_records
from ..analytics.rows import LEFT_OUT, TIME, Chart, Findings, Row
from ..analytics.sums import is_joined
from ..analytics.suppression import merge_small, suppress_imprecise
from ..analytics.verb import OF_ALL, OF_ANSWERED, OF_BOTH, Slice, VerbQuery, united
from ..core.config import RelayTerms
from ..core.errors import QueryError
from ..core.remarks import Code, Remark, remark
from ..storage.protocols import TallyStore
from .basis import Basis, MetricReports, basis, estimand, reports_in
from .exclusions import remarks_on
from .gate import allowance, price_of
from .plan import Plan, Reading
from .reader import Reader
from .reading import naming, without_pruned
from .request import TOGETHER, WITHHOLD, Query
from .window import days_of_epochs

_ALL_DEVICES: Final = f"all devices that run {HOURS_ON} hours on {DAYS_ON} days a week or more"
HOLDS: Final = {
    OF_ALL: f"the intervals hold for {_ALL_DEVICES}",
    OF_ANSWERED: "the intervals hold for the devices that answered",
    OF_BOTH: (
        f"intervals of shares and means hold for {_ALL_DEVICES}, those of quantiles and of the"
        " means of keys for the devices that answered"
    ),
}
Intervals: TypeAlias = Literal["pointwise", "simultaneous", "mixed"]
_NUMBERS = ("value", "ci_low", "ci_high", "std_error", "n", "p_value")


class Meta(Struct, frozen=True, forbid_unknown_fields=True):
    """What an answer rests on, and the question as it was understood."""

    verb: str
    chart: Chart
    metrics: list[Basis]
    n: int
    dimensions: list[str]
    alpha: float
    intervals: Intervals
    postprocess: str
    warnings: list[Remark]
    facts: dict[str, Any]
    query: Query
    total_rows: int | UnsetType = UNSET
    time_labels: list[str] | UnsetType = UNSET


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to a question: numbers with intervals, or the reason why there is none."""

    rows: tuple[Row, ...]  # of one page
    meta: Meta


def run(
    plan: Plan,
    storage: TallyStore,
    *,
    is_checked: bool = True,
    relay: RelayTerms | None = None,
    clock: Callable[[], float] = thread_time,
) -> Answer:
    """Return the answer to *plan* from *storage*, as ``answer`` does."""
    return answer(plan, Reader(storage), is_checked=is_checked, relay=relay, clock=clock)


def answer(
    plan: Plan,
    reader: Reader,
    *,
    is_checked: bool = True,
    relay: RelayTerms | None = None,
    clock: Callable[[], float] = thread_time,
) -> Answer:
    """Return the answer to *plan*.

    Args:   is_checked: look for fakes and say so; a number that stands among many need not.
            relay: what is declared of it, if the answer shall tell what it leaves of ε.
            clock: seconds that the processor has worked for this question.
    Raises: StorageUnavailableError: the store does not answer, or is being pruned right now.
            BusyError: too many questions as large are being answered.
            PrunedError: a whole window was deleted.
            DamagedTallyError: what is stored cannot have come from reports of this metric.
            QueryError: the verb cannot be asked so, or the answer takes too long.
    """
    pause = allowance(clock)
    resolved = without_pruned(plan, reader) if plan.marks is None else plan

    def work() -> Answer:
        reader.hold(price_of(resolved))
        return _answered(resolved, reader, is_checked, relay, pause)

    variant = is_checked, relay and (relay.operator, str(relay.colluding))
    with reader.question():
        return reader.answer(resolved, variant, work)


def _answered(
    plan: Plan,
    reader: Reader,
    is_checked: bool,
    relay: RelayTerms | None,
    pause: Callable[[], None],
) -> Answer:
    """Read, and return the answer."""
    request = VerbQuery(
        plan.query.alpha,
        plan.query.postprocess,
        plan.options,
        {name: plan.readings[0].metric.segments[name] for name in plan.groups},
        tuple(reading.metric for reading in plan.readings),
        pause,
    )
    read = [MetricReports.read(plan, reading, reader) for reading in plan.readings]
    reader.require_unpruned(plan)
    metrics, notes = _sized(plan, [replace(each, used=_used(plan, each)) for each in read])
    findings = _findings(plan, request, metrics)
    page = plan.query.pagination
    checked = _suspicions(metrics, reader) if is_checked else ()
    rows = ordered(findings.rows, plan)[page.offset : page.offset + page.limit]
    return Answer(
        _influenced(rows, plan, metrics),
        _meta(plan, findings, metrics, (*checked, *plan.notes, *notes), relay),
    )


def _used(plan: Plan, reports: MetricReports) -> Sequence[Sequence[Slice]]:
    """Return the slices of the definitions whose reports the answer rests on.

    All of them where reports are only counted.  Otherwise the current one, and with it those of
    the same values, made by the devices in the same way, where numbers of several can be combined.
    What values themselves say that they
    are about is another thing in each definition: its round 2 is at a model of its own.
    """
    definitions, domain = reports.definitions, reports.metric.domain
    if plan.verb.counts(plan.options):
        return definitions
    several = len(plan.readings) > 1 or domain.labelled
    if several or not plan.verb.combines(domain, plan.options):
        return definitions[:1]
    meant = estimand(reports.metric)
    alike = [
        slices
        for slices in definitions[1:]
        if estimand(slices[0].metric) == meant and not plan.verb.refusal(slices[0].metric)
    ]
    current = definitions[:1] if reports_in(definitions[0]) else []
    return [*current, *alike] or definitions[:1]


def _sized(
    plan: Plan, metrics: Sequence[MetricReports]
) -> tuple[Sequence[MetricReports], list[Remark]]:
    """Return *metrics* with small groups told together, and what to say of them.

    Counts obey no size.  Groups of several metrics stay, as each may have others that are small.
    """
    if plan.verb.counts(plan.options):
        return metrics, []
    together = plan.verb.merges_small and len(metrics) == 1 and plan.query.small_cells == TOGETHER
    sized, notes = [], list[Remark]()
    for each in metrics:
        used, said = merge_small(each.used, each.metric, together=together)
        sized.append(replace(each, used=used))
        notes += said if together or plan.query.small_cells == WITHHOLD else []
    return sized, notes


def _findings(plan: Plan, request: VerbQuery, metrics: Sequence[MetricReports]) -> Findings:
    """Ask the verb, of each definition if several are used, and hold numbers against the need."""
    first, used = metrics[0].metric, metrics[0].used
    with naming(*request.metrics):
        if len(metrics) > 1 or not plan.verb.combines(first.domain, request.options):
            every = [part for each in metrics for slices in each.used for part in slices]
            findings = plan.verb.answer(every, request)
        elif plan.verb.unites:
            findings = plan.verb.answer(united(used, first), request)
        else:
            each = [plan.verb.answer(slices, request) for slices in used]
            findings = combined(each, request.alpha, used)
    if not plan.verb.estimates or len(metrics) > 1:
        return findings
    return replace(findings, rows=suppress_imprecise(findings.rows, first))


def _influenced(
    rows: Sequence[Row], plan: Plan, metrics: Sequence[MetricReports]
) -> tuple[Row, ...]:
    """Return *rows* with what fakes could do to each, where they are estimates of one metric."""
    if not plan.verb.estimates or len(metrics) > 1:
        return tuple(rows)
    (reports,) = metrics
    if plan.verb.joins and is_joined(reports.metric.domain):
        return tuple(rows)  # what one fake report can do to several items at once is another bound
    slices = reports.used[0]
    return with_influence(rows, reports.metric, slices[0].tally if len(slices) == 1 else None)


def ordered(rows: Iterable[Row], plan: Plan) -> list[Row]:
    """Return *rows* in the order asked for; those without a number stand last.

    Raises: QueryError: order_by names no column of the rows.
    """
    ordered_rows = list(rows)
    known = {
        *_NUMBERS,
        *(name for row in ordered_rows for name in row.dimensions),
        *plan.dimensions,
    }
    for place, (name, direction) in reversed(list(enumerate(plan.query.order_by))):
        if name not in known and ordered_rows:
            names = ", ".join(sorted(known))
            raise QueryError(f"order_by.{place}", f"must be one of {names}")
        ordered_rows.sort(key=lambda row: _key(row, name), reverse=direction == "desc")
        ordered_rows.sort(key=lambda row: _key(row, name)[0])
    return ordered_rows


def _key(row: Row, name: str) -> tuple[bool, Any]:
    value = getattr(row, name) if name in _NUMBERS else row.dimensions.get(name)
    return value is None, 0 if value is None else value


def _meta(
    plan: Plan,
    findings: Findings,
    metrics: Sequence[MetricReports],
    notes: Iterable[Remark],
    relay: RelayTerms | None,
) -> Meta:
    query = plan.query
    excluded = [
        said
        for each in metrics
        for said in remarks_on(plan.excluded, each.metric, each.reading.epochs, each.excluded)
    ]
    left_out = {LEFT_OUT: list(map(str, excluded))} if excluded else {}
    warnings = (each for reports in metrics for each in _warnings(plan, reports))
    return Meta(
        verb=query.verb,
        chart=plan.verb.chart,
        metrics=[basis(plan, each, relay) for each in metrics],
        n=sum(reports_in(each.parts) for each in metrics),
        dimensions=list(plan.dimensions),
        alpha=query.alpha,
        intervals=_intervals(findings.rows),
        postprocess=query.postprocess,
        warnings=[*excluded, *warnings, *notes, *findings.warnings, *_missed(plan, findings)],
        facts={**findings.facts, **left_out},
        query=query,
        total_rows=len(findings.rows) if "total_rows" in query.include else UNSET,
        time_labels=_time_labels(plan) if "time_labels" in query.include else UNSET,
    )


def _time_labels(plan: Plan) -> list[str]:
    """Return the labels of all epochs of a question, each once."""
    labels = (
        label(epoch)
        for reading in plan.readings
        if (label := reading.label)
        for epoch in reading.epochs
    )
    return list(dict.fromkeys(labels))


def _is_of_furthest(plan: Plan, reading: Reading) -> bool:
    """Return whether steps mean something else here than in a funnel."""
    counted = plan.verb.joins or plan.verb.counts(plan.options)
    return reading.metric.domain.largest is not None and not counted


def _held_for(plan: Plan, definitions: Sequence[Metric]) -> str:
    """Return for which devices intervals hold if a sample of them answers.

    Where registries draw other parts of one definition, reports do not say of which they are.
    """
    if any(metric.sample.is_least for metric in definitions):
        return HOLDS[OF_ANSWERED]
    return HOLDS[plan.verb.holds(definitions[0], plan.options)]


def _intervals(rows: Iterable[Row]) -> Intervals:
    kinds = {row.simultaneous for row in rows}
    if kinds == {True}:
        return "simultaneous"
    return "mixed" if len(kinds) == 2 else "pointwise"


def _missed(plan: Plan, findings: Findings) -> list[Remark]:
    """Return what is impossible of the numbers themselves, where they are of one metric."""
    if not plan.verb.estimates or len(plan.readings) > 1:
        return []
    return list(missed(findings.rows, plan.readings[0].metric))


def _warnings(plan: Plan, reports: MetricReports) -> Iterator[Remark]:
    reading = reports.reading
    of_metric = partial(remark, metric=reports.metric.address)
    if reading.is_unfinished and (TIME not in plan.dimensions or reading.earlier):
        yield of_metric(Code.IN_PROGRESS)
    if gap := reading.gap:
        yield of_metric(Code.NOT_COUNTED, days=" to ".join(dict.fromkeys(gap)))
    used = [part for slices in reports.used for part in slices]
    drawn = [reports.metric, *(part.metric for part in used if part.n)]
    if samples := list(filter(None, dict.fromkeys(each.sample.in_words for each in drawn))):
        words = ", under an earlier definition ".join(samples)
        yield of_metric(Code.SAMPLE, samples=words, held_for=_held_for(plan, drawn))
    if is_of_records(reports.metric) and not plan.verb.counts_attributes:
        yield of_metric(Code.REPORTS_OF_RECORDS)
    if _is_of_furthest(plan, reading):
        yield of_metric(Code.FURTHEST_STEP)
    counted = {part.metric.digest for part in used}
    for code, is_counted in ((Code.EARLIER_COUNTED, True), (Code.EARLIER_LEFT_OUT, False)):
        others = {
            slices[0].metric.digest.hex(): reports_in(slices)
            for slices in reports.definitions[1:]
            if (slices[0].metric.digest in counted) == is_counted
        }
        if n := sum(others.values()):
            text = f"{n} report" if n == 1 else f"{n} reports"
            yield of_metric(code, reports=text, definitions=", ".join(others))
    if not reports_in(reports.parts):
        if reading.version is None:
            yield of_metric(Code.NO_REPORTS)
        else:
            yield of_metric(Code.NOT_PUBLISHED, version=reading.version)
        if reading.is_unfinished and reports.metric.aggregate:
            yield of_metric(Code.SENT_LATER)
    elif (before := reading.earlier) and not any(
        part.n and before.start <= part.epochs[0] and part.epochs[-1] < before.stop
        for part in reports.parts
    ):
        first, last = days_of_epochs(reports.metric.every, before)
        yield of_metric(Code.NO_EARLIER_REPORTS, first=first, last=last)


def _suspicions(metrics: Sequence[MetricReports], reader: Reader) -> Iterator[Remark]:
    """Yield what in the tallies cannot come from honest devices alone."""
    for reports in metrics:
        for slices in reports.definitions:
            with naming(reports.metric):
                remarks = reader.suspicions(slices)
            yield from remarks
