"""A comparison tells a difference with what noise alone could do, all comparisons counted."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from collector.analytics.comparing.differences import compared, pairs_of
from collector.analytics.comparing.numbers import numbers_of
from collector.analytics.rows import AGAINST, REST
from collector.analytics.verb import Slice
from collector.core.remarks import WORDS, Code
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import AGE, PAGE, drawn, exact, is_at_most

ALPHA: Final = 0.05
LEFT: Final = ("linux", 0.5, 4_000), ("mac", 0.4, 3_000), ("win", 0.4, 1_000)


def platforms(*parts: tuple[str, float, int]) -> list[Slice]:
    return [exact({"platform": name}, share, n) for name, share, n in parts]


def test_each_value_is_compared_with_the_others_together() -> None:
    """mac has 40 % of 3,000; the others 48 % of 5,000."""
    found = ask("compare", platforms(*LEFT))

    mac = found.rows[1]
    assert mac.dimensions == {"platform": "mac", AGAINST: REST, "item": "true"}
    assert mac.value == pytest.approx(0.40 - 0.48, abs=1e-3)
    assert (mac.n, mac.simultaneous, found.facts["comparisons"]) == (8_000, True, 3)


def test_a_value_can_be_the_reference_of_all_others() -> None:
    """It is compared with itself in no row."""
    found = ask("compare", platforms(*LEFT), options={"against": "linux"})

    assert [row.dimensions["platform"] for row in found.rows] == ["mac", "win"]
    assert [row.value for row in found.rows] == pytest.approx([-0.1, -0.1], abs=1e-3)
    assert {row.dimensions[AGAINST] for row in found.rows} == {"linux"}


@pytest.mark.parametrize(
    ("against", "differences"),
    [("previous", [0.1, 0.2]), ("first", [0.1, 0.3]), (None, [0.1, 0.2])],
)
def test_time_is_compared_with_the_stretch_before_or_the_first(
    against: str | None, differences: list[float]
) -> None:
    """In the order of time, however the slices come."""
    weeks = [
        exact({"time": name}, share, 4_000, i)
        for i, (name, share) in enumerate([("2026-01", 0.2), ("2026-02", 0.3), ("2026-03", 0.5)])
    ]

    found = ask("compare", weeks[::-1], options={"against": against})

    assert [row.value for row in found.rows] == pytest.approx(differences, abs=1e-3)
    assert [row.dimensions["time"] for row in found.rows] == ["2026-02", "2026-03"]


def test_a_comparison_stays_within_the_values_of_other_dimensions() -> None:
    """Months are compared for each platform by itself."""
    parts = [
        exact({"time": time, "platform": name}, share, 4_000, i)
        for i, (time, share) in enumerate([("2026-01", 0.2), ("2026-02", 0.3)])
        for name, share in (("linux", share), ("mac", 2 * share))
    ]

    found = ask("compare", parts, options={"by": "time"})

    assert [row.dimensions["platform"] for row in found.rows] == ["linux", "mac"]
    assert [row.value for row in found.rows] == pytest.approx([0.1, 0.2], abs=1e-3)


def test_a_difference_that_noise_could_make_is_no_change() -> None:
    """The note is that of every difference whose interval holds 0."""
    near = ask("compare", platforms(("linux", 0.50, 4_000), ("mac", 0.51, 4_000)))
    far = ask("compare", platforms(("linux", 0.50, 4_000), ("mac", 0.65, 4_000)))

    assert {row.note for row in near.rows} == {WORDS[Code.NO_CHANGE]}
    assert all((row.p_value or 0) > ALPHA for row in near.rows)
    assert {row.note for row in far.rows} == {None}
    assert all(row.p_value is not None and row.p_value < 1e-3 for row in far.rows)


def test_a_difference_says_how_many_fakes_could_turn_it() -> None:
    """As many more as it is larger."""
    small, large = (
        ask("compare", platforms(("linux", 0.3, 4_000), ("mac", share, 4_000))).rows[0]
        for share in (0.4, 0.5)
    )

    assert 0 < (small.fakes_to_flip or 0) < (large.fakes_to_flip or 0)


def test_a_slice_with_few_reports_is_among_the_others_but_has_no_comparison() -> None:
    """Nothing is missing from what the others are compared with."""
    few = exact({"platform": "win"}, 1.0, 60)
    parts = platforms(("linux", 0.5, 4_000), ("mac", 0.4, 3_000), ("bsd", 0.4, 500))

    found = ask("compare", [*parts, few])

    rows = {row.dimensions["platform"]: row for row in found.rows}
    assert [name for name, row in rows.items() if row.value is None] == ["win"]
    assert rows["bsd"].value == pytest.approx(0.4 - 3_260 / 7_060, abs=1e-3)
    assert rows["bsd"].n == 7_560
    assert found.facts["comparisons"] == 3


def test_nothing_to_compare_with_is_said() -> None:
    """One group has no other; of time, no stretch before it."""
    alone = ask("compare", [exact({"platform": "linux"}, 0.5, 500)])
    once = ask("compare", [exact({"time": "2026-01"}, 0.5, 500)])

    assert alone.rows[0].reason == "nothing else beside it has enough reports"
    (said,) = map(str, once.warnings)
    rule = "only 2026-01 has reports; take another range to compare with"
    assert said == f"there is nothing to compare: {rule}"


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


def test_means_are_compared_in_their_unit() -> None:
    """And their spread is bounded by the range."""
    ages = [
        Slice(AGE, {"platform": name}, 600, np.array([total, total**2 // 600 + 10**6, 0]), (0,))
        for name, total in (("linux", 600 * 60), ("mac", 600 * 80))
    ]

    (row,) = ask("compare", ages, options={"against": "linux"}).rows

    assert row.unit == "years"
    assert row.value == pytest.approx(10.0)


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
