"""Write waiting folds and exclusions to files: each fold once, even if a process dies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ...core.cells import Cell
from ...core.entry import decode
from ...core.errors import ArchiveError, CorruptEntryError
from ...core.exclusions import read_all
from ...estimation.tally import Mechanisms, sorted_payloads
from ...storage.protocols import ArchiveQueue
from ...storage.values import ArchivedFold
from .files import Folder, encode_rows

_FILE_SIZE: Final = 64 * 1024 * 1024  # bytes of entries after which a file is full
# A store that syncs every second may forget its last two in a crash, and count other folds by the
# numbers of those that it forgot.  A file must hold none of them, so it ends this long ago.
SETTLE: Final = 3.0  # seconds


def drain(
    queue: ArchiveQueue,
    folder: Folder,
    mechanisms: Mechanisms,
    settle: Callable[[], None],
    size: int = _FILE_SIZE,
) -> int:
    """Write what waits now to *folder*, and return the number of files.

    Args:   settle: waits until what waits now is durable in the store.  size: of a file, in bytes.
    Raises: ArchiveError: another archive belongs to the store, or another store to the archive.
            StorageUnavailableError: an exclusion cannot be read; the folds are written.
            CorruptEntryError: a fold cannot be read; it and what follows in its shard stays.
    """
    with folder.locked():
        if not queue.bind(folder.name, fresh=not folder.files()):
            rule = "must be the one that this store began with"
            raise ArchiveError(f"archive={folder.path}: {rule}")
        lasts = [queue.last(shard) for shard in range(queue.shards)]
        settle()
        files = sum(
            _drain_shard(queue, folder, mechanisms, shard, last, size)
            for shard, last in enumerate(lasts)
        )
        folder.keep_exclusions(read_all(queue.exclusions()))  # last: it stops no fold
        return files


def _drain_shard(
    queue: ArchiveQueue, folder: Folder, mechanisms: Mechanisms, shard: int, last: int, size: int
) -> int:
    written = [range(file.first, file.last + 1) for file in folder.files() if file.shard == shard]
    mark, files = folder.mark(shard), 0
    folds = (
        fold
        for fold in queue.waiting(shard, last)
        # Of one who died between the rename and the forgetting; not each below the mark is.
        if fold.number > mark or not any(fold.number in numbers for numbers in written)
    )
    for batch in _batches(folds, size):
        first, end = batch[0].number, batch[-1].number
        data = encode_rows(shard, _columns(batch, mechanisms))
        folder.commit(batch[0].day, shard, first, end, data)
        queue.forget(shard, end)
        files += 1
    queue.forget(shard, last)
    return files


def _batches(folds: Iterable[ArchivedFold], size: int) -> Iterator[list[ArchivedFold]]:
    """Yield the folds of one file after the other: of one day, and not much above *size*."""
    batch: list[ArchivedFold] = []
    held = 0
    for fold in folds:
        if batch and (fold.day != batch[0].day or held >= size):
            yield batch
            batch, held = [], 0
        batch.append(fold)
        held += sum(map(len, fold.entries))
    if batch:
        yield batch


def _columns(batch: Sequence[ArchivedFold], mechanisms: Mechanisms) -> Mapping[Cell, bytes]:
    """Return the payloads of each cell, in an order that does not say which upload had which."""
    parts: dict[Cell, list[bytes]] = {}
    for fold in batch:
        for entry in fold.entries:
            for column in decode(entry):
                cell = column.cell
                lateness = fold.classes.get((cell.metric, cell.epoch))
                if lateness is None:
                    raise CorruptEntryError("archive: a fold in the store lacks a class")
                parts.setdefault(cell._replace(lateness=lateness), []).append(column.payloads)
    return {cell: _joined(cell, pieces, mechanisms) for cell, pieces in parts.items()}


def _joined(cell: Cell, pieces: Sequence[bytes], mechanisms: Mechanisms) -> bytes:
    mechanism = mechanisms.get(cell.metric)
    # Without a registry that knows the metric, a column cannot be split into payloads.
    return (
        sorted_payloads(b"".join(pieces), mechanism.payload_size)
        if mechanism
        else b"".join(sorted(pieces))
    )
