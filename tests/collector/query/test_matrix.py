"""Every type of values, asked by every verb, in every setting: numbers that are true, or a reason.

A cell is a question: a subject (a type of values), a verb, a panel or none, groups, epochs of one
length, a settled or a running range, and one definition or two.  Subjects, verbs, panels, groups
and definitions are crossed in full; the length of epochs and whether the range is settled go round,
so that any two values of any two axes meet.

The reports are those that a known crowd makes on average, without chance, so a number is off by no
more than the rounding of tallies.  It must be the truth of the devices that its remark speaks of,
inside of its interval, and under a panel the interval must be as wide as the draw of devices makes
it.  A new type joins by an entry of ``SUBJECTS``, and a new verb by one of ``TRUTHS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import combinations, product
from math import inf, sqrt
from typing import Any, Final, NamedTuple

import pytest
from msgspec import structs

from client_sdk.core.epoch import ONCE
from client_sdk.registry.domain import SHARE
from client_sdk.registry.types import kinds
from client_sdk.registry.types.items import MEAN_OF
from collector.analytics.rows import TIME, Findings, Row
from collector.analytics.verb import (
    OF_ALL,
    OF_ANSWERED,
    Slice,
    VerbQuery,
    names,
    sampled,
)
from collector.core.errors import QueryError
from collector.core.remarks import Code, remark
from collector.estimation.estimate import Estimate
from collector.query import Answer
from collector.query.plan import Plan
from collector.query.run import HOLDS
from tests.support.crowds.known_crowds import ONE, REDRAWN, SUBJECTS, TWO
from tests.support.crowds.known_questions import DAY, GROUPS, WEEK, Cell, Sites, cells
from tests.support.crowds.known_sites import MIN_REPORTS, Reports
from tests.support.crowds.known_truths import TRUTHS, Case, Crowds, number_of, sent

ROUNDING: Final = 2_000  # reports that a tally is off at most, as a mechanism weighs them
# What the numbers of some are off in themselves: a quantile is a bin, and strings share cells.
COARSE: Final[Mapping[str, float]] = {"quantile": 1.0, "heavy_hitters": 2e-3}
DISTRIBUTIONS: Final = frozenset({"duration", "number"})
NUMBERS: Final = DISTRIBUTIONS | {"count", "summed"}
CATEGORIES: Final = frozenset({"boolean", "category", "kept", "layered", "renamed"})
SINGLE: Final = CATEGORIES | {"location", "pair", "funnel", "retention"}
ITEMS: Final = SINGLE | {"set", "key_value", "record"}
LISTED: Final = ITEMS | NUMBERS | {"vector", "taste"}
# Of which subjects each verb has an answer; of all others it says why not.
ANSWERED: Final[Mapping[str, frozenset[str]]] = {
    "actives": frozenset(SUBJECTS),
    "adoption": LISTED,
    "cdf": DISTRIBUTIONS,
    "compare": LISTED,
    "crosstab": SINGLE | {"record"},
    "estimate": LISTED,
    "frequency": ITEMS,
    "funnel": frozenset({"funnel"}),
    "heavy_hitters": frozenset({"string"}),
    "histogram": DISTRIBUTIONS,
    "key_values": frozenset({"key_value"}),
    "lift": LISTED,
    "map": frozenset({"location"}),
    "mean": NUMBERS,
    "quantile": DISTRIBUTIONS,
    "range": CATEGORIES | {"funnel"} | DISTRIBUTIONS,
    "ratio": LISTED,
    "retention": frozenset({"retention"}),
    "segments": LISTED,
    "sum": NUMBERS,
    "top_k": ITEMS,
    "trend": LISTED,
    "variance": DISTRIBUTIONS,
    "vector": frozenset({"vector", "taste"}),
}
COUNTED: Final = frozenset({"actives", "adoption"})  # exact, so of any number of reports
# Faults that others are at: (subject, verb), or "" for any subject.  Each is one to take out.
KNOWN: Final[frozenset[tuple[str, str]]] = frozenset()


class Refusal(NamedTuple):
    """A reason not to answer: how it reads, and of which cells it must be given."""

    pattern: str
    is_right: Callable[[Cell], bool]


def _has_no_stretch(cell: Cell) -> bool:
    """Return whether time is told apart more finely than the epochs are, or there is none."""
    short = {DAY: ("7d", "28d"), WEEK: ("28d",)}.get(cell.granularity or "", ())
    return cell.every in short or (cell.granularity is not None and cell.every == ONCE)


QUESTIONS_REFUSED: Final = (
    Refusal(
        r"metrics\.0: \w+: (has|tells|does not) .+; .*(ask for|declare|metric of the type) .+",
        lambda cell: cell.name not in ANSWERED[cell.verb],
    ),
    Refusal(r"dimensions: metric=\w+ (is reported every|has no time: it is) .+", _has_no_stretch),
    Refusal(
        r"metrics\.0: \w+: is in the panel: .* do not count devices; .+",
        lambda cell: cell.verb == "actives" and cell.panel,
    ),
    Refusal(
        r"metrics: \w+ is one answer; name two that have reports; .+",
        lambda cell: (cell.verb, cell.place) == ("crosstab", 0) and cell.name in SINGLE - {"pair"},
    ),
    Refusal(
        r"options\.levels: metric=\w+ tells a mean only; .+",
        lambda cell: "levels" in cell.options and cell.name not in DISTRIBUTIONS,
    ),
    Refusal(
        r".*is drawn for another part of the devices in another registry; .+",
        lambda cell: (
            cell.definitions == REDRAWN
            and (
                cell.verb == "sum"
                or cell.options.get("of") == "totals"
                or (cell.verb == "adoption" and "item" not in cell.options)
            )
        ),
    ),
)


def question_faults(cell: Cell, error: str | None) -> Iterator[str]:
    """Yield what is wrong with a refusal of the whole question, or with the lack of one."""
    rights = [refusal for refusal in QUESTIONS_REFUSED if refusal.is_right(cell)]
    if error is None:
        yield from (
            f"answered, where ANSWERED or QUESTIONS_REFUSED says: {each.pattern}" for each in rights
        )
    elif not any(re.fullmatch(each.pattern, error) for each in rights):
        yield f"refused, and QUESTIONS_REFUSED lists no such reason for it: {error}"


def _too_few(case: Case, row: Row) -> bool:
    return min(map(sent, case.reports(row))) < MIN_REPORTS


ROWS_REFUSED: Final[Mapping[str, Callable[[Case, Row], bool]]] = {
    r"(\w+: )?not enough reports: [\d,]+ of at least [\d,]+ needed; .+": _too_few,
    r"nothing else beside it has enough reports": _too_few,
    r"no ratio: the control may be 0": lambda case, row: (
        number_of(case.subject, row.item, case.beside(row)) < ROUNDING / MIN_REPORTS
    ),
    r"the two were collected apart, .+": lambda case, row: _holds(row, *case.frechet(row)),
    r"no more than bounds is known: .+": lambda case, row: _holds(row, *_bounds(case, row)),
}


def _holds(row: Row, low: float, high: float) -> bool:
    """Return whether the ends of a row, of shares or of reports, hold all from *low* to *high*."""
    off = ROUNDING / MIN_REPORTS if row.unit == SHARE else ROUNDING
    if row.ci_low is None or row.ci_high is None:
        return False
    return row.ci_low - off <= low <= high <= row.ci_high + off


def _bounds(case: Case, row: Row) -> tuple[float, float]:
    """Return how many devices there were at least, those of any epoch, and at most."""
    reports = case.crowds[0].of(row.dimensions)
    epochs = {(each.begin, each.is_current) for each in reports}
    parts = [sent(e for e in reports if (e.begin, e.is_current) == epoch) for epoch in epochs]
    return max(parts), sum(parts)


def row_faults(case: Case, row: Row) -> Iterator[str]:
    """Yield what is wrong with a row: its number, its interval, its reports, or its reason."""
    each = case.reports(row)
    tallies, fewest = sum(map(len, each)), min(map(sent, each))
    if abs(row.n - case.n(row)) > tallies:
        yield f"n is {row.n}, must be {case.n(row):.0f}"
    if row.is_open != any(one.is_running for reports in each for one in reports):
        yield f"is_open is {row.is_open}"
    if row.value is None:
        rights = [
            right for text, right in ROWS_REFUSED.items() if re.fullmatch(text, row.reason or "")
        ]
        if not any(right(case, row) for right in rights):
            yield f"no number, and not in ROWS_REFUSED: {row.reason}, {row.ci_low} to {row.ci_high}"
        return
    truth = case.truth(row)
    off = max(1.0, abs(truth)) * ROUNDING * tallies / fewest + _coarseness(case, row)
    if _too_few(case, row) and not (case.verb in COUNTED and "item" not in case.options):
        yield f"a number of {fewest:.0f} reports, fewer than {MIN_REPORTS}"
    if row.reason is not None or abs(row.value - truth) > off:
        yield f"says {row.value}, must be {truth} ± {off}"
    assert row.ci_low is not None
    assert row.ci_high is not None
    if not row.ci_low - off <= truth <= row.ci_high + off:
        yield f"{row.ci_low} to {row.ci_high} does not hold {truth}"
    if not row.ci_low <= row.value <= row.ci_high:
        yield f"{row.ci_low} to {row.ci_high} does not hold its own {row.value}"


def _is_quantile(case: Case, row: Row) -> bool:
    return case.subject.number is not None and re.fullmatch(r"p\d+", row.item) is not None


def _coarseness(case: Case, row: Row) -> float:
    return COARSE["quantile"] if _is_quantile(case, row) else COARSE.get(case.verb, 0.0)


EARLIER: Final = re.compile(r"(\w+): (\d+) reports? under earlier definitions are ([^;]+)(?:; .+)?")
SAMPLE: Final = re.compile(r"(\w+): a sample of the devices \(.+\) answers?[^;]*; (.+)")
LEFT_OUT: Final = "left out"
INTERNAL: Final = re.compile(r"\b(metrics|options|dimensions|definitions)\.\d|\b(None|nan|inf)\b")


def case_of(cell: Cell, sites: Sites, answer: Answer) -> Case:
    """Return what an answer is about by its own remarks: whose devices, and which reports."""
    left_out, whose = _said(EARLIER, answer), _said(SAMPLE, answer)
    crowds = []
    for name in cell.metrics:
        reports = in_range(cell, sites, name, answer)
        if left_out.get(name) == LEFT_OUT:
            reports = [each for each in reports if each.is_current]
        crowds.append(
            Crowds(
                name,
                SUBJECTS[name],
                reports,
                cell.every,
                cell.granularity,
                cell.segments,
                answer.rows,
            )
        )
    answered = whose.get(cell.name) == HOLDS[OF_ANSWERED]
    return Case(cell.verb, tuple(crowds), cell.options, answered)


def in_range(cell: Cell, sites: Sites, name: str, answer: Answer) -> list[Reports]:
    """Return the reports of a metric whose epochs begin in the ranges that are asked for."""
    site = sites.of(cell)
    ranges: Sequence[tuple[date, date]] = (site.window(cell.metrics, is_settled=cell.is_settled),)
    if answer.meta.query.against is not None:
        ranges = site.stretches(is_settled=cell.is_settled)
    return [
        each
        for each in site.reports(name)
        if cell.every == ONCE or any(first <= each.begin.date() <= last for first, last in ranges)
    ]


def _said(form: re.Pattern[str], answer: Answer) -> Mapping[str, str]:
    """Return what remarks of a form say of each metric at their end."""
    found = filter(None, map(form.fullmatch, map(str, answer.meta.warnings)))
    return {match[1]: match[match.re.groups] for match in found}


def remark_faults(cell: Cell, sites: Sites, answer: Answer) -> Iterator[str]:
    """Yield what is wrong with the remarks of an answer, or missing from them."""
    notes = [text for row in answer.rows for text in (row.note, row.reason) if text]
    lines = [str(remark) for remark in answer.meta.warnings]
    yield from (text for text in (*lines, *notes) if INTERNAL.search(text))
    whose = _said(SAMPLE, answer)
    if set(whose) != (set(cell.metrics) if cell.panel else set()):
        yield f"a panel is said of {sorted(whose)}"
    for name, words in whose.items():
        allowed = {HOLDS[OF_ANSWERED]} if cell.definitions == REDRAWN else {*HOLDS.values()}
        if words not in allowed:
            yield f"{name}: is said to hold for: {words}"
    earlier = {match[1]: int(match[2]) for match in map(EARLIER.fullmatch, lines) if match}
    for name in cell.metrics:
        reports = in_range(cell, sites, name, answer)
        older = [each for each in reports if not each.is_current] if cell.definitions == TWO else []
        if abs(earlier.get(name, 0) - sent(older)) > len(older):
            yield f"{name}: says {earlier.get(name, 0)} of {sent(older)} earlier reports"
        runs = any(each.is_running for each in reports)
        runs |= SUBJECTS[name].is_summed and cell.every == "1h" and not cell.is_settled
        is_said = remark(Code.IN_PROGRESS, name) in answer.meta.warnings
        if is_said != (runs and cell.granularity is None):
            yield f"{name}: in progress: {is_said}"


def coverage_faults(cell: Cell, case: Case, sites: Sites, answer: Answer) -> Iterator[str]:
    """Yield the groups of reports that no row is of; a comparison has none for its base."""
    if answer.meta.query.against is not None and not answer.rows:
        (first, _), _ = sites.of(cell).stretches(is_settled=cell.is_settled)
        is_alone = all(each.begin.date() >= first for each in case.crowds[0].reports)
        codes = {remark.code for remark in answer.meta.warnings}
        if not is_alone or Code.NOTHING_TO_COMPARE not in codes:
            yield f"nothing is compared: {answer.meta.warnings}"
        return
    if "against" in {name for row in answer.rows for name in row.dimensions}:
        return
    told = {case.crowds[0].key(row.dimensions) for row in answer.rows}
    yield from (
        f"{group} has no row" for group in set(case.crowds[0].groups.values()) if group not in told
    )


Errors = Mapping[tuple[Any, ...], float]
BOUNDED: Final = frozenset({("record", "crosstab")})  # which attribute is drawn counts as the panel
VECTORS: Final = frozenset({"vector", "taste"})  # errors are of reports as they scatter anyway
AT_RANDOM: Final = frozenset({"compare", "lift"})  # are of devices drawn at random, panel or not


def _name(row: Row) -> tuple[Any, ...]:
    return (*row.dimensions.items(), row.unit)


def errors_of(answer: Answer) -> Errors:
    """Return the standard error of each row that has one."""
    return {_name(row): row.std_error for row in answer.rows if row.std_error is not None}


def width_faults(cell: Cell, case: Case, answer: Answer, alone: Errors) -> Iterator[str]:
    """Yield rows that are not as uncertain as their noise and the draw of the devices make them.

    Args: alone: what the same question has for errors without a panel: noise, of more reports.
    """
    whose = _said(SAMPLE, answer).get(cell.name)
    for row in answer.rows[:: max(len(answer.rows) // 3, 1)]:
        of_answered = _is_quantile(case, row) or row.item.startswith(MEAN_OF)
        if row.value is not None and whose == HOLDS[OF_ALL] and of_answered:
            yield f"{dict(row.dimensions)}: is said to hold for all devices"
        if row.std_error is None or whose == HOLDS[OF_ANSWERED] or of_answered or _same_draw(cell):
            continue
        shares = {each.share for reports in case.reports(row) for each in reports}
        noise, drawn = alone.get(_name(row), 0.0) ** 2, case.drawn(row)
        is_known = _name(row) in alone  # with fewer reports, other groups are small
        least = noise / max(shares) + drawn
        most = noise / min(shares) + drawn
        if cell.name in VECTORS:
            least, most = drawn, inf
        elif cell.verb in AT_RANDOM:
            least, most = max(noise / max(shares), drawn), inf
        elif row.unit != SHARE or (cell.name, cell.verb) in BOUNDED or not is_known:
            most = inf
        if not least * (1 - _NEAR) - _NONE <= row.std_error**2 <= most * (1 + _NEAR) + _NONE:
            limits = f"{sqrt(least)} to {sqrt(most)}"
            yield f"{dict(row.dimensions)}: the standard error {row.std_error} must be {limits}"
        width = (row.ci_high or 0.0) - (row.ci_low or 0.0)
        is_cut = {row.ci_low, row.ci_high} & {0.0, 1.0}
        if not is_cut and width < 2 * _Z * sqrt(least) * (1 - _NEAR) - sqrt(_NONE):
            yield f"{dict(row.dimensions)}: the interval is only {width} wide"


_Z: Final = 1.96  # standard errors of an interval of 95 %, alone
_NONE: Final = 1e-18  # the variance of what is known
_NEAR: Final = 0.03  # part of a variance: of the finite differences, and of rounded tallies


def _same_draw(cell: Cell) -> bool:
    """Return whether rows compare two times of the same devices, so that the draw cancels out."""
    is_in_time = cell.verb == "compare" and cell.options.get("by", TIME) == TIME
    return is_in_time and SUBJECTS[cell.name].form.count("longitudinal") > 0


def faults(cell: Cell, sites: Sites, answer: Answer, alone: Errors) -> Iterator[str]:
    """Yield what is wrong with an answer."""
    case = case_of(cell, sites, answer)
    yield from remark_faults(cell, sites, answer)
    yield from coverage_faults(cell, case, sites, answer)
    for row in answer.rows:
        yield from (f"{dict(row.dimensions)}: {fault}" for fault in row_faults(case, row))
    if cell.panel and cell.definitions != REDRAWN:
        yield from width_faults(cell, case, answer, alone)


def as_understood(cell: Cell, answer: Answer) -> Cell:
    """Return a cell with the dimensions that were taken where it names none."""
    return cell._replace(dimensions=tuple(answer.meta.query.dimensions))


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Sites:
    """The collectors, each of which many cells share."""
    return Sites(tmp_path_factory.mktemp("sites"))


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_cell_is_true_or_says_why_not(sites: Sites, name: str) -> None:
    """Law: numbers are those of the devices that remarks say, and refusals those of the tables."""
    wrong, alone = [], dict[Cell, Errors]()
    for cell in cells(name):
        if {(name, cell.verb), ("", cell.verb)} & KNOWN:
            continue
        error = answer = None
        try:
            answer = sites.answer(cell, sites.plan(cell))
        except QueryError as refusal:
            error = str(refusal)
        wrong += [f"{cell}: {fault}" for fault in question_faults(cell, error)]
        if answer is not None:
            if not cell.panel:
                alone[cell] = errors_of(answer)
            without = alone.get(cell._replace(panel=False), {})
            asked = as_understood(cell, answer)
            wrong += [f"{cell}: {fault}" for fault in faults(asked, sites, answer, without)]

    assert not wrong, "\n".join([f"{len(wrong)} faults:", *wrong[:20]])


def test_every_type_and_every_verb_is_in_the_tables() -> None:
    """Law: a new one joins by existing, and says here what is true of it."""
    ours = {name for name, kind in kinds().items() if kind.__module__.startswith("client_sdk")}

    assert {subject.type for subject in SUBJECTS.values()} == ours, "add it to SUBJECTS"
    assert set(TRUTHS) == set(ANSWERED) == set(names()), "add it to TRUTHS and ANSWERED"


def test_any_two_values_of_any_two_axes_meet() -> None:
    """Law: but for those that there are not: some metrics are not for every length of epochs."""
    every_cell = [cell for name in SUBJECTS for cell in cells(name)]
    for one, other in combinations(Cell._fields, 2):
        met = {(getattr(cell, one), getattr(cell, other)) for cell in every_cell}
        firsts, seconds = ({pair[i] for pair in met} for i in (0, 1))
        lacking = set(product(firsts, seconds)) - met
        assert all(_is_impossible({one: a, other: b}) for a, b in lacking), (one, other, lacking)


def _is_impossible(two: Mapping[str, Any]) -> bool:
    """Return whether these two values of a cell are never asked for together."""
    if "place" in two:  # asks are those of a verb, and of some subjects
        return True
    if two.get("definitions") == REDRAWN and (
        two.get("panel") is False or two.get("dimensions") in GROUPS[2:4]
    ):
        return True
    subject = SUBJECTS.get(two.get("name", ""))
    return subject is not None and (
        two.get("every", subject.every[0]) not in subject.every
        or two.get("definitions", subject.definitions[0]) not in subject.definitions
    )


Plant = Callable[[Plan], Plan]


def _answering(change: Callable[[Findings, Sequence[Slice], VerbQuery], Findings]) -> Plant:
    """Return what has the verb of a plan answer something else."""

    def plant(planned: Plan) -> Plan:
        verb = planned.verb

        def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
            return change(verb.answer(slices, query), slices, query)

        return replace(planned, verb=replace(verb, answer=answer))

    return plant


def _each_row(change: Callable[[Row, Slice], Row]) -> Plant:
    return _answering(
        lambda found, slices, _: replace(
            found, rows=tuple(change(row, slices[0]) for row in found.rows)
        )
    )


def _scaled(row: Row, factor: float) -> Row:
    ends = (row.value, row.std_error, row.ci_low, row.ci_high)
    value, error, low, high = (factor * (end or 0.0) for end in ends)
    return structs.replace(row, value=value, std_error=error, ci_low=low, ci_high=high)


def _on_the_range(row: Row, part: Slice) -> Row:
    """Return a share with the error of a number of the metric's range."""
    whole = replace(part, n=round(row.n / (row.value or 1.0)))
    point = Estimate(row.value or 0.0, 0.0, row.value or 0.0, row.value or 0.0)
    (wide,) = sampled(whole, [point], row.alpha)
    return structs.replace(row, std_error=wide.std_error, ci_low=wide.ci_low, ci_high=wide.ci_high)


