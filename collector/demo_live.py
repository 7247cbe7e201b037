"""Reports that arrive while the pages of the demo are watched: past days, then a few a second."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Final

from client_sdk.core.epoch import DAY
from client_sdk.core.limits import MAX_REPORT_AGE
from client_sdk.registry.registry import Registry
from client_sdk.upload.transport import Transport

from .demo_people import Person, population
from .simulate import visits

PAST_DAYS: Final = MAX_REPORT_AGE - 1  # a report is taken for so long, even around midnight
A_DAY: Final = 1_100  # devices of a past day: just enough for its answer to have a number
PER_SECOND: Final = 3  # devices after that; some hundredths of a processor
_AT_ONCE: Final = 500  # people drawn together


def bring_past_days(
    registry: Registry,
    transport: Transport,
    chance: random.Random,
    alive: Callable[[], None],
    progress: Callable[[int], None],
    a_day: int = A_DAY,
) -> None:
    """Let *a_day* devices report on each of the past days, the earliest first, by clocks set back.

    Args: alive: called after every device, to raise if the demo is to end.
          progress: is told how many days are done.
    """
    now = time.time()
    for days_ago in range(PAST_DAYS, 0, -1):
        people = population(a_day, chance, days_ago)
        for _ in visits(people, registry, transport, _stopped_at(now - days_ago * DAY)):
            alive()
        progress(PAST_DAYS - days_ago + 1)


def go_on(
    registry: Registry,
    transport: Transport,
    chance: random.Random,
    alive: Callable[[], None],
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Let one more device after another report, PER_SECOND on average, until *alive* raises."""
    for _ in visits(_passers_by(chance), registry, transport):
        pause(chance.expovariate(PER_SECOND))
        alive()


def _stopped_at(seconds: float) -> Callable[[], float]:
    """Return a clock that shows the Unix time *seconds*."""
    return lambda: seconds


def _passers_by(chance: random.Random) -> Iterator[Person]:
    while True:
        yield from population(_AT_ONCE, chance)
