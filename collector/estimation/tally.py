"""Integers only: columns of payloads to increments, stored vectors to one tally.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms import Checked

from ..core.cells import Cell
from ..core.entry import AcceptedColumn
from ..core.errors import CorruptEntryError, TallyOverflowError
from ..storage.values import COUNTER_SIZE
from .arrays import AnyMechanism

Mechanisms: TypeAlias = Mapping[bytes, AnyMechanism]  # by metric digest
Vector: TypeAlias = NDArray[np.int64]

_BLOCK: Final = 1 << 16  # counters summed at once: 512 KiB stay in a processor's cache
_LARGEST: Final = (1 << 63) - 1


def check_column(mechanism: AnyMechanism, payloads: bytes) -> Checked:
    """Keep the valid payloads of a column and count the others by reason."""
    return mechanism.check(payloads, np)


def tally_entries(
    entries: Iterable[Sequence[AcceptedColumn]], mechanisms: Mechanisms
) -> dict[Cell, list[tuple[int, int]]]:
    """Return the increments that fold *entries*, each cell tallied once over all of them.

    Args:   entries: the decoded columns of each entry.  mechanisms: must hold every digest.
    Returns: of each cell its (index, delta) without zeros; index 0 is n, i + 1 is tally cell i.
             The last cell stands there even so: it tells the store how wide the tally is.
    Raises: CorruptEntryError: payloads of another size or outside the mechanism's range.
    """
    columns: dict[Cell, list[bytes]] = {}
    for entry in entries:
        for column in entry:
            columns.setdefault(column.cell, []).append(column.payloads)
    return {
        cell: _increments(mechanisms[cell.metric], b"".join(parts))
        for cell, parts in columns.items()
    }


def _increments(mechanism: AnyMechanism, payloads: bytes) -> list[tuple[int, int]]:
    n, rest = divmod(len(payloads), mechanism.payload_size)
    if rest:
        raise CorruptEntryError(f"entry.payloads: must be whole, {mechanism.payload_size} bytes")
    if not n:
        return []
    tally = mechanism.tally(payloads, np)
    if tally.shape != (mechanism.tally_size,):
        raise CorruptEntryError("entry.payloads: must be within the mechanism's range")
    touched = np.flatnonzero(tally)
    pairs = zip((touched + 1).tolist(), tally[touched].tolist(), strict=True)
    return _with_last([(0, n), *pairs], mechanism.tally_size)


def _with_last(pairs: list[tuple[int, int]], last: int) -> list[tuple[int, int]]:
    return pairs if pairs[-1][0] == last else [*pairs, (last, 0)]


def merge(vectors: Sequence[bytes], tally_size: int) -> tuple[int, Vector]:
    """Add stored *vectors* and return n and the tally, int64 of shape (tally_size,).

    Args:   vectors: packed big-endian int64, n first; trailing zeros may be missing.
    Raises: InvalidTallyError: a vector is longer than this tally or not whole.
            TallyOverflowError: the sum may not fit int64.
    """
    total = Sum(tally_size)
    total.add(vectors)
    return total.n, total.tally


class Sum:
    """Vectors added up as they come: what it takes is one of them."""

    def __init__(self, tally_size: int) -> None:
        """Begin with nothing."""
        self._total = np.zeros(tally_size + 1, dtype=np.int64)
        self._bound = 0  # no counter can be further from zero

    @property
    def n(self) -> int:
        """Reports."""
        return int(self._total[0])

    @property
    def tally(self) -> Vector:
        """The tally, int64 of shape (tally_size,)."""
        return self._total[1:]

    def add(self, vectors: Sequence[bytes]) -> None:
        """Add *vectors*.  Raises InvalidTallyError, TallyOverflowError, as ``merge`` does."""
        width = len(self._total)
        sizes = set(map(len, vectors))
        if any(size > width * COUNTER_SIZE or size % COUNTER_SIZE for size in sizes):
            rule = f"must be at most {width} counters of {COUNTER_SIZE} bytes"
            raise InvalidTallyError(f"vector: {rule}")
        step = max(1, _BLOCK // width)
        for first in range(0, len(vectors), step):
            block = _unpack(vectors[first : first + step], width)
            self._bound += len(block) * max(int(block.max()), -int(block.min()))
            if self._bound > _LARGEST:
                raise TallyOverflowError("tally: the sum over shards and epochs leaves int64")
            self._total += block.sum(axis=0)


def merge_cells(vectors: Iterable[tuple[Cell, bytes]], tally_size: int) -> list[tuple[Cell, bytes]]:
    """Return packed *vectors* with those of the same cell, from several shards, as one.

    As they are where they cannot be added up: who adds them all says why.
    """
    parts = list(vectors)
    rows: dict[Cell, int] = {}
    for cell, _ in parts:
        rows.setdefault(cell, len(rows))
    width = tally_size + 1
    sizes = {len(vector) for _, vector in parts}
    if len(rows) == len(parts) or any(s > width * COUNTER_SIZE or s % COUNTER_SIZE for s in sizes):
        return parts
    total = np.zeros((len(rows), width), dtype=np.int64)
    bound, step = 0, max(1, _BLOCK // width)
    for first in range(0, len(parts), step):
        some = parts[first : first + step]
        block = _unpack([vector for _, vector in some], width)
        bound += len(block) * max(int(block.max()), -int(block.min()))
        if bound > _LARGEST:
            return parts
        places = [rows[cell] for cell, _ in some]
        if len(set(places)) < len(places):
            np.add.at(total, places, block)
        else:  # of one shard, mostly: five times as fast
            total[places] += block
    packed, size = total.astype(">i8").tobytes(), width * COUNTER_SIZE
    return [(cell, packed[row * size : (row + 1) * size]) for cell, row in rows.items()]


def vector_of(pairs: Sequence[tuple[int, int]], tally_size: int) -> bytes:
    """Return (index, delta) pairs, as of an increment, as a vector of *tally_size* + 1 counters."""
    counters = np.zeros(tally_size + 1, dtype=">i8")
    if pairs:
        indexes, deltas = zip(*pairs, strict=True)
        counters[list(indexes)] = deltas
    return counters.tobytes()


def pairs_of(vector: bytes) -> list[tuple[int, int]]:
    """Return the (index, delta) pairs of a packed *vector*, as of an increment; the reverse."""
    counters = np.frombuffer(vector, dtype=">i8")
    touched = np.flatnonzero(counters)
    pairs = list(zip(touched.tolist(), counters[touched].tolist(), strict=True))
    return _with_last(pairs, len(counters) - 1) if pairs else []


def sum_vectors(vectors: Sequence[bytes], tally_size: int) -> bytes:
    """Add packed *vectors* to one.  Raises InvalidTallyError, TallyOverflowError."""
    n, tally = merge(vectors, tally_size)
    return np.concatenate(([n], tally)).astype(">i8").tobytes()


def sorted_payloads(payloads: bytes, payload_size: int) -> bytes:
    """Return a column of *payloads* in ascending order, which says nothing of where it came from.

    Raises: CorruptEntryError: they are not whole.
    """
    if len(payloads) % payload_size:
        raise CorruptEntryError(f"payloads: must be whole, {payload_size} bytes")
    return np.sort(np.frombuffer(payloads, dtype=f"S{payload_size}")).tobytes()


def fault_of(mechanism: AnyMechanism, vector: bytes) -> str:
    """Return why no reports can have left a stored *vector* behind, "" if some can."""
    try:
        n, tally = merge([vector], mechanism.tally_size)
        mechanism.require_whole(tally, n, np)
    except (InvalidTallyError, ArithmeticError) as error:
        return str(error)
    return ""


def reports_of(vector: bytes) -> int:
    """Return the number of reports in a stored *vector*."""
    return int.from_bytes(vector[:COUNTER_SIZE], "big", signed=True)


def _unpack(vectors: Sequence[bytes], width: int) -> Vector:
    """Return *vectors*, zero-padded, as int64 of shape (len(vectors), width)."""
    packed = b"".join(vectors)
    if len(packed) < len(vectors) * width * COUNTER_SIZE:
        packed = b"".join(vector.ljust(width * COUNTER_SIZE, b"\0") for vector in vectors)
    return np.frombuffer(packed, dtype=">i8").reshape(-1, width).astype(np.int64)
