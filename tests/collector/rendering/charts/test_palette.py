"""Lines are told apart by people with any colour vision, and everything can be read."""

from __future__ import annotations

from itertools import combinations
from math import dist
from typing import Final

import pytest

from collector.rendering.charts.svg import (
    CERTAINTY,
    DARK,
    LIGHT,
    SERIES,
    STEPS,
    blended,
    contrast,
    ink_on,
)

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
