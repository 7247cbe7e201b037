"""What was refused is in no number of any verb across slices, neither itself nor by a sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from collector.analytics.slices import Slice
from tests.support.asking import ask
from tests.support.boolean_slices import exact

VERSIONS = ("1", "2", "3", "4")


def grid(chance: np.random.Generator) -> list[Slice]:
    """Return four versions over five days, some of them with few reports."""
    return [
        exact({"time": f"2026-03-0{i}", "version": version}, 0.4, int(n), i)
        for i in range(1, 6)
        for version, n in zip(VERSIONS, chance.choice([20, 60, 150, 400, 900], 4), strict=True)
    ]


def bent(slices: list[Slice]) -> list[Slice]:
    """Return *slices* with other answers in those below the least reports."""
    return [replace(one, tally=one.tally[::-1]) if one.n < 100 else one for one in slices]


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("trend", {}),
        ("trend", {"window": 3}),
        ("compare", {"by": "version"}),
        ("compare", {"by": "version", "against": "2"}),
        ("compare", {"by": "time"}),
        ("compare", {"by": "time", "against": "first"}),
        ("lift", {"dimension": "version", "control": "1"}),
        ("adoption", {}),
        ("adoption", {"item": "true"}),
        ("actives", {}),
    ],
)
def test_no_row_depends_on_what_a_refused_slice_holds(verb: str, options: dict[str, Any]) -> None:
    """Its answers may be turned round without a trace, in 20 grids; a plain sum would show it."""
    chance = np.random.default_rng(20261121)
    for _ in range(20):
        slices = grid(chance)

        assert ask(verb, slices, options=options) == ask(verb, bent(slices), options=options)


def test_segments_tell_of_refused_ones_only_together() -> None:
    """The row of all of them changes, and only where it is there at all."""
    chance = np.random.default_rng(20261122)
    seen = 0
    for _ in range(20):
        slices = grid(chance)
        before, after = (ask("segments", each).rows for each in (slices, bent(slices)))
        for old, new in zip(before, after, strict=True):
            if old.dimensions["version"] == "(other)":
                seen += old != new
                assert old.n >= 100
            else:
                assert old == new
    assert seen
