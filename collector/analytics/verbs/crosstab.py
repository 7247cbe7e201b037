"""How two answers of the same devices go together: a table of both, with its margins.

Whether two answers of the same devices go together, beyond noise.  Pure.

With f_ij the share of a cell, r_i and c_j those of its row and its column, d_ij = f_ij - r_i c_j is
0 everywhere if the answers are independent.  Its error is that of the weighted sum of shares with
+1 at the cell, less r_i over the column and c_j over the row (the delta method), so the noise of
all cells and how they depend on each other is in it.

Cramér's V is the root of the sum of d^2 / (r c) over the fewer of rows and columns less 1.  Noise
alone makes that sum positive: the variance of each d is taken off.  The interval of V follows from
intervals of all d that hold at once (Bonferroni), so it is wider than it would have to be; margins
are taken as estimated.  So is p, the smallest of all d times their number.

Source: Cramér, *Mathematical Methods of Statistics*, 1946, for V; the rest is derived here.

The table of two answers that were collected apart: its margins, and bounds of its cells.  Pure.

Whether the same devices gave both answers is not in the reports, and no analysis brings it back.
With shares a and b of the two answers, the share of both lies between max(0, a + b - 1) and
min(a, b), and may be anywhere between: so a row has these bounds and no number.

Source: Fréchet, Annales de l'Université de Lyon 1951: the bounds, which cannot be improved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Any, Final

import numpy as np
from msgspec import Struct

from client_sdk.registry.joint_domains import PairDomain
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...estimation.estimate import Estimate, normal_quantile, shares
from ..rows import ALL, SHARE, Findings, Row, empty_row
from ..sums import Shares
from ..verb import Asked, Slice, Verb, refused_rows, rows_of, widened

MOST_CELLS: Final = 1_024  # of a table; the errors of more take too long


@dataclass(frozen=True)
class Association:
    """Cramér's V with its interval, how likely so much is by noise, and the strongest cell."""

    value: float
    ci_low: float
    ci_high: float
    p_value: float
    cell: tuple[int, int]  # row and column, of the table as given
    beyond: Estimate  # the share of that cell less that of independent answers


def margins(rows: int, columns: int) -> tuple[Any, Any]:
    """Return the members of every row and of every column, shape (rows or columns, cells)."""
    cells = np.arange(rows * columns)
    return (
        cells // columns == np.arange(rows)[:, None],
        cells % columns == np.arange(columns)[:, None],
    )


def association(shares: Shares, rows: int, columns: int, alpha: float) -> Association | str:
    """Return how strongly rows and columns of a table go together, or why it cannot be told.

    Rows and columns that perhaps nobody is in are left out.

    Args: shares: of rows * columns items, row by row.
    """
    if rows * columns > MOST_CELLS:
        return f"the table has more than {MOST_CELLS} cells"
    of_rows, of_columns = margins(rows, columns)
    kept_rows, kept_columns = (_known(shares, members, alpha) for members in (of_rows, of_columns))
    least = min(len(kept_rows), len(kept_columns))
    if least < 2:
        return "not enough reports: fewer than two rows or columns are surely above zero"
    r, c = of_rows @ shares.values, of_columns @ shares.values
    places = [(i, j) for i in kept_rows for j in kept_columns]
    weights = np.array([_weights(of_rows[i], of_columns[j], r[i], c[j]) for i, j in places])
    found = np.array([shares.values[i * columns + j] - r[i] * c[j] for i, j in places])
    errors = np.sqrt(shares.variances(weights))
    expected = np.array([r[i] * c[j] for i, j in places])
    comparisons = _distinct(len(kept_rows)) * _distinct(len(kept_columns))
    reach = normal_quantile(alpha / comparisons) * errors
    low, high = np.maximum(np.abs(found) - reach, 0), np.abs(found) + reach
    value = max(float(((found**2 - errors**2) / expected).sum()), 0.0)
    ends = [float((end**2 / expected).sum()) for end in (low, high)]
    limits = [min(sqrt(end / (least - 1)), 1.0) for end in ends]
    best = int(np.argmax(np.abs(found) / np.maximum(errors, np.finfo(float).tiny)))
    beyond = Estimate(*(float(x[best]) for x in (found, errors, found - reach, found + reach)))
    p = min(comparisons * erfc(abs(beyond.value) / max(beyond.std_error, 1e-300) / sqrt(2)), 1.0)
    middle = min(max(sqrt(value / (least - 1)), limits[0]), limits[1])
    return Association(middle, limits[0], limits[1], p, places[best], beyond)


