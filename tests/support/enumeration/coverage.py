"""Whether an observed rate fits a stated one: a bound that holds for every number of trials."""

from __future__ import annotations

from math import log

FALSE_ALARM = 1e-9  # chance, over seeds, that a rate which is right is called wrong


def fits_rate(hits: int, trials: int, rate: float) -> bool:
    """Return whether *hits* of *trials* may come from *rate*.

    Source: Hoeffding, JASA 1963, theorem 1: Pr[divergence >= t] <= 2 exp(-trials t).
    """
    return trials * _divergence(hits / trials, rate) <= log(2 / FALSE_ALARM)


def _divergence(found: float, rate: float) -> float:
    """Return the Kullback-Leibler divergence of two coins, in nats."""
    sides = ((found, rate), (1 - found, 1 - rate))
    return sum(a * log(a / b) for a, b in sides if a)
