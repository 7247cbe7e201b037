"""Post-processing: other numbers beside the unbiased ones, each named and with its promise.  Pure.

Nothing here costs privacy or looks at anything but estimates.  It trades bias for sense: the raw
number stays in the row, and the interval stays that of the raw number.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike

from ..core.errors import QueryError
from ..estimation.arrays import Floats, Ints
from .monotone import isotonic, weights_of
from .rows import RAW, Row

FALSE_KEEPS: Final = 0.05  # at most the chance that any item which nobody holds is kept
_NORM_SUB, _BASE_CUT = "norm_sub", "base_cut"
_SIMPLEX_L2, _SIMPLEX_L1, _ISOTONIC = "simplex_l2", "simplex_l1", "isotonic"
PROMISES: Final = {
    RAW: "unbiased, and may be below 0 or above 1",
    _NORM_SUB: "from 0, sums to 1: one constant is taken off every share, what falls below 0 is 0",
    _BASE_CUT: "unchanged, or 0 where noise alone may be the reason; "
    f"keeps an item that nobody holds in at most {100 * FALSE_KEEPS:g} of 100 answers",
    _SIMPLEX_L2: "from 0, sums to 1, nearest to the unbiased shares in squares: that is norm_sub",
    _SIMPLEX_L1: "whole devices from 0, which sum to the reports; fewest devices moved",
    _ISOTONIC: "from 0 to 1, never falls: nearest to the unbiased curve in squares over variances",
}
OF_PARTS: Final = (RAW, _NORM_SUB, _BASE_CUT, _SIMPLEX_L2, _SIMPLEX_L1)  # shares of one whole
OF_SEVERAL: Final = (RAW, _BASE_CUT)  # shares of items of which a device may hold many
OF_CURVES: Final = (RAW, _ISOTONIC)  # parts of the population up to rising thresholds
_TO_WHOLE: Final = (_NORM_SUB, _SIMPLEX_L2, _SIMPLEX_L1)


def simplex_l2(values: ArrayLike, total: float = 1.0) -> Floats:
    """Return the point nearest to *values* that is not negative and sums to *total* > 0.

    Args:   values: finite, shape (k,) with k > 0, in the unit of *total*.
    Source: Held, Wolfe, Crowder, Mathematical Programming 1974: the threshold from sorted values;
            also Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, figure 1.
    Proof:  by the conditions of Karush, Kuhn and Tucker the nearest point is max(v - shift, 0) for
            the one shift with which it sums to the total.  With the r largest values above the
            shift it is (their sum - total) / r, and r is the most for which the r-th largest value
            still is above it.

    That is "subtract a constant, cut at 0" too, which Wang et al., NDSS 2020, call Norm-Sub and
    find to be the constrained least squares: one point under two names.  Code that cuts at 0 first,
    and then shifts only what is left, gives another point, further away, where what is left sums
    to less than 1.
    """
    point = np.asarray(values, dtype=np.float64)
    point = point - point.max()  # alike for the answer, and the total is never lost beside it
    ordered = np.sort(point)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    above = np.flatnonzero(ordered > shifts)
    nearest: Floats = np.maximum(point - shifts[above[-1]], 0.0)
    return nearest


def simplex_l1(counts: ArrayLike, n: int) -> Ints:
    """Return whole counts that are not negative, sum to *n* >= 0 and are nearest to *counts*.

    Nearest is in L1, the number of devices by which the counts differ.  Many histograms are equally
    near: when the positive counts c sum to more than n, any that lies below all of them is.  A
    linear program returns some corner of that set.  This is the one that is also nearest in L2; of
    several such, that which favours the earlier items.

    Args:    counts: finite, in devices, shape (k,) with k > 0.
    Returns: int64, shape (k,).
    Proof:   both distances are sums over items of convex functions, so a nearest point is reached
             by n steps, each of which adds one device to the item where that changes the distance
             least.  Adding the (j+1)-th device to an item of count c changes the square by
             2(j - c) + 1, which orders steps by their key j - c, and changes the absolute value by
             -1 if the key is at most -1, by 2 key + 1 between -1 and 0, by 1 from 0 on: it never
             falls as the key rises.  So the n steps of the least keys are best for both.  Let
             y = max(c - s, 0) be the nearest real point.  The keys of at most -s - 1 are the first
             floor(y) steps of each item; the next key of an item with y > 0 is -s less the
             fractional part of y, and without y it is at least -s.  So the rest of n goes to the
             largest fractional parts.
    Source:  Wang et al., NDSS 2020, for projecting shares; the lattice and the proof are ours.
    """
    point = np.asarray(counts, dtype=np.float64)
    if n == 0:
        return np.zeros(point.size, dtype=np.int64)
    near = simplex_l2(point, float(n))
    whole = np.floor(near).astype(np.int64)
    order = np.argsort(whole - near, kind="stable")
    whole[order[: n - int(whole.sum())]] += 1
    return whole


def base_cut(shares: ArrayLike, std_errors: ArrayLike) -> Floats:
    """Return *shares* with 0 in place of those below the threshold; the others are as they were.

    The threshold of k shares is z standard errors, with 1 - FALSE_KEEPS/k of a normal below z.

    Args:   shares, std_errors: shape (k,), in the same unit.
    Source: Wang et al., NDSS 2020: Base-Cut; the level is that of Erlingsson, Pihur, Korolova, CCS
            2014, who correct for as many tests as there are items (Bonferroni).
    """
    raw = np.asarray(shares, dtype=np.float64)
    z = NormalDist().inv_cdf(1 - FALSE_KEEPS / max(raw.size, 1))
    return np.where(raw >= z * np.asarray(std_errors, dtype=np.float64), raw, 0.0)


def apply(name: str, shares: ArrayLike, std_errors: ArrayLike, n: int) -> Floats:
    """Return *shares* of *n* reports as *name*, one of PROMISES, promises; shape (k,) as given.

    Raises: QueryError: there is no post-processing *name*.
    """
    if name not in PROMISES:
        raise QueryError("postprocess", f"must be one of {', '.join(PROMISES)}")
    raw = np.asarray(shares, dtype=np.float64)
    if name == RAW or not raw.size:
        return raw
    if name == _BASE_CUT:
        return base_cut(raw, std_errors)
    if name == _ISOTONIC:
        errors = np.asarray(std_errors, dtype=np.float64).tolist()
        return np.array(isotonic(raw.tolist(), weights_of(errors)))
    return simplex_l1(raw * n, n) / n if name == _SIMPLEX_L1 else simplex_l2(raw)


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
    numbers = apply(name, raw, errors, rows[0].n).tolist()
    return tuple(
        replace(row, value=value, raw=row.value, postprocess=name)
        for row, value in zip(rows, numbers, strict=False)  # without what is left of 1
    )
