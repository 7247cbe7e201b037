"""How strongly two answers of a table go together: Cramér's V with its interval.  Pure.

With f_ij the share of a cell, r_i and c_j those of its row and its column, d_ij = f_ij - r_i c_j is
0 everywhere if the answers are independent.  Its error is that of the weighted sum of shares with
+1 at the cell, less r_i over the column and c_j over the row (the delta method), so the noise of
all cells and how they depend on each other is in it.  Cramér's V is the root of the sum of
d^2 / (r c) over the fewer of rows and columns less 1.  Noise alone makes that sum positive: the
variance of each d is taken off.  The interval of V follows from intervals of all d that hold at
once (Bonferroni), so it is wider than it would have to be; margins are taken as estimated.  So is
p, the smallest of all d times their number.  Of several tables p is Holm's, which counts all.

Source: Cramér, *Mathematical Methods of Statistics*, 1946; Holm, Scandinavian Journal of Statistics
    1979; the rest is derived here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import erfc, sqrt
from typing import Final, TypeAlias

import numpy as np

from ..core.remarks import Code, Remark, remark
from ..estimation.arrays import Bools, Floats
from ..estimation.estimate import Estimate, normal_quantile
from ..estimation.significance import holm
from .sums import Shares
from .verb import Slice

_MOST_CELLS: Final = 1_024  # of a table; the errors of more take too long
_LEAST_P: Final = 1e-4  # below which words give no digits


@dataclass(frozen=True)
class Association:
    """Cramér's V with its interval, how likely so much is by noise, and the strongest cell.

    ``p_value`` counts all tables that were looked at together, ``p_value_alone`` only this one.
    """

    value: float
    ci_low: float
    ci_high: float
    p_value: float
    p_value_alone: float
    cell: tuple[int, int]  # row and column, of the table as given
    beyond: Estimate  # the share of that cell less that of independent answers


def margins(rows: int, columns: int) -> tuple[Bools, Bools]:
    """Return the members of every row and of every column, shape (rows or columns, cells)."""
    cells = np.arange(rows * columns)
    return (
        cells // columns == np.arange(rows)[:, None],
        cells % columns == np.arange(columns)[:, None],
    )


def association(shares: Shares, rows: int, columns: int, alpha: float) -> Association | Remark:
    """Return how strongly rows and columns of a table go together, or why it cannot be told.

    Rows and columns that perhaps nobody is in are left out.

    Args: shares: of rows * columns items, row by row.
    """
    if rows * columns > _MOST_CELLS:
        return remark(Code.TOO_MANY_CELLS, most=_MOST_CELLS)
    of_rows, of_columns = margins(rows, columns)
    kept_rows, kept_columns = (
        _sure_groups(shares, members, alpha) for members in (of_rows, of_columns)
    )
    least = min(len(kept_rows), len(kept_columns))
    if least < 2:
        return remark(Code.TOO_FEW_GROUPS)
    r, c = of_rows @ shares.values, of_columns @ shares.values
    places = [(i, j) for i in kept_rows for j in kept_columns]
    weights = np.array([_weights(of_rows[i], of_columns[j], r[i], c[j]) for i, j in places])
    deviations = np.array([shares.values[i * columns + j] - r[i] * c[j] for i, j in places])
    errors = np.sqrt(shares.variances(weights) + shares.drawn * shares.spreads(weights))
    expected = np.array([r[i] * c[j] for i, j in places])
    comparisons = _distinct(len(kept_rows)) * _distinct(len(kept_columns))
    reach = normal_quantile(alpha / comparisons) * errors
    low, high = np.maximum(np.abs(deviations) - reach, 0), np.abs(deviations) + reach
    value = max(float(((deviations**2 - errors**2) / expected).sum()), 0.0)
    ends = [float((end**2 / expected).sum()) for end in (low, high)]
    limits = [min(sqrt(end / (least - 1)), 1.0) for end in ends]
    best = int(np.argmax(np.abs(deviations) / np.maximum(errors, np.finfo(float).tiny)))
    beyond = Estimate(
        *(float(x[best]) for x in (deviations, errors, deviations - reach, deviations + reach))
    )
    p = min(comparisons * erfc(abs(beyond.value) / max(beyond.std_error, 1e-300) / sqrt(2)), 1.0)
    middle = min(max(sqrt(value / (least - 1)), limits[0]), limits[1])
    return Association(middle, limits[0], limits[1], p, p, places[best], beyond)


def _sure_groups(shares: Shares, members: Bools, alpha: float) -> list[int]:
    """Return the groups whose share is surely above 0."""
    return [i for i, estimate in enumerate(shares.groups(members, alpha)) if estimate.ci_low > 0]


def _weights(row: Bools, column: Bools, r: float, c: float) -> Floats:
    rows, columns = row.astype(np.float64), column.astype(np.float64)
    return rows * columns - c * rows - r * columns


def _distinct(count: int) -> int:
    """Return how many of *count* rows differ: of two, one is the other with the sign turned."""
    return 1 if count == 2 else count


Finding: TypeAlias = Association | Remark  # or why it cannot be told


def associations(tables: Sequence[Slice], alpha: float) -> list[Finding]:
    """Return the association of each slice of a pair; p-values count all of them (Holm)."""
    findings = [_of(part, alpha) for part in tables]
    sure = [each for each in findings if isinstance(each, Association)]
    corrected = iter(holm([each.p_value_alone for each in sure]))
    return [
        replace(each, p_value=next(corrected)) if isinstance(each, Association) else each
        for each in findings
    ]


def _of(part: Slice, alpha: float) -> Finding:
    rows, columns = map(len, part.metric.domain.parts.values())
    return association(Shares.of_slice(part), rows, columns, alpha)


def in_words(finding: Finding) -> str:
    """Return an association with its interval, or why there is none."""
    if isinstance(finding, Remark):
        return finding.text
    return words_of(finding.value, finding.ci_low, finding.ci_high, finding.p_value)


def words_of(value: float, low: float, high: float, p_value: float) -> str:
    """Return Cramér's V with the ends of its interval, and p."""
    chance = f"below {_LEAST_P:g}" if p_value < _LEAST_P else f"{p_value:.2g}"
    return f"{value:.2f} ({low:.2f} to {high:.2f}), where 1 is fully (Cramér's V); p {chance}"
