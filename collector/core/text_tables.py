"""Tables of text, as commands print them, and bounds in them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

# Control characters but tab and the end of a line, marks that turn the order of letters round,
# separators of lines and paragraphs, and halves of pairs, which no terminal can be sent.
_ACTS: Final = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff]|\r(?!\n)"
)
_GAP: Final = "  "  # between columns
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")  # in Markdown


def table_lines(rows: Sequence[Sequence[str]], aligned: str, indent: str = "") -> Iterator[str]:
    """Yield *rows* as lines with columns of equal width.

    Args: aligned: a ``<`` or ``>`` for each column, to the left or to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, aligned, widths, strict=True)
        line = _GAP.join(f"{cell:{side}{width}}" for cell, side, width in cells)
        yield indent + line.rstrip()


def in_digits(number: float, digits: int = 3) -> str:
    """Return *number* in so many digits, without a power of ten: "380", "1,200,000"."""
    return f"{float(f'{number:.{digits}g}'):,.15g}"


def above(number: float) -> str:
    """Return *number* with three digits, rounded up: a bound is never shown smaller than it is."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return f"{math.ceil(number / unit * (1 - 1e-12)) * unit:.3g}"


def plain(text: str) -> str:
    r"""Return *text* with escapes, such as ``\u001b``, for letters that a terminal would obey.

    They are those of JSON, so a JSON document stays the same document.
    """
    return _ACTS.sub(lambda letter: f"\\u{ord(letter[0]):04x}", text)


def plain_line(text: str) -> str:
    """Return *text* as ``plain`` does, on one line."""
    return plain(" ".join(text.splitlines()))


def plain_text(markdown: str) -> str:
    """Return *markdown* without its links."""
    return _LINK.sub(r"\1", markdown)
