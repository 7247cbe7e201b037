"""The nearest shares that are not negative and sum to 1.  Pure.

Source: Held, Wolfe, Crowder, Mathematical Programming 1974: the threshold from sorted values; also
    Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, figure 1.
Proof: by the conditions of Karush, Kuhn and Tucker the nearest point is max(v - shift, 0) for the
    one shift with which it sums to the total.  With the r largest values above the shift it is
    (their sum - total) / r, and r is the most for which the r-th largest value still is above it.

That is "subtract a constant, cut at 0" too, which Wang et al., NDSS 2020, call Norm-Sub and find
to be the constrained least squares: one point under two names.  Code that cuts at 0 first, and then
shifts only what is left, gives another point, further away, where what is left sums to less than 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def simplex_l2(values: Any, total: float = 1.0) -> Any:
    """Return the point nearest to *values* that is not negative and sums to *total* > 0.

    Args: values: finite, shape (k,) with k > 0, in the unit of *total*.
    """
    given = np.asarray(values, dtype=np.float64)
    given = given - given.max()  # alike for the answer, and the total is never lost beside it
    ordered = np.sort(given)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    above = np.flatnonzero(ordered > shifts)
    return np.maximum(given - shifts[above[-1]], 0.0)
