"""The intervals of key-value metrics keep their level, from common keys down to rare ones.

20,000 replications a setting have a standard error of 0.15 points; the bands are of one point.
Seeds are fixed, so that no run fails by chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy.key_values import (
    ALPHA,
    MULTIPLES,
    POPULATIONS,
    RANGE,
    REPLICATIONS,
    SETTINGS,
    Found,
    Setting,
    built,
    holders_of,
    measure_all,
    replicated,
    table,
    tally_of,
)
from collector.estimation.estimate import key_means

PAGE = (Path(__file__).parents[3] / "docs/evidence/tables/key_values.md").read_text("utf-8")
BAND = 0.0115  # a point, and a standard error of 20,000 runs
SELDOM, OFTEN = MULTIPLES[1], MULTIPLES[2]  # shown in half of the runs; in nearly all

Measured = dict[tuple[Setting, float], list[Found]]


@pytest.fixture(scope="module")
def measured() -> Measured:
    return measure_all()


def each(measured: Measured, least: float = 0) -> list[Found]:
    """Return what was found at *least* that many standard errors."""
    return [one for (_, multiple), ones in measured.items() if multiple >= least for one in ones]


def test_the_interval_of_a_share_covers_at_its_level(measured: Measured) -> None:
    """For keys of any rarity: it is the score interval."""
    assert all(abs(one.share_covered - (1 - ALPHA)) <= BAND for one in each(measured))


def test_a_mean_is_shown_and_wrong_in_one_of_twenty_queries_at_most(measured: Measured) -> None:
    """However rare the key, and whatever its numbers."""
    assert max(one.wrong for one in each(measured)) <= ALPHA + BAND


def test_a_mean_covers_at_its_level_where_it_is_shown_as_often_as_not(measured: Measured) -> None:
    """Choosing to show it costs no coverage until showing is the exception."""
    assert min(one.shown for one in each(measured, SELDOM)) > 0.45
    assert min(one.covered for one in each(measured, SELDOM)) >= 1 - ALPHA - BAND


def test_the_interval_of_a_mean_is_not_needlessly_wide(measured: Measured) -> None:
    """It covers more where numbers lie at an end, at which it is cut, or differ widely."""
    assert min(one.shown for one in each(measured, OFTEN)) > 0.95
    assert max(one.covered for one in each(measured, OFTEN)) <= 0.98


def test_the_delta_method_would_break_the_law(measured: Measured) -> None:
    """The interval that was not taken covers too seldom where the holders are few."""
    assert min(one.delta for one in each(measured, SELDOM)) < 0.9


def test_an_interval_of_half_the_variance_would_be_seen() -> None:
    """The planted fault that the bands must catch."""
    setting, places = SETTINGS[0], {0.5: 1.0}
    holders = holders_of(setting, OFTEN)
    mechanism = replicated(built(setting))
    tally = tally_of(mechanism, holders, setting.devices, places, seed=7)

    rows = key_means(mechanism, RANGE, tally, setting.devices, ALPHA)

    halves = [
        abs(row.value - 0.5) <= (row.ci_high - row.ci_low) / 2 / np.sqrt(2)
        for row in rows
        if row is not None
    ]
    assert len(halves) > 0.95 * REPLICATIONS
    assert float(np.mean(halves)) < 1 - ALPHA - BAND


def test_the_table_of_the_page_is_what_its_command_prints(measured: Measured) -> None:
    """Names and shares to the letter, rates to a point: another numpy may draw otherwise."""
    printed = table(measured).splitlines()
    shown = [
        line for line in PAGE.splitlines() if line.startswith("| `pckv_") and "devices" in line
    ]

    assert printed[0] in PAGE
    assert [line.split("|")[1:3] for line in shown] == [
        line.split("|")[1:3] for line in printed[2:]
    ]
    for ours, theirs in zip(map(_rates, shown), map(_rates, printed[2:]), strict=True):
        assert ours == pytest.approx(theirs, abs=1.0)


def _rates(line: str) -> Sequence[float]:
    """Return the rates of a row, the least and the most where they differ widely."""
    spans = [[float(number) for number in re.findall(r"\d+\.\d", cell)] for cell in line.split("|")]
    return [number for span in spans if span for number in (span[0], span[-1])]


def test_every_population_is_measured() -> None:
    """The numbers of the holders agree in the middle, agree at an end, or differ most."""
    assert [len(places) for places in POPULATIONS.values()] == [1, 1, 2]
