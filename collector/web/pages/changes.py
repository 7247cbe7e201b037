"""What changed, in sentences: each detected change of a line, and the note that stands near it.

A note stands near a change, and may have nothing to do with it: no sentence says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from client_sdk.registry.metric import Metric

from ...rendering.charts import Mark
from ...rendering.numbers import movement
from ...rendering.wording import days_in_words
from .remarks import Step

_BEFORE: Final = timedelta(days=7)  # how long before a change a note is near it
_AFTER: Final = timedelta(days=1)  # and after it, as its day is estimated


@dataclass(frozen=True)
class Change:
    """A change of a metric's line that is more than noise."""

    at: date  # the first day of the level since then
    when: str  # the stretch that begins on it, in words
    what: str  # what changed, after the title of the metric; "" of yes and no
    how: str  # from which number to which, in words
    note: Mark | None  # the nearest, None if none is near

    @property
    def noted(self) -> str:
        """The day of the note, in words; "" without one."""
        return _in_words(self.note.at) if self.note else ""


def change_of_step(metric: Metric, step: Step, marks: Sequence[Mark]) -> Change | None:
    """Return the change of *metric* in a *step*, None if no number is known of the days before.

    Args: marks: the notes that the chart of its line shows.
    """
    if step.before is None:
        return None
    return Change(
        at=step.now.first,
        when=_in_words(step.label, step.stretch),
        what="" if metric.domain.boolean else step.what,
        how=movement(step.before.row, step.now.row),
        note=_nearest(marks, step),
    )


def _nearest(marks: Sequence[Mark], step: Step) -> Mark | None:
    """Return the mark nearest to the first day of *step*, the earlier of two; None if none is."""
    days = [(date.fromisoformat(mark.at), mark) for mark in marks]
    first, last = step.now.first - _BEFORE, step.stretch_end + _AFTER
    near = [(abs(day - step.now.first), mark) for day, mark in days if first <= day <= last]
    return min(near, key=lambda pair: pair[0])[1] if near else None


def _in_words(label: str, every: str = "1d") -> str:
    """Return the stretch of *label* in words: "27 Feb", "23 Feb to 1 Mar"; of hours as it is."""
    return days_in_words([label], every, alone=True).get(label, label)
