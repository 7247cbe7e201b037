"""Numbers are never more precise than their interval, and never blurred beyond it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.analytics.rows import RELATIVE, SHARE
from collector.rendering.numbers import (
    MINUS,
    POINTS,
    ends_of,
    number,
    reading,
    tick_labels,
)
from tests.support.sites.gallery import row

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


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 10))
def test_what_is_shown_holds_all_of_the_interval(value: float, part: float) -> None:
    """Value and half-width as printed: rounded up, also for what the value was rounded by."""
    half = part * max(abs(value), 1.0)
    shown = reading(row("a", value, half, unit="ms")).replace("−", "-").replace(",", "")

    centre, reach = (float(part.removesuffix(" ms ")) for part in shown.split("±"))
    assert centre - reach <= value - half + 1e-6 * half
    assert centre + reach >= value + half - 1e-6 * half


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
