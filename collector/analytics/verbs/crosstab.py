"""How two answers of the same devices go together: a table of both, with its margins.

*Collected together*, they have an association, Cramér's V (``association``).

*Collected apart*, they have margins and bounds.  Whether the same devices gave both answers is not
in the reports, and no analysis brings it back.  With shares a and b of the two answers, the share
of both lies between max(0, a + b - 1) and min(a, b), and may be anywhere between: so a row has
these bounds and no number.

Source: Fréchet, Annales de l'Université de Lyon 1951: the bounds, which cannot be improved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from msgspec import Struct

from client_sdk.registry.encodings import ItemEncoding
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import listed
from client_sdk.registry.types.joint import PairDomain
from client_sdk.registry.types.record import ANSWER, ATTRIBUTE, LABEL

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ...estimation.arrays import Bools
from ...estimation.estimate import Estimate, shares
from ..association import Finding, associations, in_words, margins
from ..records import by_attribute, is_of_records
from ..rows import ALL, MEASURE, SHARE, Chart, Findings, Row, empty_row
from ..sums import Shares
from ..verb import Name, Offer, Slice, Verb, VerbQuery, refused_rows, rows_of, widened

_MOST_SAID: Final = 12  # associations that are put in words; more are facts only
APART: Final = remark(Code.APART)
_DECLARE: Final = "a metric of the type pair shows which answers go together"


def bounded(part: Slice, other: Slice, alpha: float, tables: int = 0) -> list[Row]:
    """Return a row for each item of *part* with each of *other*, then those of both margins.

    The bounds of a cell hold with 1 - *alpha*, as both its margins do with half of it.

    Args: tables: whose intervals are to hold at once with those of this one; 0: each for itself.
    """
    first, second = part.metric.address, other.metric.address
    cells = [{first: x, second: y} for x in _labels(part) for y in _labels(other)]
    rows = [{first: x, second: ALL} for x in _labels(part)]
    columns = [{first: ALL, second: y} for y in _labels(other)]
    refusal = part.refusal or other.refusal
    if refusal is not None:
        fewer = min(part, other, key=lambda each: each.n)
        return [
            row
            for each, names in ((fewer, cells), (part, rows), (other, columns))
            for row in refused_rows(each, names, alpha, refusal=refusal, simultaneous=tables > 0)
        ]
    margins = (len(rows) + len(columns)) * tables
    inside = [_shares(half, alpha / (margins or 2)) for half in (part, other)]
    beside = [_shares(half, alpha / (margins or 1)) for half in (part, other)]
    n, is_open = min(part.n, other.n), part.is_open or other.is_open
    more = {"simultaneous": tables > 0, "is_open": is_open}
    ends = [_between(a, b) for a in inside[0] for b in inside[1]]
    return [
        *(
            empty_row({**part.dimensions, **name}, n, alpha, SHARE, APART, ends=end, **more)
            for name, end in zip(cells, ends, strict=True)
        ),
        *rows_of(part, rows, beside[0], alpha, simultaneous=tables > 0),
        *rows_of(other, columns, beside[1], alpha, simultaneous=tables > 0),
    ]


def _between(a: Estimate, b: Estimate) -> tuple[float, float]:
    """Return the bounds of what is in both shares, wherever these are in their intervals."""
    low = max(0.0, a.ci_low + b.ci_low - 1)
    return low, max(low, min(1.0, a.ci_high, b.ci_high))


def _shares(part: Slice, alpha: float) -> list[Estimate]:
    return widened(part, shares(part.metric.mechanism, part.tally, part.n, alpha), alpha)


def _labels(part: Slice) -> tuple[str, ...]:
    return part.metric.domain.labels


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the intervals of all rows are to hold at once, and of whom shares are.

    ``of`` names an answer: shares are then of the devices that gave each value of it.
    """

    simultaneous: bool = False
    of: Name | None = None


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a cell and a row a margin of each slice, and the association in facts.

    The dimensions of a row are both names.  Of two metrics that were collected apart there are
    the margins, and bounds of each cell: a table between them is in no reports.

    With ``of`` there is a row for each value of this answer with each of the other: which part of
    those with the first have the second, and which part of all.

    Of records there is a table for each attribute, of its values by label, from the reports about
    it.  ``of`` is "label", or one attribute, whose table is then the only one.

    Raises: QueryError: one metric that is no pair, a name that is a dimension, too, or
        ``options.of``.
    """
    metrics = list({part.metric.address: part.metric for part in slices}.values())
    of = query.options.of
    if len(metrics) == 2:
        if of is not None:
            raise QueryError("options.of", f"{APART.text}; {_DECLARE}")
        return _apart(slices, metrics, query)
    if not metrics:
        return Findings(())
    domain, records = metrics[0].domain, is_of_records(metrics[0])
    if not (isinstance(domain, PairDomain) or records):
        raise QueryError(
            "metrics", f"{metrics[0].name} is one answer; name two that have reports; {_DECLARE}"
        )
    if of is not None and of not in domain.parts:
        raise QueryError("options.of", f"must be one of: {listed(tuple(domain.parts))}")
    said = [remark(Code.OF_ANSWER, answer=of)] if of else []
    if records:
        said.append(remark(Code.DRAWN_ATTRIBUTE))
        for part in slices:
            _require_free(part, (ATTRIBUTE,))
        tables = [table for part in slices for table in by_attribute(part)]
        if of not in (None, LABEL):
            tables = [table for table in tables if table.dimensions[ATTRIBUTE] == of]
            of = ANSWER
        slices = tables
    domains = [pair for part in slices if isinstance(pair := part.metric.domain, PairDomain)]
    sizes = [len(_conditions(pair, of)) if of else len(_names(pair)) for pair in domains]
    level = query.alpha / (max(sum(sizes), 1) if query.options.simultaneous else 1)
    rows: list[Row] = []
    for part, pair in zip(slices, domains, strict=True):
        _require_free(part, pair.names)
        rows += _within(part, pair, level, query, of) if of else _table(part, pair, level, query)
    whole = [part for part in slices if part.refusal is None]
    at_once = max(len(whole), 1) if query.options.simultaneous else 1
    strengths = associations(whole, query.alpha / at_once)
    facts = [_facts(part, each) for part, each in zip(whole, strengths, strict=True)]
    return Findings(tuple(rows), (*said, *_said(whole, strengths)), {"association": facts})


def _said(parts: Sequence[Slice], strengths: Sequence[Finding]) -> Iterator[Remark]:
    """Yield the association of each table in words, if these are few."""
    if len(strengths) > _MOST_SAID:
        yield remark(Code.TABLES, tables=len(strengths))
        return
    for part, each in zip(parts, strengths, strict=True):
        place = ", ".join(part.dimensions.values())
        where = f", {place}" if place else ""
        yield remark(Code.TABLE, place=where, strength=in_words(each))
    if len(strengths) > 1:
        yield remark(Code.ALL_TABLES, tables=len(strengths))


def _table(part: Slice, domain: PairDomain, level: float, query: VerbQuery) -> list[Row]:
    """Return the rows of the cells, and of the margins."""
    names, at_once = _names(domain), query.options.simultaneous
    if part.refusal is not None:
        return refused_rows(part, names, query.alpha, simultaneous=at_once)
    slice_shares = Shares.of_slice(part)
    sums = slice_shares.groups(np.vstack(margins(domain.first.size, domain.second.size)), level)
    cells = widened(part, shares(part.metric.mechanism, part.tally, part.n, level), level)
    inside, beside = names[: domain.size], names[domain.size :]
    return [
        *rows_of(part, inside, cells, query.alpha, simultaneous=at_once),
        *rows_of(part, beside, sums, query.alpha, simultaneous=at_once, notes=slice_shares.notes),
    ]


@dataclass(frozen=True)
class Condition:
    """A row of a table of parts: its dimensions, whose devices count, and which of them it is of.

    ``whole`` is None for all devices.
    """

    names: Mapping[str, str]
    inside: Bools  # booleans, shape (items,)
    whole: Bools | None


def _conditions(domain: PairDomain, of: str) -> list[Condition]:
    """Return the rows for each value of the answer *of*, then for all, with each of the other."""
    groups = dict(zip(domain.names, margins(domain.first.size, domain.second.size), strict=True))
    (other,) = (name for name in domain.names if name != of)
    given = [*zip(domain.parts[of], groups[of], strict=True), (ALL, None)]
    return [
        Condition(
            {of: value, other: label, MEASURE: f"of each {of}"},
            inside if whole is None else inside & whole,
            whole,
        )
        for value, whole in given
        for label, inside in zip(domain.parts[other], groups[other], strict=True)
    ]


def _within(
    part: Slice, domain: PairDomain, level: float, query: VerbQuery, of: str
) -> Iterator[Row]:
    """Yield the rows of the parts, by Fieller's interval, or the reason why there is none."""
    at_once = query.options.simultaneous
    conditions = _conditions(domain, of)
    if part.refusal is not None:
        names = [condition.names for condition in conditions]
        yield from refused_rows(part, names, query.alpha, simultaneous=at_once)
        return
    cells = Shares.of_slice(part)
    for condition in conditions:
        if condition.whole is None:
            (estimate,) = cells.groups(condition.inside[None], level)
        elif (ratio := cells.ratio(condition.inside, condition.whole, level)) is not None:
            estimate = ratio
        else:
            name = [condition.names]
            no_group = remark(Code.NO_GROUP)
            yield from refused_rows(part, name, query.alpha, refusal=no_group, simultaneous=at_once)
            continue
        yield from rows_of(
            part,
            [condition.names],
            [estimate],
            query.alpha,
            simultaneous=at_once,
            notes=cells.notes,
        )