def _known(shares: Shares, members: Any, alpha: float) -> list[int]:
    """Return the groups whose share is surely above 0."""
    return [i for i, found in enumerate(shares.groups(members, alpha)) if found.ci_low > 0]


def _weights(row: Any, column: Any, r: float, c: float) -> Any:
    return 1.0 * (row & column) - c * row - r * column


def _distinct(count: int) -> int:
    """Return how many of *count* rows differ: of two, one is the other with the sign turned."""
    return 1 if count == 2 else count


APART: Final = "the two were collected apart, so no more than bounds of both together is known"


def bounded(one: Slice, other: Slice, alpha: float, tables: int = 0) -> list[Row]:
    """Return a row for each item of *one* with each of *other*, then those of both margins.

    The bounds of a cell hold with 1 - *alpha*, as both its margins do with half of it.

    Args: tables: whose intervals are to hold at once with those of this one; 0: each for itself.
    """
    first, second = one.metric.name, other.metric.name
    cells = [{first: x, second: y} for x in _labels(one) for y in _labels(other)]
    rows = [{first: x, second: ALL} for x in _labels(one)]
    columns = [{first: ALL, second: y} for y in _labels(other)]
    refusal = one.refusal or other.refusal
    if refusal is not None:
        names: Sequence[Mapping[str, str]] = [*cells, *rows, *columns]
        return refused_rows(one, names, alpha, reason=refusal, simultaneous=tables > 0)
    margins = (len(rows) + len(columns)) * tables
    inside = [_shares(part, alpha / (margins or 2)) for part in (one, other)]
    beside = [_shares(part, alpha / (margins or 1)) for part in (one, other)]
    n, is_open = min(one.n, other.n), one.is_open or other.is_open
    more = {"simultaneous": tables > 0, "is_open": is_open}
    ends = [_between(a, b) for a in inside[0] for b in inside[1]]
    return [
        *(
            empty_row({**one.dimensions, **name}, n, alpha, SHARE, APART, ends=end, **more)
            for name, end in zip(cells, ends, strict=True)
        ),
        *rows_of(one, rows, beside[0], alpha, simultaneous=tables > 0),
        *rows_of(other, columns, beside[1], alpha, simultaneous=tables > 0),
    ]


def _between(a: Estimate, b: Estimate) -> tuple[float, float]:
    """Return the bounds of what is in both shares, wherever these are in their intervals."""
    low = max(0.0, a.ci_low + b.ci_low - 1)
    return low, max(low, min(1.0, a.ci_high, b.ci_high))


def _shares(one: Slice, alpha: float) -> list[Estimate]:
    return widened(one, shares(one.metric.mechanism, one.tally, one.n, alpha))


def _labels(one: Slice) -> tuple[str, ...]:
    return one.metric.domain.labels


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
    for part in slices:
        _require_free(part, domain.names)
        rows += _table(part, domain, level, asked)
        if part.refusal is None:
            facts.append({"dimensions": dict(part.dimensions), **_told(part, domain, asked.alpha)})
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
    for part in slices:
        other = others.get(_key(part))
        if part.metric.name == first.name and other is not None:
            _require_free(part, (first.name, second.name))
            rows += bounded(part, other, asked.alpha, comparisons)
    return Findings(tuple(rows), (f"{first.name} and {second.name}: {APART}; {DECLARE}",))


def _key(one: Slice) -> tuple[tuple[str, str], ...]:
    return tuple(one.dimensions.items())


def refusal(metric: Metric) -> str | None:
    """Answer pairs, and two metrics of items."""
    if metric.domain.encodes is int:
        return None
    return f"has no single items to cross; {DECLARE}"


VERB = Verb(answer, refusal, Options, most_metrics=2, most_slices=400)
