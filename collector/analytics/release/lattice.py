"""The nearest histogram that n devices can have: whole counts, not negative, that sum to n.  Pure.

Nearest is in L1, the number of devices by which the counts differ.  Many histograms are equally
near: when the positive counts c sum to more than n, any that lies below all of them is.  A linear
program returns some corner of that set.  We return the one that is also nearest in L2; of several
such, that which favours the earlier items.

Proof: both distances are sums over items of convex functions, so a nearest point is reached by n
    steps, each of which adds one device to the item where that changes the distance least.  Adding
    the (j+1)-th device to an item of count c changes the square by 2(j - c) + 1, which orders steps
    by their key j - c, and changes the absolute value by -1 if the key is at most -1, by 2 key + 1
    between -1 and 0, by 1 from 0 on: it never falls as the key rises.  So the n steps of the least
    keys are best for both.  Let y = max(c - s, 0) be the nearest real point.  The keys of at most
    -s - 1 are the first floor(y) steps of each item; the next key of an item with y > 0 is -s less
    the fractional part of y, and without y it is at least -s.  So the rest of n goes to the largest
    fractional parts.
Source: Wang et al., NDSS 2020, for projecting shares; the lattice and the proof are ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .simplex import simplex_l2


def simplex_l1(counts: Any, n: int) -> Any:
    """Return whole counts that are not negative, sum to *n* >= 0 and are nearest to *counts*.

    Args:    counts: finite, in devices, shape (k,) with k > 0.
    Returns: int64, shape (k,).
    """
    given = np.asarray(counts, dtype=np.float64)
    if n == 0:
        return np.zeros(given.size, dtype=np.int64)
    near = simplex_l2(given, float(n))
    whole = np.floor(near).astype(np.int64)
    order = np.argsort(whole - near, kind="stable")
    whole[order[: n - int(whole.sum())]] += 1
    return whole
