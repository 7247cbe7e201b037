"""What a window has lost because an operator deleted it: said, and never answered as nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace

from client_sdk.core.epoch import ONCE, epoch_label

from ..core.errors import PrunedError
from ..storage.protocols import TallyStore
from .plan import Plan, Reading


def without_pruned(plan: Plan, storage: TallyStore) -> Plan:
    """Return *plan* without the epochs of which nothing is kept, and with a note on what is gone.

    Raises: PrunedError: a whole window was deleted.  StorageUnavailableError.
    """
    marks = marks_of(plan, storage)
    readings = tuple(_kept(reading, marks) for reading in plan.readings)
    notes = tuple(note for reading in plan.readings for note in _notes(reading, marks))
    return replace(plan, readings=readings, marks=marks, notes=notes)


def marks_of(plan: Plan, storage: TallyStore) -> Mapping[bytes, int]:
    """Return of each definition that *plan* reads the epoch before which all is pruned, if any."""
    digests = {one.digest for reading in plan.readings for one in reading.definitions}
    return storage.pruned(sorted(digests))


def _kept(reading: Reading, marks: Mapping[bytes, int]) -> Reading:
    first = reading.epochs[0]
    begun = min(marks.get(one.digest, first) for one in reading.definitions)
    epochs = reading.epochs[bisect_left(reading.epochs, begun) :]
    if not epochs:
        metric, (_, last) = reading.metric, reading.window
        when = "" if metric.every == ONCE else f" up to {last}"
        rule = f"what was reported on {metric.name}{when} was deleted by an operator (pruned)"
        raise PrunedError(f"date_range: {rule}; take later days")
    return replace(reading, epochs=epochs)


def _notes(reading: Reading, marks: Mapping[bytes, int]) -> Iterator[str]:
    """Yield a sentence on each stretch of the window that is pruned."""
    gone = {bisect_left(reading.epochs, marks.get(one.digest, 0)) for one in reading.definitions}
    name, every = reading.metric.name, reading.metric.every
    for count in sorted(gone - {0}):
        last = epoch_label(every, reading.epochs[count - 1])
        whose = "" if len(gone) == 1 else " under one of its definitions"
        what = f"what was reported up to {last}{whose} was deleted by an operator (pruned)"
        yield f"{name}: {what}, {count} of {len(reading.epochs)} epochs of the window"
