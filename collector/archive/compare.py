"""Compare what an archive gives with what the store holds, integer for integer.  Pure.

Law: a cell is judged only if the archive must hold all of it.  That is every cell where all folds
were archived and none was pruned, and else those whose first fold can only have come later.  While
the store is in use, only cells whose class of lateness had ended are judged: these do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from client_sdk.core.epoch import DAY
from client_sdk.registry.metric import Metric

from ..core.cells import Cell, ends, first_day
from ..estimation.tally import reports_of
from ..storage.values import ArchiveProgress
from .tallies import Place


@dataclass(frozen=True)
class Scope:
    """Which cells an archive must hold whole.  Days are epoch days, and all are judged at None."""

    since: int | None  # the first day whose folds are all archived
    until: (
        int | None
    )  # the first day with folds that may be in the store and in no file, or reverse

    def holds(self, cell: Cell, every: str) -> bool:
        """Return whether all folds into *cell* must be in the archive, and in the store."""
        begun = first_day(every, cell.epoch, cell.lateness)
        limits = ends(every, cell.epoch)
        ended = limits[cell.lateness] if cell.lateness < len(limits) else None
        return (self.since is None or (begun is not None and begun >= self.since)) and (
            self.until is None or (ended is not None and ended <= self.until * DAY)
        )


@dataclass(frozen=True)
class Difference:
    """A cell in which the store and its archive do not agree."""

    shard: int
    metric: str
    cell: Cell
    stored: int  # reports
    archived: int  # reports

    def __str__(self) -> str:
        """Read ``place: what``."""
        where = f"epoch={self.cell.epoch} segment={self.cell.segment!r}"
        place = f"shard={self.shard} metric={self.metric} {where} lateness={self.cell.lateness}"
        if self.stored == self.archived:
            return f"{place}: of {self.stored} reports, the tally is another than the archive's"
        return f"{place}: holds {self.stored} reports, the archive {self.archived}"


def scope_of(
    before: Sequence[ArchiveProgress],
    after: Sequence[ArchiveProgress],
    pruned: int | None,
    since: int | None,
    today: int,
) -> Scope:
    """Return what can be judged.

    Args: before, after: of each shard, before the store was read and after the folder was.
          pruned: last day that was pruned.  since: day from which on all folds are archived, if
          somebody knows.
    """
    whole = all(one.folded == one.archived for one in after)
    first = [day for day in (since, None if pruned is None else pruned + 1) if day is not None]
    if not whole and since is None:
        first.append(today + 1)  # nobody knows which folds are missing: nothing is judged
    still = list(before) == list(after) and not any(one.waiting for one in before)
    oldest = [one.oldest_day for one in before if one.oldest_day is not None]
    return Scope(max(first, default=None), None if still else min([today, *oldest]))


def differences(
    stored: Mapping[Place, bytes],
    archived: Mapping[Place, bytes],
    metrics: Mapping[bytes, Metric],
    places: Iterable[Place],
) -> Iterator[Difference]:
    """Yield the *places* at which two mappings of packed vectors differ."""
    for shard, cell in places:
        left, right = stored.get((shard, cell), b""), archived.get((shard, cell), b"")
        if left.rstrip(b"\0") != right.rstrip(b"\0"):  # zeros at the end may be missing
            name = metrics[cell.metric].name
            yield Difference(shard, name, cell, reports_of(left), reports_of(right))
