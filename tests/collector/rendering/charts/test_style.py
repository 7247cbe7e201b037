"""How charts look: colours, numbers and letters."""

from __future__ import annotations

import re
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import collector.web
from collector.analytics.rows import RELATIVE, SHARE
from collector.rendering.charts import ChartOptions
from collector.rendering.charts.svg import (
    CERTAINTY,
    CSS,
    DARK,
    LIGHT,
    SERIES,
    STEPS,
    blended,
    contrast,
    ink_on,
    paint,
)
from collector.rendering.numbers import MINUS, POINTS, ends_of, number, reading, tick_labels
from tests.support.sites.drawing import parsed
from tests.support.sites.gallery import PICTURES, row

FILE = Path(str(collector.web.__file__)).parent / "static" / "charts.css"
RENEW = (
    "python -c 'from collector.rendering.charts.svg import CSS; print(CSS, end=\"\")' > "
    + FILE.name
)


def test_the_file_of_the_pages_is_the_text_of_the_charts() -> None:
    assert FILE.read_text(encoding="utf-8") == CSS, RENEW


def test_the_style_sheet_is_the_same_in_xml_and_html() -> None:
    assert not set("<>&") & set(CSS)


def test_the_style_sheet_loads_nothing() -> None:
    assert not re.search(r"url\(|@import|expression", CSS)


@pytest.mark.parametrize("name", PICTURES)
def test_every_coloured_class_follows_light_and_dark(name: str) -> None:
    root = parsed(PICTURES[name](ChartOptions()))

    classes = {one for element in root.iter() if (one := element.get("class"))}
    unpainted = {"chart", "chart spark", "mark", "hover"}
    assert [c for c in classes - unpainted if not rules_of(c)] == []


@pytest.mark.parametrize("name", PICTURES)
def test_a_chart_of_a_page_says_each_row_in_one_attribute(name: str) -> None:
    alone, of_page = (PICTURES[name](ChartOptions(styled=styled)) for styled in (False, True))

    rows = alone.count(" data-label=") + alone.count(" data-row=")
    assert (of_page.count(" data-label="), of_page.count(" data-row=")) == (0, rows)


def rules_of(name: str) -> list[str]:
    """Return the rules that paint the class called *name*: its own, or that of its family."""
    family = name.rstrip("0123456789")
    rules = (f".chart .{name}{{", *((f".chart [class^='{family}']{{",) if family != name else ()))
    return [rule for rule in rules if rule in CSS]


def test_a_paint_carries_its_light_colours_for_readers_without_styles() -> None:
    assert paint("bar") == {"class_": "bar", "fill": "#0b60b0", "fill_opacity": "0.55"}


Colour = tuple[float, ...]
THEMES: Final = {"light": LIGHT, "dark": DARK}
APART: Final = 0.12  # of OKLab; the eight colours of Okabe and Ito are 0.076 apart at least
MARK: Final = 3.0  # contrast that graphics need
TEXT: Final = 4.5  # contrast that texts need
# How complete deficiencies see linear RGB.
# Source: Machado, Oliveira and Fernandes, IEEE TVCG 2009, table 1, severity 1.0.
VISIONS: Final = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def linear(colour: str) -> Colour:
    channels = [channel / 255 for channel in bytes.fromhex(colour[1:])]
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)


def times(matrix: tuple[tuple[float, ...], ...], colour: Colour) -> Colour:
    return tuple(sum(a * b for a, b in zip(line, colour, strict=True)) for line in matrix)


def oklab(colour: Colour) -> Colour:
    """Return a linear colour as OKLab.  Source: Ottosson 2020, A perceptual color space."""
    cones = times(
        (
            (0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005),
        ),
        tuple(min(max(channel, 0.0), 1.0) for channel in colour),
    )
    return times(
        (
            (0.2104542553, 0.7936177850, -0.0040720468),
            (1.9779984951, -2.4285922050, 0.4505937099),
            (0.0259040371, 0.7827717662, -0.8086757660),
        ),
        tuple(cone ** (1 / 3) for cone in cones),
    )


def nearest(colours: list[str], vision: str) -> float:
    """Return the least distance of two colours as *vision* sees them."""
    seen = [oklab(times(VISIONS[vision], linear(colour))) for colour in colours]
    return min(dist(a, b) for a, b in combinations(seen, 2))


def series(theme: str) -> list[str]:
    return [THEMES[theme][f"series-{number}"] for number in range(1, SERIES + 1)]


def steps(theme: str) -> list[str]:
    return [THEMES[theme][f"step-{number}"] for number in range(1, STEPS + 1)]


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", THEMES)
def test_lines_are_told_apart_whatever_the_colour_vision(theme: str, vision: str) -> None:
    assert nearest(series(theme), vision) >= APART


def test_red_and_green_of_one_lightness_would_be_noticed() -> None:
    """The control."""
    colours = ["#c0392b", "#5d8a2b"]

    assert nearest(colours, "normal") >= APART
    assert nearest(colours, "deutan") < APART


@pytest.mark.parametrize("theme", THEMES)
def test_lines_and_texts_stand_out_from_the_paper(theme: str) -> None:
    colours = THEMES[theme]

    assert min(contrast(colour, colours["paper"]) for colour in series(theme)) >= MARK
    assert min(contrast(colours[name], colours["paper"]) for name in ("ink", "soft")) >= TEXT


@pytest.mark.parametrize("theme", THEMES)
def test_more_always_stands_out_more(theme: str) -> None:
    found = [contrast(colour, THEMES[theme]["paper"]) for colour in steps(theme)]

    assert found == sorted(found)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", THEMES)
def test_steps_are_told_from_their_neighbours(theme: str, vision: str) -> None:
    pairs = zip(steps(theme), steps(theme)[1:], strict=False)

    assert min(nearest(list(pair), vision) for pair in pairs) >= 0.05


@pytest.mark.parametrize("opacity", CERTAINTY.values())
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_numbers_printed_in_cells_can_be_read(step: int, opacity: float) -> None:
    letters = ink_on(step, opacity)["class_"].removeprefix("on-")

    for letter, colours in zip(letters, THEMES.values(), strict=True):
        ground = blended(colours[f"step-{step}"], colours["paper"], opacity)
        assert contrast({"k": "#000000", "w": "#ffffff"}[letter], ground) >= TEXT


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
