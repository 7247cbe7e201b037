"""Tables of text, as commands print them."""

from __future__ import annotations

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
