"""Post-processing: other numbers beside the unbiased ones, each named and with its promise.  Pure.

Nothing here costs privacy or looks at anything but estimates.  It trades bias for sense: the raw
number stays in the row, and the interval stays that of the raw number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...core.errors import QueryError
from ..rows import RAW, Row
from .base_cut import FALSE_KEEPS, base_cut
from .isotonic import isotonic
from .lattice import simplex_l1
from .simplex import simplex_l2

NORM_SUB, BASE_CUT = "norm_sub", "base_cut"
SIMPLEX_L2, SIMPLEX_L1, ISOTONIC = "simplex_l2", "simplex_l1", "isotonic"

PROMISES: Final = {
    RAW: "unbiased, and may be below 0 or above 1",
    NORM_SUB: "from 0, sums to 1: one constant is taken off every share, what falls below 0 is 0",
    BASE_CUT: "unchanged, or 0 where noise alone may be the reason; "
    f"keeps an item that nobody holds in at most {100 * FALSE_KEEPS:g} of 100 answers",
    SIMPLEX_L2: "from 0, sums to 1, nearest to the unbiased shares in squares: that is norm_sub",
    SIMPLEX_L1: "whole devices from 0, which sum to the reports; fewest devices moved",
    ISOTONIC: "from 0 to 1, never falls: nearest to the unbiased curve in squares over variances",
}
OF_PARTS: Final = (RAW, NORM_SUB, BASE_CUT, SIMPLEX_L2, SIMPLEX_L1)  # shares of one whole
OF_SEVERAL: Final = (RAW, BASE_CUT)  # shares of items of which a device may hold many
OF_CURVES: Final = (RAW, ISOTONIC)  # parts of the population up to rising thresholds
_TO_WHOLE: Final = (NORM_SUB, SIMPLEX_L2, SIMPLEX_L1)
_LEAST_ERROR: Final = 1e-6  # of the largest standard error: a number known for sure weighs so much


def apply(name: str, shares: Any, std_errors: Any, n: int) -> Any:
    """Return *shares* of *n* reports as *name*, one of PROMISES, promises; shape (k,) as given.

    Raises: QueryError: there is no post-processing *name*.
    """
    if name not in PROMISES:
        raise QueryError(f"postprocess: must be one of {', '.join(PROMISES)}")
    given = np.asarray(shares, dtype=np.float64)
    if name == RAW or not given.size:
        return given
    if name == BASE_CUT:
        return base_cut(given, std_errors)
    if name == ISOTONIC:
        return isotonic(given, _weights(std_errors))
    return simplex_l1(given * n, n) / n if name == SIMPLEX_L1 else simplex_l2(given)


def processed(rows: Sequence[Row], name: str, *, whole: bool = True) -> tuple[Row, ...]:
    """Return the raw share *rows* of one slice post-processed; each keeps its ``raw`` number.

    Intervals, standard errors and quality stay those of the raw number.  Rows of which one has no
    number are returned as they are.

    Args:   whole: the rows are all the items, as all but those of a boolean are, whose other item
                is what is left of 1 and gets no row.
    Raises: QueryError: there is no post-processing *name*.
    """
    raw = [row.value for row in rows if row.value is not None]
    errors = [row.std_error or 0.0 for row in rows]
    if name == RAW or len(raw) < len(rows) or not rows:
        return tuple(rows)
    if not whole and name in _TO_WHOLE:
        raw, errors = [*raw, 1 - sum(raw)], [*errors, 0.0]
    found = apply(name, raw, errors, rows[0].n).tolist()
    return tuple(
        replace(row, value=value, raw=row.value, postprocess=name)
        for row, value in zip(rows, found, strict=False)  # without what is left of 1
    )


def _weights(std_errors: Any) -> Any:
    """Return the inverse variances, or None for equal weights where nothing is known of them."""
    errors = np.asarray(std_errors, dtype=np.float64)
    largest = float(errors.max(initial=0.0))
    if not largest:
        return None
    return (largest / np.maximum(errors, _LEAST_ERROR * largest)) ** 2
