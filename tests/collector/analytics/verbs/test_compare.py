"""A comparison tells a difference with what noise alone could do, all comparisons counted."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from collector.analytics.comparing.differences import compared, pairs_of
from collector.analytics.comparing.numbers import numbers_of
from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import PAGE, drawn, exact, is_at_most

ALPHA: Final = 0.05


def platforms(*parts: tuple[str, float, int]) -> list[Slice]:
    return [exact({"platform": name}, share, n) for name, share, n in parts]


def test_a_difference_says_how_many_fakes_could_turn_it() -> None:
    """As many more as it is larger."""
    small, large = (
        ask("compare", platforms(("linux", 0.3, 4_000), ("mac", share, 4_000))).rows[0]
        for share in (0.4, 0.5)
    )

    assert 0 < (small.fakes_to_flip or 0) < (large.fakes_to_flip or 0)


def test_all_items_of_all_pairs_are_counted() -> None:
    """Three items of one pair are three comparisons, so each interval is wider than alone."""
    pages = [
        Slice(PAGE, {"platform": name}, 600, np.array(tally), (0,))
        for name, tally in (("linux", [300, 200, 100]), ("mac", [200, 200, 200]))
    ]

    every = ask("compare", pages, options={"against": "linux"})
    one = ask("compare", pages, options={"against": "linux", "item": "news"})

    assert every.facts["comparisons"] == 3
    widths = [(row.ci_high or 0) - (row.ci_low or 0) for row in (every.rows[1], *one.rows)]
    assert widths[0] == pytest.approx(widths[1] * 2.3880 / 1.9600, rel=1e-3)


def test_devices_that_reported_leave_out_which_of_them_happened_to() -> None:
    """Of 50 % at ε 1 the noise is 0.92 a report, drawing adds 0.25, and once for each epoch."""
    one = exact({}, 0.5, 4_000)
    noise, both = (
        numbers_of(one, ("true",), who, in_time=False)["true"].variance
        for who in ("reported", "drawn")
    )
    fortnight = numbers_of(exact({}, 0.5, 4_000, *range(14)), ("true",), "drawn", in_time=False)[
        "true"
    ]

    assert noise == pytest.approx(0.9207 / 4_000, rel=1e-3)
    assert both - noise == pytest.approx(0.25 / 4_000, rel=1e-3)
    assert fortnight.variance - noise == pytest.approx(14 * 0.25 / 4_000, rel=1e-3)


def test_a_longer_period_is_worth_its_reports_and_a_segment_those_of_a_day() -> None:
    """Beside the same devices at another time what they repeat cancels; beside others it stays."""
    of_days = [
        exact({"time": f"2026-0{i + 1}"}, 0.5, 4_000, *range(14 * i, 14 * i + 14)) for i in (0, 1)
    ]
    of_devices = [exact({"platform": name}, 0.5, 4_000, *range(14)) for name in ("mac", "win")]

    (time,) = ask("compare", of_days).rows
    (device,) = ask("compare", of_devices, options={"against": "mac"}).rows

    assert time.std_error == pytest.approx((2 * (0.9207 + 0.25) / 4_000) ** 0.5, rel=1e-3)
    assert device.std_error == pytest.approx((2 * (0.9207 + 3.5) / 4_000) ** 0.5, rel=1e-3)


def test_of_equal_segments_none_is_called_different_more_often_than_alpha() -> None:
    """Of 300 answers about six segments; without the correction one in four errs."""
    chance = np.random.default_rng(20261121)
    rounds, false, naive = 300, 0, 0
    for _ in range(rounds):
        parts = [drawn({"v": str(i)}, 0.2, 400 + 300 * i, chance) for i in range(6)]
        pairs = pairs_of(parts, "v", "0")
        found = compared(pairs, ("true",), "drawn", ALPHA)
        false += any(not one.difference.ci_low <= 0 <= one.difference.ci_high for one in found)
        alone = (compared([pair], ("true",), "drawn", ALPHA)[0] for pair in pairs)
        naive += any(one.p_value <= ALPHA for one in alone)

    assert is_at_most(false, rounds, ALPHA)
    assert not is_at_most(naive, rounds, ALPHA)
