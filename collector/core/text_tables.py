"""Tables of text, as commands print them, and bounds in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

_GAP: Final = "  "  # between columns


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
    """Return *number* with three digits, rounded up: a bound is never told smaller than it is."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return f"{math.ceil(number / unit * (1 - 1e-12)) * unit:.3g}"
