"""What of the slices of an answer does not look like honest reports, in words.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..repeats import repeats_of
from ..rows import TIME
from ..slices import Slice
from .anomaly import CHANGE, FALSE_ALARM, Anomaly, Estimated, anomalies_after, estimated

MOST_LOOKED_AT: Final = 60  # slices; of more, those that come last


def suspicions(slices: Sequence[Slice]) -> Iterator[str]:
    """Yield a sentence for each check that a slice fails.

    Slices that follow one another in time are compared with those before.  Where devices repeat
    their noise, the tally of several epochs scatters more than the checks know, and is left out.
    """
    in_time = all(set(one.dimensions) == {TIME} for one in slices)
    past: list[Estimated] = []  # of each slice once: the comparisons are as many as their square
    for one in slices[-MOST_LOOKED_AT:]:
        if one.refusal is not None or repeats_of(one) > 1:
            continue
        place = ", ".join(one.dimensions.values())
        for found in anomalies_after(one.metric, one.tally, one.n, past):
            where = f"{one.metric.name}{f' ({place})' if place else ''}"
            yield f"{where}: {_sentence(found)}"
        if in_time:
            past.append(estimated(one.metric.mechanism, one.tally, one.n))


def _sentence(found: Anomaly) -> str:
    """Return what was found; of a change no chance is told, as the truth can have changed."""
    if found.check == CHANGE:
        return f"changed suddenly: {found.text}; the truth may have, or fakes began"
    chance = f"by chance once in {1 / FALSE_ALARM:,.0f} epochs"
    return f"not what honest devices send: {found.text}; {chance}"
