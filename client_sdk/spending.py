"""The most that metrics can cost a person within caps, in epsilon, before anything is reported."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from .caps import NANO_DECIMALS, PICO_DECIMALS, Caps
from .dataclass import dataclass
from .epoch import ONCE
from .metric import Metric

NANO: Final = 10**NANO_DECIMALS  # nano-epsilon of one epsilon

_A_DAY: Final = {"1h": 24, "1d": 1, "7d": 1, ONCE: 1}  # reports at most
_A_WEEK: Final = {"1h": 168, "1d": 7, "7d": 2, ONCE: 1}  # in any seven days: Sunday and Monday


@dataclass(frozen=True)
class Spending:
    """Upper bounds in nano-epsilon, over some metrics together."""

    day: int
    week: int  # any seven days
    lifetime: int


def reports(metric: Metric, caps: Caps) -> bool:
    """Whether *metric* ever reports within *caps*."""
    least = min(caps.report, caps.metric_week, caps.week, caps.lifetime)
    delta = metric.mechanism.delta * 10**PICO_DECIMALS
    return metric.most_nano <= least and delta <= caps.delta


def most(metrics: Iterable[Metric], caps: Caps) -> Spending:
    """Return what *metrics* together can cost at most within *caps*."""
    costs = [(metric.most_nano, metric.every) for metric in metrics if reports(metric, caps)]
    weeks = (min(caps.metric_week, nano * _A_WEEK[every]) for nano, every in costs)
    week = min(caps.week, caps.lifetime, sum(weeks))
    days = (min(caps.metric_week, nano * _A_DAY[every]) for nano, every in costs)
    day = min(week, sum(days))
    ended = all(every == ONCE for _, every in costs)
    return Spending(day, week, min(caps.lifetime, week) if ended else caps.lifetime)


def epsilon(nano: int) -> str:
    """Return nano-epsilon as people read it: rounded up to a hundredth."""
    hundredths = -(-nano * 100 // NANO)
    return f"{hundredths // 100:,}.{hundredths % 100:02}".rstrip("0").rstrip(".")


def factor(nano: int) -> str:
    """Return e^epsilon, by how much odds can shift, rounded up; huge ones in words."""
    if nano > 20 * NANO:
        return "more than a hundred million"
    shift = math.exp(nano / NANO)
    return f"{math.ceil(10 * shift) / 10:,.1f}" if shift < 100 else f"{math.ceil(shift):,}"


def sureness(nano: int) -> str:
    """Return how often, of 100 times, the best guess between two stories is right; rounded up."""
    return f"{min(math.ceil(100 / (1 + math.exp(-nano / NANO))), 100)}"
