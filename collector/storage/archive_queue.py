"""What folds keep for the archive: one entry a fold, in a stream of each shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from ..core.cells import Cell
from ..core.errors import CorruptEntryError, TallyOverflowError
from .connection import StoreView, field
from .keys import member_of
from .preparation import change_contents, folds_of
from .values import ArchivedFold, ArchiveProgress

_DAY: Final = b"d"  # the field that holds the day of the fold
_CLASSES: Final = b"c"  # the one that holds the classes of its cells
_ENTRY: Final = b"e"  # each of those that hold an entry
_MOST: Final = 1 << 62  # the counters of a store stay below, and so does what is added to them
_PAGE: Final = 4  # folds a round trip: each holds what a worker claims at once


def classes_of(increments: Mapping[Cell, object]) -> str:
    """Return the class of lateness of each metric and epoch in a fold, as text."""
    places = {(cell.metric.hex(), cell.epoch, cell.lateness) for cell in increments}
    return " ".join(f"{metric}:{epoch}:{lateness}" for metric, epoch, lateness in sorted(places))


class RedisArchiveQueue(StoreView):
    """The ArchiveQueue protocol on Redis or Valkey."""

    def bind(self, name: str, fresh: bool) -> bool:
        """Compare with the recorded name, and record it if there is none."""
        recorded = self._call("GET", self._keys.archive_name)
        if recorded is None and fresh:  # else no write: a full store must be drained
            self._call("SET", self._keys.archive_name, name, "NX")
            recorded = self._call("GET", self._keys.archive_name)
        return bool(recorded == name.encode())

    def last(self, shard: int) -> int:
        """Look at the end of the stream."""
        newest = self._call("XREVRANGE", self._keys.archive(shard), "+", "-", "COUNT", 1)
        return _number(newest[0][0]) if newest else 0

    def waiting(self, shard: int, last: int) -> Iterator[ArchivedFold]:
        """Walk the stream page by page."""
        stream, start = self._keys.archive(shard), "-"
        while last and (page := self._call("XRANGE", stream, start, _id(last), "COUNT", _PAGE)):
            yield from (_folded(entry_id, fields) for entry_id, fields in page)
            start = f"({page[-1][0].decode()}"

    def forget(self, shard: int, last: int) -> None:
        """Trim the stream exactly: its ids only ever count up."""
        if last:
            self._call("XTRIM", self._keys.archive(shard), "MINID", "=", _id(last + 1))

    def folds(self) -> list[range]:
        """Read from what number on each shard counts."""
        return folds_of(self._connection, self._keys)

    def restore(
        self, shard: int, cell: Cell, pairs: Sequence[tuple[int, int]], token: str
    ) -> bool | None:
        """Add *pairs* to the tally of *cell*, counted as accepted and folded."""
        if any(abs(delta) >= _MOST for _, delta in pairs):
            raise TallyOverflowError("tally: must be below 2^62 in each cell")
        name = self._keys
        keys = (
            name.restored(shard),
            name.counters(shard),
            name.tally(shard, cell),
            name.cells(shard, cell.metric, cell.epoch),
        )
        reports = sum(delta for index, delta in pairs if index == 0)
        text = " ".join(map(str, chain.from_iterable(pairs)))
        late = reports if cell.lateness else 0
        arguments = token, member_of(cell), text, reports, late
        reply = int(self._call("FCALL", "hearsay_restore", 4, *keys, *arguments))
        return None if reply < 0 else bool(reply)

    def change_contents(self) -> None:
        """Count up what answers are kept under."""
        change_contents(self._connection, self._keys)

    def archiving(self) -> list[ArchiveProgress]:
        """Read the counts first: a fold meanwhile makes the rest more, never less."""
        return [self._archiving(shard) for shard in range(self.shards)]

    def _archiving(self, shard: int) -> ArchiveProgress:
        names = "folded.reports", "archived.reports"
        folded, archived = self._call("HMGET", self._keys.counters(shard), *names)
        waiting = int(self._call("XLEN", self._keys.archive(shard)))
        first = self._call("XRANGE", self._keys.archive(shard), "-", "+", "COUNT", 1)
        oldest = int(field(first[0][1], _DAY)) if first else None
        return ArchiveProgress(int(folded or 0), int(archived or 0), waiting, oldest)


def _id(number: int) -> str:
    return f"1-{number - 1}"  # the first entry of a stream is 1-0, and our number 0 stands for none


def _number(entry_id: bytes) -> int:
    return int(entry_id.partition(b"-")[2]) + 1


def _folded(entry_id: bytes, fields: Sequence[bytes]) -> ArchivedFold:
    pairs = list(zip(fields[::2], fields[1::2], strict=True))
    try:
        places = [text.split(":") for text in field(fields, _CLASSES).decode().split()]
        return ArchivedFold(
            number=_number(entry_id),
            day=int(field(fields, _DAY)),
            classes={(bytes.fromhex(m), int(epoch)): int(late) for m, epoch, late in places},
            entries=tuple(value for name, value in pairs if name == _ENTRY),
        )
    except ValueError as error:
        raise CorruptEntryError("archive: a fold in the store cannot be read") from error
