"""Colours, light and dark: told apart by people with any colour vision, and readable on paper.

The six of the series were searched for the greatest least distance under normal vision and under
three simulated deficiencies; a test measures them.  Lightness has one order along a ramp,
turned round on a dark page so that more always stands out more.
"""

from __future__ import annotations

from typing import Final

_RAMP: Final = ("#cdeed8", "#90dab2", "#49c1ad", "#3497a9", "#37659e", "#403872", "#251729")
_NIGHT_RAMP: Final = ("#3a2a55", "#454283", "#37659e", "#3497a9", "#49c1ad", "#96ddb5", "#def5e5")
STEPS: Final = len(_RAMP)
SERIES: Final = 6  # more lines in one picture cannot be told apart
_BASE: Final = {"ink": "#1b1f24", "soft": "#57606a", "faint": "#e4e8ec", "line": "#8c959f"}
_NIGHT: Final = {"ink": "#e6edf3", "soft": "#9aa6b2", "faint": "#262c34", "line": "#6e7781"}
_LINES: Final = ("#0b60b0", "#ed6b1e", "#40a489", "#7e0462", "#6e5b33", "#ac76ea")
_NIGHT_LINES: Final = ("#0d7efc", "#d94a09", "#6dfbb3", "#9b678b", "#e7a30e", "#c3b7fe")


def _named(prefix: str, colours: tuple[str, ...]) -> dict[str, str]:
    return {f"{prefix}{number}": colour for number, colour in enumerate(colours, 1)}


LIGHT: Final = {
    **_BASE,
    "paper": "#ffffff",
    **_named("series-", _LINES),
    **_named("step-", _RAMP),
}
DARK: Final = {
    **_NIGHT,
    "paper": "#0d1117",
    **_named("series-", _NIGHT_LINES),
    **_named("step-", _NIGHT_RAMP),
}


def blended(colour: str, paper: str, opacity: float) -> str:
    """Return what *colour* looks like on *paper* at *opacity*."""
    pairs = zip(_channels(colour), _channels(paper), strict=True)
    return "#" + "".join(
        f"{round(opacity * over + (1 - opacity) * under):02x}" for over, under in pairs
    )


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21.

    Source: Web Content Accessibility Guidelines 2.2, relative luminance and contrast ratio.
    """
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))
