"""Panels: which metrics a device may report is drawn, so that no metric starves for its place."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.core.epoch import DAY, HOUR, epoch_of
from client_sdk.core.errors import InvalidParameterError, RegistryError
from client_sdk.privacy.budget import cost_of_dates
from client_sdk.privacy.panel import Panel
from client_sdk.registry import Registry
from client_sdk.registry.seats import WHOLE, Seat
from tests.support.device.clock import NOON
from tests.support.device.device import metric_text
from tests.support.device.panels import (
    members,
    panel,
    registry,
    secret_of,
    twelve,
    weekly,
)

DEVICES: Final = 25_000
SIGMAS: Final = 6.5  # two-sided false alarms below 1e-10 a share, below 1e-9 for all of a test


def test_shares_of_devices_are_those_that_were_stated() -> None:
    """12 metrics of weights 1 to 3, on 25,000 devices."""
    of = registry(*(weekly(f"metric_{i}", f"weight = {1 + i % 3}") for i in range(12)))
    drawn = panel(of)
    counts: Counter[str] = Counter()
    for device in range(DEVICES):
        secret = secret_of(device)
        counts.update(m.name for m in of if drawn.includes(m, 2_900, secret))

    for metric in of:
        share = drawn.inclusion(metric)
        error = (share * (1 - share) / DEVICES) ** 0.5
        assert 0 < share < 1
        assert abs(counts[metric.name] / DEVICES - share) <= SIGMAS * error
    assert drawn.inclusion(of.metric("metric_2")) == 3 * drawn.inclusion(of.metric("metric_0"))


def test_a_device_draws_anew_each_week_and_alike_in_all_its_processes() -> None:
    of = twelve()

    assert members(of, 7, 2_900) == members(of, 7, 2_900)
    assert len({tuple(members(of, 7, epoch)) for epoch in range(2_900, 2_950)}) == 3
    assert len({tuple(members(of, device, 2_900)) for device in range(50)}) == 3


def test_twelve_metrics_under_a_cap_of_eight_have_four_seats_each_week() -> None:
    of = twelve()

    assert {len(members(of, device, epoch)) for device, epoch in product(range(50), (1, 2))} == {4}
    assert [panel(of).inclusion(metric) for metric in of] == [pytest.approx(1 / 3, abs=1e-9)] * 12


def test_hours_and_days_are_in_the_panel_of_their_week() -> None:
    names = [f"{every}_{i}" for every in ("1h", "1d", "7d") for i in range(3)]
    of = registry(*(weekly(f"metric_{n}", epsilon="0.02", every=n[:2]) for n in names), week="5")
    drawn, now = panel(of), NOON
    for metric in of:
        week = epoch_of("7d", now)
        inside = {
            drawn.includes(metric, epoch_of(metric.every, now + hours * HOUR), secret_of(3))
            for hours in range(7 * 24)
            if epoch_of("7d", now + hours * HOUR) == week
        }
        assert len(inside) == 1


def test_metrics_that_keep_what_they_told_are_drawn_for_life() -> None:
    kept = metric_text("kept").replace('longitudinal = "fresh"', 'longitudinal = "permanent"')
    of = registry(kept, weekly("first", every="once"), weekly("second", every="once"), week="2")
    drawn = panel(of)

    for device in range(20):
        secret = secret_of(device)
        told = {drawn.includes(of.metric("kept"), epoch, secret) for epoch in range(2_000, 2_100)}
        assert len(told) == 1
        answers = sum(drawn.includes(of.metric(name), 0, secret) for name in ("first", "second"))
        assert 2 * told.pop() + answers <= 2  # a yes and a no of the permanent one cost 1 each


def test_what_is_outside_of_the_panel_always_reports_and_is_paid_first() -> None:
    of = registry(
        weekly("always", "panel = false", epsilon="2"), *(weekly(f"m_{i}") for i in range(8))
    )
    drawn = panel(of)

    assert drawn.inclusion(of.metric("always")) == 1
    assert {len(members(of, device, 2_900)) for device in range(50)} == {1 + 2}


epsilons = st.sampled_from(["0.1", "0.5", "1", "2"])
kinds = st.tuples(epsilons, st.sampled_from(["1d", "7d", "28d", "once"]), st.integers(1, 4))


@given(st.lists(kinds, min_size=1, max_size=7), st.sampled_from(["4", "8", "20"]))
@settings(max_examples=60, deadline=None)
def test_no_seven_dates_cost_more_than_the_panel_allows(
    metrics: list[tuple[str, str, int]], week: str
) -> None:
    """By brute force: all pairs of draws at the ends of intervals, all seven dates around them."""
    of = registry(
        *(weekly(f"m_{i}", f"weight = {w}", e, every) for i, (e, every, w) in enumerate(metrics)),
        week=week,
    )
    try:
        drawn = panel(of)
    except InvalidParameterError:
        assert dearest_of(of) > Fraction(week) * 10**9  # not even one at a time
        return
    assert all(drawn.inclusion(metric) > 0 for metric in of)
    assert dearest_seven_dates(of, drawn) <= Fraction(week) * 10**9


def dearest_of(of: Registry) -> int:
    """Return what one metric for life, and one before and one after a new panel, can cost."""
    kept = [metric.most_nano for metric in of if metric.every == "once"]
    moved = [cost_of_dates(metric, 7) for metric in of if metric.every != "once"]
    return max(kept, default=0) + 2 * max(moved, default=0)


def dearest_seven_dates(of: Registry, drawn: Panel) -> int:
    """Return the most that is charged for seven dates, counted epoch by epoch."""
    start = epoch_of("28d", NOON) * 28 + 25  # some day in the middle of a panel of four weeks

    def cost(points: dict[str, list[int]], first: int) -> int:
        charged = set()
        for day in range(first, first + 7):
            for metric in of:
                seat = drawn.seats[metric.digest]
                number = 0 if seat.period == "life" else epoch_of(seat.period, day * DAY)
                point = points[seat.period][number % 2]
                if seat.holds(point):
                    charged.add((metric.name, epoch_of(metric.every, day * DAY)))
        return sum(of.metric(name).most_nano for name, _ in charged)

    ends: dict[str, set[int]] = {"life": {0}, "7d": {0}, "28d": {0}}
    for seat in drawn.seats.values():
        ends[seat.period] |= {seat.low % WHOLE, seat.high % WHOLE}
    period = "28d" if any(seat.period == "28d" for seat in drawn.seats.values()) else "7d"
    return max(
        cost({"life": [life, life], period: [even, odd]}, first)
        for life in ends["life"]
        for even, odd in product(ends[period], repeat=2)
        for first in range(start, start + 14)
    )


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [(0, 10, {0, 9}), (WHOLE - 5, WHOLE + 5, {0, 4, WHOLE - 5, WHOLE - 1}), (7, 7 + WHOLE, {0, 7})],
)
def test_a_seat_holds_the_points_of_its_interval(low: int, high: int, inside: set[int]) -> None:
    seat = Seat(low, high, "7d")
    outside = {10, 11, WHOLE - 6} if high - low < WHOLE else set()

    assert all(seat.holds(point) for point in inside)
    assert not any(seat.holds(point) for point in outside)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[panel]\nweek = 8\n", "panel.week"),
        ('[panel]\nweek = "0"\n', "panel.week"),
        ('[panel]\nweek = "8"\nmonth = "8"\n', "panel.month"),
        ("panel = 3\n", "panel"),
        ("", "metrics.m.weight"),
    ],
)
def test_a_wrong_panel_is_refused_by_its_place(text: str, problem: str) -> None:
    extra = "weight = 2" if problem == "metrics.m.weight" else ""
    with pytest.raises(RegistryError, match=problem):
        Registry.from_text(f'schema = 1\napp = "demo"\n{text}' + weekly("m", extra))


@pytest.mark.parametrize("weight", ["0", "1001", '"2"', "1.5"])
def test_an_unknown_weight_is_refused(weight: str) -> None:
    with pytest.raises(RegistryError, match=r"metrics\.m\.weight"):
        registry(weekly("m", f"weight = {weight}"))
