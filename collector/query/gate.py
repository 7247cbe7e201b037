"""What a question may cost, and the places of large ones: a process answers few of them at once.

Reading is what a store pays for questions: what waits to be sent counts as its memory, and a full
store takes no uploads.  So a question is priced before it reads, in counters of eight bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ..core.errors import BusyError, QueryError
from .plan import Plan, most_groups

MOST_READ: Final = 64_000_000  # counters that one question reads: 512 MB in all, a page at a time
MOST_HELD: Final = 4_500_000  # counters of all groups of one question; each takes some 90 bytes
_MOST_INDEXES: Final = 300_000  # index sets that one question reads, about a second of a store
LARGE: Final = 1_000_000  # counters from which a question is a large one: 8 MB
AT_ONCE: Final = 2  # large questions that a process answers at once
QUEUE: Final = 4  # that wait for these
_PATIENCE: Final = 10.0  # seconds that one waits
_MOST_SECONDS: Final = 10.0  # of a processor, for one question


def require_affordable(tallies: int, groups: int, width: int) -> None:
    """Raise QueryError if so many tallies of *width* counters are too much for one question."""
    if tallies * width > MOST_READ:
        rule = f"would read {tallies * width} counters, must be at most {MOST_READ}"
        raise QueryError("date_range", f"{rule}; take a shorter window")
    if groups * width > MOST_HELD:
        rule = f"would give {groups} groups of {width} counters, must be {MOST_HELD // width}"
        raise QueryError("dimensions", f"{rule} at most; take fewer, or a longer stretch of time")


def require_few_indexes(epochs: int, shards: int) -> None:
    """Raise QueryError if so many epochs on so many shards are too many to look at."""
    if epochs * shards > _MOST_INDEXES:
        rule = f"leaves {epochs} epochs, must be at most {_MOST_INDEXES // shards} in this store"
        raise QueryError("date_range", f"{rule}; take a shorter window")


def price_of(plan: Plan) -> int:
    """Return what the groups of a question cost beyond their reading, at most, in counters."""
    readings, cost = plan.readings, plan.verb.cost
    return sum(most_groups(plan, each) * cost(each.metric, plan.options) for each in readings)


def allowance(clock: Callable[[], float]) -> Callable[[], None]:
    """Return what raises QueryError once the processor has worked for too long, by *clock*.

    Args: clock: seconds that the processor has worked for the question.
    """
    end = clock() + _MOST_SECONDS

    def pause() -> None:
        if clock() > end:
            rule = f"takes more than {_MOST_SECONDS:.0f} seconds of the processor"
            ask = "ask for fewer groups, one at a time by a filter, or for fewer days"
            raise QueryError("dimensions", f"{rule}; {ask}")

    return pause


class Gate:
    """The places of large questions; some more wait a little for one.  Safe among threads."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self.reading, self.waiting = 0, 0  # large questions

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait for a place, and keep it in the block.

        Raises: BusyError: too many others wait for one, or it took too long.
        """
        with self._free:
            if self.reading >= AT_ONCE and self.waiting >= QUEUE:
                raise BusyError("questions: too many large ones wait; ask again later, or for less")
            self.waiting += 1
            try:
                if not self._free.wait_for(lambda: self.reading < AT_ONCE, _PATIENCE):
                    raise BusyError("questions: large ones are being answered; ask again later")
                self.reading += 1
            finally:
                self.waiting -= 1
        try:
            yield
        finally:
            with self._free:
                self.reading -= 1
                self._free.notify()