def _names(domain: PairDomain) -> list[Mapping[str, str]]:
    """Return the dimensions of the cells, of the rows and of the columns."""
    (a, first), (b, second) = domain.parts.items()
    return [
        *({a: x, b: y} for x in first for y in second),
        *({a: x, b: ALL} for x in first),
        *({a: ALL, b: y} for y in second),
    ]


def _require_free(part: Slice, names: Sequence[str]) -> None:
    if taken := set(names).intersection(part.dimensions):
        name = min(taken)
        raise QueryError("dimensions", f"{name} is the name of an answer, too; leave it out")


def _facts(part: Slice, table: Finding) -> dict[str, object]:
    """Return the association of a slice as facts."""
    place = {"dimensions": dict(part.dimensions)}
    if isinstance(table, Remark):
        return {**place, "cramers_v": None, "reason": table.text}
    domain: Any = part.metric.domain
    labels = domain.first.labels[table.cell[0]], domain.second.labels[table.cell[1]]
    return {
        **place,
        "cramers_v": table.value,
        "ci_low": table.ci_low,
        "ci_high": table.ci_high,
        "p_value": table.p_value,
        "p_value_alone": table.p_value_alone,
        "strongest": {
            **dict(zip(domain.names, labels, strict=True)),
            "difference": table.beyond.value,
            "ci_low": table.beyond.ci_low,
            "ci_high": table.beyond.ci_high,
        },
    }


