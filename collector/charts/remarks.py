"""What a reader must know beside the numbers, once for all rows of a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from ..analytics.rows import RAW, Row
from .frame import Note
from .labels import label_of
from .letters import one_line
from .number import numbers_of

_MOST: Final = 3  # notes of single rows; the others are told by a pointer and in the table


def remarks(
    rows: Sequence[Row], still_open: str = "so far: the period is still running"
) -> list[Note]:
    """Return what is to be told of *rows*: open periods, post-processing, and their notes."""
    numbered = [row for row in rows if numbers_of(row)]
    found = [Note(still_open)] if any(row.is_open for row in numbered) else []
    moved = sorted({row.postprocess for row in numbered if row.raw is not None} - {RAW})
    if moved:
        words = "values are post-processed ({}); intervals are those of the unbiased numbers"
        found.append(Note(words.format(", ".join(moved))))
    return [*found, *map(Note, _told(numbered))]


def _told(rows: Sequence[Row]) -> Iterator[str]:
    counts = Counter(one_line(row.note) for row in rows if row.note)
    single = [note for note, count in counts.items() if count == 1 and len(rows) > 1]
    for note, count in counts.items():
        if count == len(rows):
            yield note
        elif count > 1:
            yield f"{note} ({count:,} of {len(rows):,})"
    for row in rows if len(single) <= _MOST else ():
        if row.note and one_line(row.note) in single:
            yield f"{label_of(row)}: {one_line(row.note)}"
