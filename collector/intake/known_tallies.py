"""Which tallies a process knows to be there, in 16 bytes each.

A tally is known by a fingerprint of 64 bits.  What names a tally goes through the interpreter's
keyed hash together with a secret of this table, so no one can look for two with the same one.  If
two do meet, the second is taken for there: its bytes are not counted to the key that began it.
Nothing else rests on a fingerprint.

Fingerprints lie in buckets, the last used first.  A full bucket forgets its last one, which is then
asked for again.  A table in which that happens often grows, up to a limit.

The tallies of the last uploads are also kept by name, which is looked up in a tenth of the time.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from itertools import repeat
from struct import Struct
from typing import Final

from ..core.cells import Cell

LEAST_SIZE: Final = 1 << 20  # bytes: 65,000 tallies, half full
MOST_SIZE: Final = 64 << 20  # bytes: 4 million
_FINGERPRINT: Final = Struct("<q")
_EACH: Final = _FINGERPRINT.size  # bytes
_BUCKET: Final = 16 * _EACH  # bytes; half full on average, one in 250 runs over
_BACK: Final = _BUCKET // 2  # bytes: what lies behind is moved to the front when it is used
_CROWDED: Final = 64  # the table grows when one place of so many was taken from another tally
_EMPTY: Final = bytes(_EACH)
_NAMED: Final = 16_384  # tallies kept by name, some 300 bytes each
_pack, _unpack = _FINGERPRINT.pack, _FINGERPRINT.unpack


class KnownTallies:
    """A set of tallies that forgets the least recently used.

    Safe to share between threads without a lock: two that move fingerprints of one bucket at once
    may lose one of them, which is then asked for again.
    """

    def __init__(self, least: int = LEAST_SIZE, most: int = MOST_SIZE) -> None:
        """Take *least* bytes at first and *most* in the end, both powers of two."""
        self._secret = secrets.token_bytes(16)
        self._table, self._most = bytearray(least), most
        self._named: set[tuple[int, Cell]] = set()
        self._forgotten = 0  # of those known since the table has this size

    @property
    def size(self) -> int:
        """Bytes that the table takes."""
        return len(self._table)

    def has(self, shard: int, cells: Collection[Cell]) -> bool:
        """Return whether the tallies of all *cells* on *shard* are known."""
        known = self._named  # of another day, if it is cleared meanwhile
        if known.issuperset(zip(repeat(shard), cells)):
            return True
        table, secret = self._table, self._secret
        buckets = len(table) // _BUCKET
        for metric, epoch, segment, _ in cells:
            named = hash((secret, shard, metric, epoch, segment))
            mark, start = _pack(named), named % buckets * _BUCKET
            at = table.find(mark, start, start + _BUCKET)
            if at < 0:
                return False
            if at >= start + _BACK:
                table[start : at + _EACH] = mark + table[start:at]
        if len(known) > _NAMED:
            known.clear()
        known.update(zip(repeat(shard), cells))
        return True

    def add(self, shard: int, cell: Cell) -> None:
        """Know the tally of *cell* on *shard* from now on."""
        if self.has(shard, [cell]):
            return
        self._put(_pack(hash((self._secret, shard, *cell[:3]))))
        if self._forgotten * _EACH * _CROWDED > self.size and self.size < self._most:
            self._grow()

    def clear(self) -> None:
        """Know none."""
        self._table, self._forgotten = bytearray(self.size), 0
        self._named = set()

    def _put(self, mark: bytes) -> None:
        """Put *mark* first in its bucket, in place of the last."""
        table = self._table
        start = _unpack(mark)[0] % (len(table) // _BUCKET) * _BUCKET
        last = start + _BUCKET - _EACH
        self._forgotten += table[last : start + _BUCKET] != _EMPTY
        table[start : start + _BUCKET] = mark + table[start:last]

    def _grow(self) -> None:
        """Take twice the bytes, and begin anew: to move what is known would hold up uploads."""
        self._table, self._forgotten = bytearray(2 * self.size), 0
