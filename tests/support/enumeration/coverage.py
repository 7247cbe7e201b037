"""How often intervals hold a truth, and whether that rate fits the stated one.

The bound holds for every number of trials.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import Mechanism

FALSE_ALARM = 1e-9  # chance, over seeds, that a rate which is right is called wrong
Z: Final = 1.959963984540054  # 95 %


def covered(
    mechanism: Mechanism[Any], tallies: Iterable[Any], n: int, truth: Any, *, shrunk: float = 1.0
) -> Any:
    """Return the share of 95 % intervals of each total that hold the *truth*.

    Args: tallies: of *n* reports each.  shrunk: a factor of the stated variances.
    """
    found = [mechanism.debias(tally, n, np) for tally in tallies]
    totals, variances = (np.array(part) for part in zip(*found, strict=True))
    return (np.abs(totals - truth) <= Z * np.sqrt(shrunk * variances)).mean(axis=0)


def fits_rate(hits: int, trials: int, rate: float) -> bool:
    """Return whether *hits* of *trials* may come from *rate*.

    Source: Hoeffding, JASA 1963, theorem 1: Pr[divergence >= t] <= 2 exp(-trials t).
    """
    return trials * _divergence(hits / trials, rate) <= log(2 / FALSE_ALARM)


def _divergence(found: float, rate: float) -> float:
    """Return the Kullback-Leibler divergence of two coins, in nats."""
    sides = ((found, rate), (1 - found, 1 - rate))
    return sum(a * log(a / b) for a, b in sides if a)
