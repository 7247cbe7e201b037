"""Numbers are never more precise than their interval, and never blurred beyond it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.analytics.rows import RELATIVE, SHARE, Row, chance
from collector.rendering.numbers import (
    MINUS,
    POINTS,
    ends_of,
    margin,
    number,
    plus_minus,
    reading,
    tick_labels,
)
from tests.support.sites.gallery import REASON, blank, row

_POWER = re.compile(r"(-?[\d.]+) × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read(text: str) -> tuple[float, float]:
    """Return what is shown, and what one in its last digit is worth."""
    plain = text.replace(MINUS, "-").replace(",", "").strip()
    found = _POWER.fullmatch(plain)
    mantissa, power = (found[1], int(found[2].translate(_DIGITS))) if found else (plain, 0)
    decimals = len(mantissa.partition(".")[2])
    return float(mantissa) * 10.0**power, 10.0 ** (power - decimals)


numbers = st.floats(-1e12, 1e12, allow_nan=False)
half_widths = st.floats(1e-12, 1e12)


@given(numbers, half_widths)
def test_what_is_shown_is_the_value_within_half_its_interval(value: float, half: float) -> None:
    shown, _ = read(number(value, "", half))

    assert abs(shown - value) <= half / 2 + 1e-9 * abs(value)


@given(numbers, st.floats(1e-12, 1.0))
def test_no_digit_is_shown_that_is_worth_less_than_a_twentieth_of_the_interval(
    value: float, half: float
) -> None:
    _, last = read(number(value, "", half))

    assert last >= half / 20.5


@given(st.floats(-1e9, 1e9), st.floats(1.0, 1e9))
def test_digits_above_the_point_are_rounded_too(value: float, half: float) -> None:
    shown, _ = read(number(value, "", half))

    step = 10.0 ** (len(str(int(half))) - 1)
    unit = step / 10 if half < 2.05 * step else step
    assert shown == pytest.approx(unit * round(shown / unit), abs=unit / 1e3)


@pytest.mark.parametrize(
    ("value", "unit", "half", "text"),
    [
        (0.20134, "share", 0.0034, "20.1 %"),
        (0.20134, "share", 0.0104, "20.1 %"),
        (0.20134, "share", 0.034, "20 %"),
        (0.20134, "share", 0.0199999, "20 %"),
        (38.52, "years", 0.7, "38.5 years"),
        (12_345_678, "devices", 20_000, "12,350,000 devices"),
        (-0.0001, "share", 0.01, "0.0 %"),
        (0.0123, POINTS, 0.004, "1.2 points"),
        (-0.0123, POINTS, 0.004, f"{MINUS}1.2 points"),
        (0.5, "share", 0, "50 %"),
        (1_234_567, "", 0, "1,234,567"),
        (2e-9, "s", 1e-10, "2.00 × 10⁻⁹ s"),
    ],
)
def test_numbers_read_as_people_write_them(value: float, unit: str, half: float, text: str) -> None:
    assert number(value, unit, half) == text


@pytest.mark.parametrize(
    ("unit", "single"),
    [
        *(("pages", "page"), ("queries", "query"), ("watches", "watch"), ("boxes", "box")),
        *((unit, unit) for unit in ("ms", "s", "kbps", "iops", "series", "Celsius", "press")),
        *((unit, unit) for unit in ("", "€", "<script>s", "pages a visit")),
    ],
)
def test_one_thing_is_told_in_the_singular(unit: str, single: str) -> None:
    """Law: what is no plain English plural stays as it was declared."""
    assert number(1.0, unit, 0) == f"1 {single}".rstrip()
    assert number(-1.2, unit, 3.0) == f"{MINUS}1 {single}".rstrip()
    assert number(1.04, unit, 0.3) == f"1.0 {unit}".rstrip()
    assert number(21.0, unit, 0) == f"21 {unit}".rstrip()


def test_a_signed_number_shows_its_plus_but_zero_has_none() -> None:
    assert number(0.012, POINTS, 0.004, signed=True) == "+1.2 points"
    assert number(0.0, POINTS, 0.004, signed=True) == "0.0 points"
    assert number(0.0004, POINTS, 0.02, signed=True) == "0 points"
    assert number(-0.0004, POINTS, 0.02, signed=True) == "0 points"


def test_a_row_reads_as_value_and_half_width() -> None:
    assert reading(row("a", 0.201, 0.0034)) == "20.1 % ± 0.4"
    assert plus_minus(0.0034, "share") == "± 0.4"


def test_an_interval_whose_arms_differ_is_written_by_its_ends() -> None:
    skewed = replace(row("a", 0.012, 0.008), ci_low=0.004, ci_high=0.029)

    assert margin(skewed) == "(0.4 to 2.9)"
    assert reading(skewed) == "1.2 % (0.4 to 2.9)"


def test_whole_numbers_with_whole_ends_have_no_decimals() -> None:
    """A quantile of a count is one of its values; of a mean the ends are not whole, too."""
    quantile = Row({}, 3.0, 2.0, 4.0, 0.5, 900, 0.05, "good", "pages")

    assert reading(quantile) == "3 pages ± 1"
    assert reading(replace(quantile, value=1.0, ci_low=1.0, ci_high=2.0)) == "1 page (1 to 2)"
    assert reading(replace(quantile, ci_low=2.4, ci_high=3.6)) == "3.0 pages ± 0.6"


def test_an_interval_that_leaves_out_zero_is_not_written_as_one_around_it() -> None:
    """Law: "more than noise" never stands beside a ± that reaches 0.  A ± of 54 would."""
    sure = replace(row("a", 0.44, 0.475), ci_low=0.03, ci_high=0.98)
    below = replace(row("a", -0.44, 0.475), ci_low=-0.98, ci_high=-0.03)
    unsure = replace(row("a", 0.44, 0.475), ci_low=-0.01, ci_high=0.94)

    assert reading(sure) == "44 % (3 to 98)"
    assert reading(below) == f"{MINUS}44 % ({MINUS}98 to {MINUS}3)"
    assert margin(unsure).startswith("± ")


def test_a_row_without_a_number_reads_as_its_reason() -> None:
    assert reading(blank("a")) == REASON
    assert margin(blank("a")) == ""


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_no_number(value: float) -> None:
    assert reading(replace(row("a", 0.1, 0.01), value=value)) == "no number"


@pytest.mark.parametrize(
    ("ticks", "unit", "labels"),
    [
        ((0.0, 0.2, 0.4), "share", ["0 %", "20 %", "40 %"]),
        ((0.0, 0.005, 0.01), "share", ["0.0 %", "0.5 %", "1.0 %"]),
        ((0.0, 50_000.0, 100_000.0), "", ["0", "50 k", "100 k"]),
        ((0.0, 2e6, 4e6), "", ["0", "2 M", "4 M"]),
        ((-5.0, 0.0, 5.0), "ms", [f"{MINUS}5", "0", "5"]),
        ((0.0, 1e-8, 2e-8), "s", ["0", "1.00 × 10⁻⁸", "2.00 × 10⁻⁸"]),
    ],
)
def test_ticks_share_their_digits(ticks: tuple[float, ...], unit: str, labels: list[str]) -> None:
    assert tick_labels(ticks, unit) == labels


def test_a_small_p_value_is_not_claimed_to_the_digit() -> None:
    assert chance(1e-9) == "p < 0.001"
    assert chance(0.0123) == "p = 0.012"


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 10))
def test_what_is_shown_holds_all_of_the_interval(value: float, part: float) -> None:
    """Value and half-width as printed: rounded up, also for what the value was rounded by."""
    half = part * max(abs(value), 1.0)
    shown = reading(row("a", value, half, unit="ms")).replace("−", "-").replace(",", "")

    centre, reach = (float(part.removesuffix(" ms ")) for part in shown.split("±"))
    assert centre - reach <= value - half + 1e-6 * half
    assert centre + reach >= value + half - 1e-6 * half


def test_what_is_counted_has_all_its_digits() -> None:
    """Bounds that were rounded would not hold."""
    counted = Row({}, 16_234.0, 16_234.0, 64_001.0, 0.0, 64_001, 0.05, "good", "devices")

    assert reading(counted) == "16,234 devices (16,234 to 64,001)"


@given(st.floats(1e-3, 1e6), st.floats(1e-2, 1e3), st.sampled_from((SHARE, "", RELATIVE)))
def test_an_interval_beside_zero_is_not_rounded_across_it(
    half: float, part: float, unit: str
) -> None:
    """6.1 ± 5.0 tells an effect; 6 ± 7 would hide it."""
    for sign in (1, -1):
        shown = row("a", sign * half * (1 + part), half, unit=unit)
        words = reading(shown).replace(" %", "")
        centre, reach = (read(number)[0] for number in words.split("±"))
        low, high = (read(end.removesuffix(" %"))[0] for end in ends_of(shown))

        assert abs(centre) > reach
        assert low * high > 0


def test_the_reading_of_a_lift_keeps_its_sign() -> None:
    """From 1.1 to 11.1: found by a test with p = 0.017."""
    assert reading(row("a", 6.1, 5.0, unit="EUR")) == "6.1 EUR ± 5.0"
    assert reading(row("a", 6.1, 6.2, unit="EUR")) == "6 EUR ± 7"


def test_a_difference_of_shares_is_told_in_points() -> None:
    """9 % more is not 9 points more."""
    found = replace(row("a", 0.09, 0.04), p_value=0.001)

    assert reading(found) == "9 points ± 4"
    assert ends_of(found) == ("5 points", "13 points")