def _apart(slices: Sequence[Slice], metrics: Sequence[Metric], query: VerbQuery) -> Findings:
    """Return the margins of two metrics and the bounds of both, in slices that both have."""
    first, second = metrics
    rows: list[Row] = []
    comparisons = len(slices) if query.options.simultaneous else 0
    others = {_key(part): part for part in slices if part.metric.address == second.address}
    for part in slices:
        other = others.get(_key(part))
        if part.metric.address == first.address and other is not None:
            _require_free(part, (first.address, second.address))
            rows += bounded(part, other, query.alpha, comparisons)
    names = {"first": first.address, "second": second.address}
    apart = remark(Code.COLLECTED_APART, **names, why=f"{APART.text}; {_DECLARE}")
    return Findings(tuple(rows), (apart,))


def _key(part: Slice) -> tuple[tuple[str, str], ...]:
    return tuple(part.dimensions.items())


def refusal(metric: Metric) -> str | None:
    """Answer pairs, records, and two metrics of items."""
    if metric.domain.encodes is ItemEncoding or is_of_records(metric):
        return None
    return f"has no single items to cross; {_DECLARE}"


def _words(metric: Metric, _: str) -> str:
    names = tuple(metric.domain.parts)
    pair = " and ".join(names) if len(names) == 2 else "each of the attributes and the label"
    return f"How do {pair} relate?"


VERB = Verb(
    answer,
    refusal,
    Options,
    most_metrics=2,
    most_slices=400,
    counts_attributes=True,
    chart=Chart.TABLE,
    title="Both answers together",
    offer=Offer(
        "How do two answers relate?",
        80,
        words=lambda metric, about: _words(metric, about) if metric.domain.parts else "",
        needs_partner=lambda metric: not metric.domain.parts,
        # Of two that were reported apart there are bounds only, so no pair is a likely one.
        may_pair=lambda _, other: not other.domain.parts,
        typed="relate together depend correlation correlate joint both cross crosstab associate",
    ),
)
