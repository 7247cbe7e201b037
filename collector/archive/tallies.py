"""From files to tallies: what a process of the engine runs.  Integers only; sums in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TypeAlias

from ..core.cells import Cell
from ..core.entry import Accepted
from ..core.errors import ArchiveError, CorruptEntryError
from ..estimation.tally import Mechanisms, sum_vectors, tally_entries, vector_of
from .rows import read_rows

Place: TypeAlias = tuple[int, Cell]  # the shard, and the cell in it
Vectors: TypeAlias = dict[Place, bytes]  # packed big-endian int64, n first


def tally_file(path: Path, mechanisms: Mechanisms) -> Vectors:
    """Return the tallies of the rows in a file; rows of a metric without mechanism are left out.

    Raises: ArchiveError: the file, or a row in it, is not what was written.
    """
    shards: dict[int, list[Accepted]] = {}
    for shard, row in read_rows(path):
        if row.cell.metric in mechanisms:
            shards.setdefault(shard, []).append(row)
    try:
        return {
            (shard, cell): vector_of(pairs, mechanisms[cell.metric].tally_size)
            for shard, rows in shards.items()
            for cell, pairs in tally_entries([rows], mechanisms).items()
        }
    except CorruptEntryError as error:
        raise ArchiveError(f"archive.file={path}: holds payloads that no value can give") from error


def add(parts: Sequence[Vectors], mechanisms: Mechanisms) -> Vectors:
    """Return the sum of *parts*, cell by cell."""
    return reduce(lambda left, right: _add_two(left, right, mechanisms), parts, {})


def _add_two(left: Mapping[Place, bytes], right: Vectors, mechanisms: Mechanisms) -> Vectors:
    total = dict(left)
    for place, vector in right.items():
        known = total.get(place)
        size = mechanisms[place[1].metric].tally_size
        total[place] = vector if known is None else sum_vectors([known, vector], size)
    return total
