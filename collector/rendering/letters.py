"""Texts as lines, and how wide they are, without a font.

Widths are of a wide sans-serif, so that what fits here fits everywhere.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from unicodedata import bidirectional, category, combining, east_asian_width

ELLIPSIS: Final = "…"
_THIN: Final = frozenset("iIjl.,:;'|!()[]{} ft-/")  # parts of an em: see _em
_BROAD: Final = frozenset("mwMW@%—…")
# Marks that turn the order of the letters after them, also of numbers that are not the label's.
_TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SPACES: Final = re.compile(r"\s+")
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "RLE", "RLO", "RLI"})


@lru_cache(4_096)  # labels, drawn twice on a page and written in its table
def one_line(text: str) -> str:
    """Return *text* as one line that turns no letters but its own."""
    if text.isascii():
        return " ".join(text.split())
    flat = _SPACES.sub(" ", _TURNING.sub("", text)).strip()
    turned = any(bidirectional(letter) in _RIGHT_TO_LEFT for letter in flat)
    return f"\u2068{flat}\u2069" if turned else flat


@lru_cache(4_096)
def width_of(text: str, size: float) -> float:
    """Return about how wide *text* is at the font size *size*, in user units, rather too wide."""
    return size * sum(map(_em, text))


def shortened(text: str, size: float, room: float) -> str:
    """Return *text* as one line, with an ellipsis for what does not fit into *room* user units."""
    line = one_line(text)
    if width_of(line, size) <= room:
        return line
    width, letters = room - width_of(ELLIPSIS, size), []
    for letter in line:
        width -= size * _em(letter)
        if width < 0:
            break
        letters.append(letter)
    closed = "\u2069" if line.startswith("\u2068") else ""
    return "".join(letters).rstrip() + ELLIPSIS + closed


def wrapped(text: str, size: float, room: float, between: str = " ") -> list[str]:
    """Return *text* as lines no wider than *room* user units, broken where *between* stands."""
    lines: list[str] = []
    for part in one_line(text).split(between):
        longer = f"{lines[-1]}{between}{part}" if lines else part
        if lines and width_of(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(shortened(part, size, room))
    return lines


@lru_cache(1_024)
def _em(letter: str) -> float:
    if combining(letter) or category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if east_asian_width(letter) in ("W", "F"):
        return 1.05
    if letter in _THIN:
        return 0.4
    if letter in _BROAD:
        return 1.0
    return 0.72 if letter.isupper() else 0.63
