"""Read tallies: which there are, and then page by page, so that neither side holds all of them.

A tally is a string of packed counters or, while few of its cells are filled, a hash of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ..core.cells import Cell
from ..core.errors import RefusedByStoreError
from .connection import Connection, Part, StoreView
from .keys import cell_of
from .values import COUNTER_SIZE, Index

LAST: Final = b"last"  # the field of a hash that holds its highest index, as in hearsay.lua
# Bytes of vectors a round trip, or one vector: the server counts what waits to be sent as memory.
PAGE: Final = 1024 * 1024
_INDEXES: Final = 4_000  # index sets a round trip
_HASHES: Final = 16  # a round trip; each has some thousand fields at most


class _Shard(NamedTuple):
    """Keys of one shard, and the cell of each: two lists, as pairs take longer."""

    keys: list[bytes]
    cells: list[Cell]


class TallyReader(StoreView):
    """The TallyStore protocol: the tallies of a deployment, and how far they are pruned."""

    def pruned(self, metrics: Sequence[bytes]) -> dict[bytes, int]:
        """Read the marks that are written before any shard's own."""
        if not metrics:
            return {}
        names = (metric.hex() for metric in metrics)
        marks = self._call("HMGET", self._keys.marks, *names)
        pairs = zip(metrics, marks, strict=True)
        return {metric: int(epoch) for metric, epoch in pairs if epoch is not None}

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        """Return which tallies of *metric* there are in *epochs*, of a class up to *latest*."""
        shards = range(self._keys.shards)
        places = [_Shard([], []) for _ in shards]
        cells: dict[Cell, Cell] = {}
        named: dict[bytes, Cell] = {}  # the same members come back in every epoch
        here: dict[bytes, Cell] = {}  # of one epoch
        for epoch, shard, members in self._members(metric, epochs):
            if not shard:
                here = {}
            head = self._keys.tallies(shard, metric, epoch).encode()
            keys, owners = places[shard]
            for member in members:
                cell = here.get(member)
                if cell is None:
                    like = named.get(member) or cell_of(metric, epoch, member.decode())
                    named[member] = like
                    if latest is not None and like.lateness > latest:
                        continue
                    cell = here[member] = Cell(metric, epoch, like.segment, like.lateness)
                    cells[cell] = cell
                keys.append(head + member)
                owners.append(cell)
        return Index(tuple(cells), sum(len(place.keys) for place in places), places)

    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        """Yield the packed vectors of *index*, of up to *width* counters each."""
        most = max(PAGE // (width * COUNTER_SIZE), 1)
        page: list[tuple[list[bytes], list[Cell]]] = []
        room = most
        for shard in index.places:
            for first in range(0, len(shard.keys), most):
                part = slice(first, first + most)
                page.append((shard.keys[part], shard.cells[part]))
                room -= len(page[-1][0])
                if room <= 0:
                    yield from self._page(page)
                    page, room = [], most
        yield from self._page(page)

    def _page(self, page: Sequence[tuple[list[bytes], list[Cell]]]) -> Iterator[tuple[Cell, bytes]]:
        vectors = iter(read(self._connection, [keys for keys, _ in page]))
        for _, cells in page:
            for cell in cells:
                vector = next(vectors)
                if vector is not None:
                    yield cell, vector

    def _members(
        self, metric: bytes, epochs: Iterable[int]
    ) -> Iterator[tuple[int, int, Sequence[bytes]]]:
        """Yield epoch, shard and members of each index set."""
        places = [(epoch, shard) for epoch in epochs for shard in range(self._keys.shards)]
        for first in range(0, len(places), _INDEXES):
            some = places[first : first + _INDEXES]
            names = [self._keys.cells(shard, metric, epoch) for epoch, shard in some]
            replies = self._call_many([("SMEMBERS", name) for name in names])
            for (epoch, shard), members in zip(some, replies, strict=True):
                yield epoch, shard, members


def read(connection: Connection, groups: Sequence[Sequence[Part]]) -> list[bytes | None]:
    """Return the vectors of *groups* of keys, each of one slot; None of a key that is no tally."""
    replies = connection.call_many([("MGET", *keys) for keys in groups])
    vectors: list[bytes | None] = [vector for reply in replies for vector in reply]
    if None in vectors:
        keys = [key for group in groups for key in group]
        lacking = [place for place, vector in enumerate(vectors) if vector is None]
        for first in range(0, len(lacking), _HASHES):
            some = lacking[first : first + _HASHES]
            strings = _hashes(connection, [keys[place] for place in some])
            for place, vector in zip(some, strings, strict=True):
                vectors[place] = vector
    return vectors


def _hashes(connection: Connection, keys: Sequence[Part]) -> list[bytes | None]:
    try:
        flats = connection.call_many([("HGETALL", key) for key in keys])
    except RefusedByStoreError as error:
        if error.code != "WRONGTYPE":
            raise
        # A hash has become a string just now, which is never undone; or somebody put a list there.
        if len(keys) == 1:
            return [_string(connection, keys[0])]
        return [vector for key in keys for vector in _hashes(connection, [key])]
    return [
        packed(flat) if flat else _string(connection, key)
        for flat, key in zip(flats, keys, strict=True)
    ]


def _string(connection: Connection, key: Part) -> bytes | None:
    vector: bytes | None = connection.call("MGET", key)[0]
    return vector


def packed(flat: Sequence[bytes]) -> bytes:
    """Return the vector of a hash: fields and values in turn."""
    cells = dict(zip(flat[::2], flat[1::2], strict=True))
    last = int(cells.pop(LAST, 0))
    indexes = [int(index) for index in cells]
    vector = bytearray((max(last, *indexes, 0) + 1) * COUNTER_SIZE)
    for index, count in zip(indexes, cells.values(), strict=True):
        struct.pack_into(">q", vector, index * COUNTER_SIZE, int(count))
    return bytes(vector)
