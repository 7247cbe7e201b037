"""``hearsay refold``: recompute the tallies from the archive, and compare them with the store's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from client_sdk.registry.metric import Metric

from ..core.errors import ArchiveError
from ..estimation.tally import Mechanisms, pairs_of
from ..storage.protocols import ArchiveQueue, Inspection
from .compare import Difference, differences, scope_of
from .folder import Folder
from .tallies import Vectors

Engine = Callable[[Sequence[Path], Mechanisms], Vectors]


@dataclass(frozen=True)
class Comparison:
    """What came of it: the cells compared, the others, and those that differ."""

    compared: int
    left_out: int  # cells that the archive need not hold whole, or that are still open
    differences: tuple[Difference, ...]
    unarchived: int  # reports that were folded without an archive


def compare(
    queue: ArchiveQueue,
    inspection: Inspection,
    folder: Folder,
    metrics: Mapping[bytes, Metric],
    engine: Engine,
    *,
    today: int,
    since: int | None = None,
) -> Comparison:
    """Recompute on *engine* and compare.  The store may be in use.

    Args:   metrics: by digest; tallies of others are left out.  today: epoch day.
            since: epoch day from which on all folds are archived.
    Raises: ArchiveError: a file is not what was written.  StorageUnavailableError.
    """
    before = queue.archiving()
    stored = {
        (one.shard, one.cell): one.vector or b""
        for one in inspection.tallies()
        if one.cell.metric in metrics
    }
    archived = tallies_of(folder, metrics, engine)
    after = queue.archiving()
    scope = scope_of(before, after, folder.pruned, since, today)
    marks = inspection.marks()  # after all was read: an epoch is marked before it goes
    found = {
        (shard, cell)
        for shard, cell in stored.keys() | archived.keys()
        if cell.epoch >= marks.get(cell.metric, cell.epoch)
    }
    judged = [place for place in found if scope.holds(place[1], metrics[place[1].metric].every)]
    return Comparison(
        compared=len(judged),
        left_out=len(found) - len(judged),
        differences=tuple(differences(stored, archived, metrics, sorted(judged))),
        unarchived=sum(one.folded - one.archived for one in after),
    )


def restore(
    queue: ArchiveQueue, folder: Folder, metrics: Mapping[bytes, Metric], engine: Engine
) -> tuple[int, int, int]:
    """Add the tallies of the archive of a lost store to its successor, each once.  Repeatable.

    Returns: the number of cells that were added, of those that had been before, and of those whose
             epoch was pruned here.
    Raises:  ArchiveError: the store is the one that was archived here, so it has counted them.
             TallyOverflowError: a counter would leave its range; what was added before it stays.
    """
    if queue.bind(folder.name, fresh=False):
        rule = "must not be this store's own: it has counted these reports"
        raise ArchiveError(f"archive={folder.path}: {rule}")
    tallies = tallies_of(folder, metrics, engine)
    queue.change_contents()
    try:
        steps = _add(queue, folder.name, tallies)
    finally:
        queue.change_contents()
    return steps.count(True), steps.count(False), steps.count(None)


def _add(queue: ArchiveQueue, name: str, tallies: Vectors) -> list[bool | None]:
    """Add *tallies* of the archive *name*; return of each cell what the store says of it."""
    return [
        queue.restore(
            shard % queue.shards,
            cell,
            pairs_of(vector),
            f"{name}:{shard}:{cell.metric.hex()}:{cell.epoch}:{cell.lateness}:{cell.segment}",
        )
        for (shard, cell), vector in sorted(tallies.items())
    ]


def tallies_of(folder: Folder, metrics: Mapping[bytes, Metric], engine: Engine) -> Vectors:
    """Return the tallies that the files of *folder* give."""
    mechanisms = {digest: metric.mechanism for digest, metric in metrics.items()}
    return engine([file.path for file in folder.files()], mechanisms)