def _twice(planned: Plan) -> Plan:
    """Return a plan whose verb is given what is still running once more."""
    verb = planned.verb

    def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
        doubled = [
            replace(part, n=2 * part.n, tally=2 * part.tally) if part.is_open else part
            for part in slices
        ]
        return verb.answer(doubled, query)

    return replace(planned, verb=replace(verb, answer=answer))


def _first_definition(planned: Plan) -> Plan:
    (reading,) = planned.readings
    return replace(planned, readings=(replace(reading, definitions=reading.definitions[:1]),))


def _of_all(planned: Plan) -> Plan:
    return replace(planned, verb=replace(planned.verb, holds=lambda _metric, _options: OF_ALL))


PLANTED: Final[Mapping[str, tuple[Cell, Plant, str]]] = {
    "a sum of the devices drawn": (
        Cell("count", "sum", 0, (), ONE, True, "7d", True),
        _each_row(lambda row, part: _scaled(row, part.metric.sample.share)),
        "must be",
    ),
    "adoption on the range of the metric": (
        Cell("duration", "adoption", 0, ("platform",), ONE, True, "1d", True),
        _each_row(_on_the_range),
        "the standard error",
    ),
    "earlier reports dropped in silence": (
        Cell("boolean", "frequency", 0, (), TWO, False, "1d", True),
        _first_definition,
        "earlier reports",
    ),
    "a running period counted twice": (
        Cell("category", "frequency", 0, (DAY,), ONE, False, "1h", False),
        _twice,
        "n is",
    ),
    "a distribution of all devices": (
        Cell("number", "cdf", 0, (), ONE, True, "7d", True),
        _of_all,
        "the standard error",
    ),
    "0 for what is not known": (
        Cell("set", "frequency", 0, ("platform",), ONE, True, "once", True),
        _each_row(lambda row, _: structs.replace(_scaled(row, 1.0), refusal=None)),
        "must be",
    ),
    "a place in the request": (
        Cell("pair", "crosstab", 0, (), ONE, False, "1d", True),
        _answering(
            lambda found, _, __: replace(
                found, warnings=(remark(Code.NOTE, text="metrics.0: is a pair"),)
            )
        ),
        "metrics.0",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_matrix_sees_what_is_planted(sites: Sites, name: str) -> None:
    """Control: the cell is true as it is, and its check names the fault that is planted."""
    cell, plant, words = PLANTED[name]
    planned = sites.plan(cell)
    without = cell._replace(panel=False)
    alone = errors_of(sites.answer(without, sites.plan(without)))

    as_it_is = list(faults(cell, sites, sites.answer(cell, planned), alone))
    planted = list(faults(cell, sites, sites.answer(cell, plant(planned)), alone))

    assert not as_it_is
    assert any(words in fault for fault in planted)
