"""How two answers of the same devices go together: a table of both, with its margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from client_sdk.registry.joint_domains import PairDomain
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...estimation.estimate import shares
from ..items.apart import APART, bounded
from ..items.association import association, margins
from ..items.sums import Shares
from ..items.tables import refused_rows, rows_of
from ..repeats import widened
from ..rows import ALL, Findings, Row
from ..slices import Asked, Slice
from ..verb import Verb

DECLARE: Final = 'declare type = "pair" to see which answers go together'


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the intervals of all rows are to hold at once."""

    simultaneous: bool = False


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with a row a cell and a row a margin of each slice, and the association in facts.

    The dimensions of a row are both names.  Of two metrics that were collected apart there are
    the margins, and bounds of each cell: a table between them is in no reports.

    Raises: QueryError: one metric that is no pair, or a name that is a dimension, too.
    """
    metrics = list({one.metric.name: one.metric for one in slices}.values())
    if len(metrics) == 2:
        return _apart(slices, metrics, asked)
    if not metrics:
        return Findings(())
    domain = metrics[0].domain
    if not isinstance(domain, PairDomain):
        raise QueryError(
            f"metrics: {metrics[0].name} is one answer; name two that have reports, or {DECLARE}"
        )
    rows: list[Row] = []
    facts: list[dict[str, Any]] = []
    size = domain.size + domain.first.size + domain.second.size
    level = asked.alpha / (size * len(slices) if asked.options.simultaneous else 1)
    for one in slices:
        _require_free(one, domain.names)
        rows += _table(one, domain, level, asked)
        if one.refusal is None:
            facts.append({"dimensions": dict(one.dimensions), **_told(one, domain, asked.alpha)})
    return Findings(tuple(rows), facts={"association": facts})


def _table(one: Slice, domain: PairDomain, level: float, asked: Asked) -> list[Row]:
    """Return the rows of the cells, and of the margins."""
    names, at_once = _names(domain), asked.options.simultaneous
    if one.refusal is not None:
        return refused_rows(one, names, asked.alpha, simultaneous=at_once)
    found = Shares.of_slice(one)
    sums = found.groups(np.vstack(margins(domain.first.size, domain.second.size)), level)
    cells = widened(one, shares(one.metric.mechanism, one.tally, one.n, level))
    inside, beside = names[: domain.size], names[domain.size :]
    return [
        *rows_of(one, inside, cells, asked.alpha, simultaneous=at_once),
        *rows_of(one, beside, sums, asked.alpha, simultaneous=at_once, note=found.note),
    ]


def _names(domain: PairDomain) -> list[Mapping[str, str]]:
    """Return the dimensions of the cells, of the rows and of the columns."""
    (a, first), (b, second) = domain.parts.items()
    return [
        *({a: x, b: y} for x in first for y in second),
        *({a: x, b: ALL} for x in first),
        *({a: ALL, b: y} for y in second),
    ]


def _require_free(one: Slice, names: Sequence[str]) -> None:
    if taken := set(names).intersection(one.dimensions):
        name = min(taken)
        raise QueryError(f"dimensions: {name} is the name of an answer, too; leave it out")


def _told(one: Slice, domain: PairDomain, alpha: float) -> dict[str, Any]:
    """Return the association as facts."""
    cells = Shares.of_slice(one)
    found = association(cells, domain.first.size, domain.second.size, alpha)
    if isinstance(found, str):
        return {"cramers_v": None, "reason": found}
    labels = domain.first.labels[found.cell[0]], domain.second.labels[found.cell[1]]
    return {
        "cramers_v": found.value,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "p_value": found.p_value,
        "strongest": {
            **dict(zip(domain.names, labels, strict=True)),
            "difference": found.beyond.value,
            "ci_low": found.beyond.ci_low,
            "ci_high": found.beyond.ci_high,
        },
    }


def _apart(slices: Sequence[Slice], metrics: Sequence[Metric], asked: Asked) -> Findings:
    """Return the margins of two metrics and the bounds of both, in slices that both have."""
    first, second = metrics
    rows: list[Row] = []
    comparisons = len(slices) if asked.options.simultaneous else 0
    others = {_key(one): one for one in slices if one.metric.name == second.name}
    for one in slices:
        other = others.get(_key(one))
        if one.metric.name == first.name and other is not None:
            _require_free(one, (first.name, second.name))
            rows += bounded(one, other, asked.alpha, comparisons)
    return Findings(tuple(rows), (f"{first.name} and {second.name}: {APART}; {DECLARE}",))


def _key(one: Slice) -> tuple[tuple[str, str], ...]:
    return tuple(one.dimensions.items())


def refusal(metric: Metric) -> str | None:
    """Answer pairs, and two metrics of items."""
    if metric.domain.encodes is int:
        return None
    return f"has no single items to cross; {DECLARE}"


VERB = Verb(answer, refusal, Options, most_metrics=2, most_slices=400)
