"""Time off: how much of the time while a machine is off passes all the same.  Pure.

The time since boot cannot be set, the wall clock can.  A reading after a reboot cannot tell a
machine that was off from a clock that was set forward.  So time off is believed within a credit.
Each hour that the machine runs earns hours of credit, up to a weekend.  Credit is spent only across
a reboot, and trusted time never advances by more than the wall clock does: a clock that is set
while the machine runs gains nothing.

The worst that anyone can do is to set the clock forward at each reboot, with all credit saved up.
Then trusted time advances, in any span of true time, by that span, by what it earns, and by the
credit from before.  ``FORGED_WEEKS`` is what this makes of seven days.
"""

from __future__ import annotations

from ..core.epoch import DAY, HOUR
from ..core.typing import Final
from .caps import WEEK

MS: Final = 1_000  # milliseconds of a second
EARNED: Final = 13  # hours of credit for RUN hours: 40 hours of work make a week of 168
RUN: Final = 4
MOST_CREDIT: Final = 72 * HOUR * MS  # milliseconds; from an afternoon to the Monday after it


def time_passed(wall: int, ran: int, credit: int, *, rebooted: bool) -> tuple[int, int]:
    """Return by how much trusted time advances, negative for a clock set back; and the credit left.

    Args: wall: what has passed by the wall clock.  ran: what the machine surely ran.
          credit: from before.  All in milliseconds.
    """
    spent = min(credit, max(0, wall - ran)) if rebooted else 0
    earned = max(0, ran) * EARNED // RUN
    return min(wall, ran + spent), min(MOST_CREDIT, credit - spent + earned)


def most_dates(days: int) -> int:
    """Return how many trusted dates *days* of true time can touch, whatever is done to clocks.

    A span touches a date more than it has days begun.  The wall clock decides where dates begin,
    and can move that by one more.
    """
    day = DAY * MS
    longest = days * day * (RUN + EARNED) // RUN + MOST_CREDIT
    return -(-longest // day) + 2


# A machine that runs so many hours on so many days of a week has its week's budget back in a week.
HOURS_ON: Final = 8
DAYS_ON: Final = 5

# Caps of a week that seven days of true time can cost at most.
FORGED_WEEKS: Final = -(-most_dates(WEEK) // WEEK)
