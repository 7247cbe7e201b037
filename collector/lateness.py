"""Lateness: how long after the end of its epoch a report is folded, in a few closed classes.  Pure.

Class c ends on a day that is known beforehand; from then on nothing is added to it.  Version v of
a window is the sum of the classes 0 to v, so once published it gives the same integers for ever.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from client_sdk.core.epoch import DAY, ONCE, day_of, epoch_start
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE

# Days after the last day of an epoch up to which a fold is of class 0, 1, 2, 3.  The last one is
# the horizon: an upload is taken MAX_REPORT_AGE after its sealing, its reports were made as long
# before it, and a day is left to fold them.
LAST_DAYS: Final = (1, 3, 7, 2 * MAX_REPORT_AGE + 1)
LAST_VERSION: Final = len(LAST_DAYS) - 1
BEYOND: Final = len(LAST_DAYS)  # folded after the horizon, by a worker long away: in no version
# Seconds that a clock which publishes may be ahead of the store's, which decides the class.
MARGIN: Final = 3_600


def ends(every: str, epoch: int) -> tuple[int, ...]:
    """Return the Unix times at which the classes 0, 1, … of *epoch* end; () for ``once``."""
    if every == ONCE:
        return ()
    last_day = day_of(epoch_start(every, epoch + 1) - 1)
    return tuple((last_day + days + 1) * DAY for days in LAST_DAYS)


def first_day(every: str, epoch: int, lateness: int) -> int | None:
    """Return the first epoch day on which a fold can be of class *lateness*; None for ``once``."""
    limits = ends(every, epoch)
    if not limits:
        return None
    if lateness:
        return limits[lateness - 1] // DAY
    return day_of(epoch_start(every, epoch)) - MAX_CLOCK_SKEW


def class_of(every: str, epoch: int, now: float) -> tuple[int, int | None]:
    """Return the class of what is folded at *now*, and when that class ends, None for never."""
    limits = ends(every, epoch)
    lateness = bisect_right(limits, now)
    return lateness, limits[lateness] if lateness < len(limits) else None


def version_of(every: str, epochs: Iterable[int], now: float) -> int | None:
    """Return the highest version of a window of *epochs* that is published at *now*, or None."""
    ended = bisect_right(ends(every, max(epochs)), now - MARGIN)
    return ended - 1 if ended else None
