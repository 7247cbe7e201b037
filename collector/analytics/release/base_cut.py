"""Only the shares that noise alone would hardly give.  Pure.

Source: Wang et al., NDSS 2020: Base-Cut; the level is that of Erlingsson, Pihur, Korolova, CCS
    2014, who correct for as many tests as there are items (Bonferroni).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Final

import numpy as np

FALSE_KEEPS: Final = 0.05  # at most the chance that any item which nobody holds is kept


def base_cut(shares: Any, std_errors: Any) -> Any:
    """Return *shares* with 0 in place of those below the threshold; the others are as they were.

    The threshold of k shares is z standard errors, with 1 - FALSE_KEEPS/k of a normal below z.

    Args: shares, std_errors: shape (k,), in the same unit.
    """
    given = np.asarray(shares, dtype=np.float64)
    z = NormalDist().inv_cdf(1 - FALSE_KEEPS / max(given.size, 1))
    return np.where(given >= z * np.asarray(std_errors, dtype=np.float64), given, 0.0)
