"""A trend follows a number over time, and says that it changed no more often than it may."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry import Registry
from collector.analytics.comparing.scan import scan, scans_of
from collector.analytics.rows import Findings
from collector.analytics.verb import Slice, merged
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import drawn, exact, is_at_most
from tests.support.crowds.uploads import registry_text
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import WAVE, metric_of, slice_of

ALPHA: Final = 0.05
DAYS: Final = 14


def day(i: int) -> str:
    return f"2026-03-{i + 1:02}"


def flat(shares: list[float], n: int = 4_000) -> list[Slice]:
    return [exact({"time": day(i)}, share, n, i) for i, share in enumerate(shares)]


def change_of(found: Findings) -> dict[str, Any]:
    (only,) = found.facts["changes"]
    return dict(only)


def test_a_window_is_all_reports_of_its_stretches_under_the_last_label() -> None:
    """Weighted by reports: the row equals the answer to the tallies added up."""
    days = [
        exact({"time": day(i)}, share, n, i)
        for i, (share, n) in enumerate([(0.2, 1_000), (0.4, 3_000), (0.9, 1_000)])
    ]

    found = ask("trend", days, options={"window": 2})

    assert [row.dimensions["time"] for row in found.rows] == [day(1), day(2)]
    assert [row.n for row in found.rows] == [4_000, 4_000]
    assert [row.value for row in found.rows] == pytest.approx([0.35, 0.525], abs=1e-3)
    (alone,) = ask("estimate", [merged(days[:2], {})]).rows
    assert (found.rows[0].ci_low, found.rows[0].ci_high) == (alone.ci_low, alone.ci_high)


def test_a_refused_stretch_takes_no_part_in_a_change() -> None:
    """Its tally may not be used."""
    days = flat([0.3] * 6)
    few = exact({"time": day(6)}, 1.0, 60, 6)

    assert change_of(ask("trend", [*days, few])) == change_of(ask("trend", days))


def test_a_change_is_never_said_beside_an_interval_that_holds_0() -> None:
    """The p-value takes the errors under no change, the interval those as they are: they differ.

    The control: without the rule some of these would be said to have changed.
    """
    changes = [
        change_of(ask("trend", [*flat([0.02], 30_000), exact({"time": day(1)}, share, 1_200, 1)]))
        for share in (0.02 + 0.001 * step for step in range(70))
    ]

    holding = [change for change in changes if change["ci_low"] <= 0 <= change["ci_high"]]
    assert any(change["p_value"] <= ALPHA for change in holding)
    assert not any(change["detected"] for change in holding)
    assert any(change["detected"] for change in changes)


def test_segments_are_series_of_their_own() -> None:
    """Each has its change, all of them corrected for each other."""

    def platform(name: str, shares: list[float]) -> list[Slice]:
        return [
            replace(one, dimensions={**one.dimensions, "platform": name}) for one in flat(shares)
        ]

    moved = platform("mac", [0.3] * 4 + [0.4] * 4)
    found = ask("trend", [*moved, *platform("linux", [0.3] * 8)])

    changes = {one["dimensions"]["platform"]: one for one in found.facts["changes"]}
    assert [changes[name]["detected"] for name in ("mac", "linux")] == [True, False]
    alone = change_of(ask("trend", moved))
    assert changes["mac"]["p_value"] == pytest.approx(2 * alone["p_value"])


def test_a_constant_share_is_said_to_change_no_more_often_than_alpha() -> None:
    """Of 200 series of devices drawn anew, as few as 200 a day, one in ten saying true."""
    chance = np.random.default_rng(20261121)
    rounds, changed = 200, 0
    for _ in range(rounds):
        sizes = chance.integers(200, 2_000, DAYS).tolist()
        days = [drawn({"time": day(i)}, 0.1, n, chance, i) for i, n in enumerate(sizes)]
        changed += scans_of(days, ("true",), "drawn")["true"].p_value <= ALPHA

    assert is_at_most(changed, rounds, ALPHA)


def test_windows_that_share_stretches_may_not_be_scanned_as_if_they_did_not() -> None:
    """That is why the scan is of stretches: their averages of five look changed far too often."""
    chance = np.random.default_rng(20261124)
    rounds, changed = 1_000, 0
    for _ in range(rounds):
        windows = np.convolve(chance.normal(7, 1, DAYS), np.ones(5) / 5, "valid")
        _, p, _ = scan(windows.tolist(), [1 / 5] * windows.size)
        changed += p <= ALPHA

    assert not is_at_most(changed, rounds, ALPHA)


def test_both_tests_hold_their_level_and_a_scan_that_forgets_its_splits_does_not() -> None:
    """Of normal values with known errors: the scan errs a little less, chi-square exactly."""
    chance = np.random.default_rng(20261122)
    errors = chance.uniform(0.5, 3, DAYS)
    rounds = 4_000
    scans = [scan(list(chance.normal(7, errors)), list(errors**2)) for _ in range(rounds)]

    assert is_at_most(sum(p <= ALPHA for _, p, _ in scans), rounds, ALPHA)
    assert all(fits_rate(sum(p <= rate for *_, p in scans), rounds, rate) for rate in (0.05, 0.9))
    alone = [1 - (1 - p) ** (1 / (DAYS - 1)) for _, p, _ in scans]
    assert not is_at_most(sum(p <= ALPHA for p in alone), rounds, ALPHA)


def test_a_planted_step_is_found_most_of_the_time_and_near_its_place() -> None:
    """10 points on day 8, of 3,000 devices a day: 5.6 standard errors; 99 of 100 are found."""
    chance = np.random.default_rng(20261123)
    places = []
    for _ in range(200):
        days = [
            drawn({"time": day(i)}, 0.3 if i < 7 else 0.4, 3_000, chance, i) for i in range(DAYS)
        ]
        found = scans_of(days, ("true",), "drawn")["true"]
        places += [found.place] if found.p_value <= ALPHA else []

    assert len(places) >= 150  # at a power of 0.99 fewer come once in 1e-40
    assert sum(abs(place - 7) <= 1 for place in places) >= len(places) / 2


def weeks(*middles: int) -> list[Slice]:
    """Return a slice a week of 20,000 devices whose numbers lie around each of *middles*."""
    metric, bins = metric_of(WAVE), np.arange(48)
    slices = {middle: slice_of(metric, _bell(bins, middle).tolist()) for middle in {*middles}}
    return [
        replace(slices[middle], dimensions={"time": day(7 * i)}, epochs=(i,))
        for i, middle in enumerate(middles)
    ]


def _bell(bins: Any, middle: int) -> Any:
    return np.rint(20_000 * np.exp(-0.5 * ((bins - middle) / 5) ** 2) / 12.5).astype(int)


def test_any_quantiles_run_over_time_with_the_intervals_that_they_have_alone() -> None:
    """Law: a row of a stretch is that of verb quantile; of a window, that of its reports."""
    parts = weeks(15, 15, 30)
    levels = [0.95, 0.5]

    alone = ask("trend", parts, options={"levels": levels})
    pairs = ask("trend", parts, options={"levels": levels, "window": 2})

    assert alone.rows == ask("quantile", parts, options={"levels": levels}).rows
    assert [row.item for row in alone.rows[:2]] == ["p95", "p50"]
    assert alone.rows[4].ci_low > alone.rows[2].ci_high  # type: ignore[operator]
    both = merged(parts[:2], parts[1].dimensions)
    assert pairs.rows[:2] == ask("quantile", [both], options={"levels": levels}).rows
    assert len(pairs.rows) == 4


def test_a_stretch_without_enough_reports_has_no_quantile_but_the_reason() -> None:
    """As it has no mean."""
    first, second, third = weeks(15, 15, 15)
    few = replace(second, n=50, tally=np.bincount([0] * 50, minlength=second.tally.size))

    rows = ask("trend", [first, few, third], options={"levels": [0.95]}).rows

    assert [row.value is None for row in rows] == [False, True, False]
    assert "not enough reports: 50" in (rows[1].reason or "")


@pytest.mark.parametrize(
    ("every", "length", "words"),
    [
        ("1d", 1, "on 2026-03-09 from"),
        ("1d", 4, "in the week of 2026-03-09 from"),
        ("7d", 1, "in the week of 2026-03-09 from"),
        ("28d", 1, "in the four weeks from 2026-03-09 from"),
    ],
)
def test_a_change_is_said_of_the_whole_stretch_that_its_label_begins(
    every: str, length: int, words: str
) -> None:
    """A week is named by its first day, on which nothing need have changed."""
    text = registry_text().replace('every = "1h"', f'every = "{every}"', 1)
    metric = Registry.from_text(text).metric("crashed")
    shares = [0.3] * 8 + [0.4] * 8
    days = [exact({"time": day(i)}, x, 4_000, i, metric=metric) for i, x in enumerate(shares)]
    parts = [merged(days[i : i + length], days[i].dimensions) for i in range(0, 16, length)]

    found = ask("trend", parts)

    assert f"yes changed {words}" in found.warnings[0].text
