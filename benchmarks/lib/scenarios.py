"""A question of every verb about devices whose true answers are known.

Who is asked comes from real counts.  Where a verb needs what no file of ours has, that is made up
and said: ``devices`` tells which part.
"""

from __future__ import annotations

from benchmarks.lib.asked_items import items, joint
from benchmarks.lib.asked_numbers import curves_asked, numbers_asked
from benchmarks.lib.asked_slices import between_segments, over_time
from benchmarks.lib.questions import Scenario


def scenarios() -> list[Scenario]:
    """Return all of them, in the order of the page."""
    groups = (items, numbers_asked, curves_asked, over_time, between_segments, joint)
    return [scenario for group in groups for scenario in group()]
