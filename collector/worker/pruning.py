"""Old data go: which epochs, what that is, and how.  An epoch of a metric goes whole, or stays.

The tallies of one key, such as an attacker's, can be deleted from every epoch.

Law: an epoch is marked before anything of it is deleted.  From then on no answer uses it, and what
is folded for it later is counted as pruned; so a process that dies leaves no half epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from client_sdk.core.epoch import DAY, ONCE, epoch_label, epoch_of
from client_sdk.core.limits import DIGEST_SIZE
from client_sdk.privacy.wording import counted
from client_sdk.registry.metric import Metric

from ..core.catalog import Catalog
from ..core.cells import LAST_DAYS, Cell, key_in, split_source
from ..core.errors import RequestError
from ..storage.keys import member_of
from ..storage.protocols import Inspection
from ..storage.values import TallySize


@dataclass(frozen=True)
class Selection:
    """The tallies to delete.  Without metrics and apps: all metrics of all registries."""

    metrics: tuple[str, ...] = ()  # names, or digests in hexadecimal
    apps: tuple[str, ...] = ()
    before: int | None = None  # epoch day: what ended before it; None: all up to now


@dataclass
class Share:
    """What there is of one definition of a metric before its mark."""

    digest: bytes
    metric: Metric | None  # None if no registry knows it
    mark: int
    tallies: dict[tuple[int, Cell], TallySize] = field(default_factory=dict)  # by shard and cell

    @property
    def epochs(self) -> list[int]:
        """Its epochs, in order."""
        return sorted({cell.epoch for _, cell in self.tallies})

    @property
    def reports(self) -> int:
        """The reports that its tallies hold."""
        return sum(tally.reports for tally in self.tallies.values())

    @property
    def size(self) -> int:
        """The bytes of its counters."""
        return sum(tally.size for tally in self.tallies.values())

    def is_open(self, now: float) -> bool:
        """Return whether reports of its last epoch may still come."""
        if self.metric is None or self.metric.every == ONCE:
            return True
        return self.mark > epoch_of(self.metric.every, now - (LAST_DAYS[-1] + 1) * DAY)

    def __str__(self) -> str:
        """Read ``name: 12 epochs from 2025-01-01 to 2025-01-12, 3,000 reports, 9,000 bytes``."""
        name, epochs = self.digest.hex(), self.epochs
        span = f"{epochs[0]} to {epochs[-1]}"
        if self.metric is not None:
            name = f"{self.metric.address} ({name})"
            ends = (epoch_label(self.metric.every, epoch) for epoch in (epochs[0], epochs[-1]))
            span = " to ".join(dict.fromkeys(ends))
        reports, size = counted(self.reports, "report"), counted(self.size, "byte")
        return f"{name}: {counted(len(epochs), 'epoch')}, {span}, {reports}, {size}"


def survey(
    inspection: Inspection, catalog: Catalog, selection: Selection, now: float
) -> list[Share]:
    """Return what *selection* means in the store: a share for each definition with tallies.

    Raises: RequestError: *selection* names something unknown.  StorageUnavailableError.
    """
    chosen = _chosen(catalog, selection)
    stored = {(size.shard, size.cell): size for size in inspection.sizes()}
    last: dict[bytes, int] = {}
    for _, cell in stored:
        last[cell.metric] = max(cell.epoch, last.get(cell.metric, cell.epoch))
    marks = _marks(chosen, last, selection.before, now)
    shares = {digest: Share(digest, chosen[digest], mark) for digest, mark in marks.items()}
    for (shard, cell), size in stored.items():
        if cell.metric in shares and cell.epoch < marks[cell.metric]:
            shares[cell.metric].tallies[shard, cell] = size
    filled = (share for share in shares.values() if share.tallies)
    return sorted(filled, key=lambda share: (share.metric is None, str(share)))


def prune(inspection: Inspection, shares: Iterable[Share]) -> Iterator[Share]:
    """Delete all that is before the marks of *shares*, and yield what of each was deleted.

    What was folded since *shares* were looked at goes, too.  Repeatable.
    """
    gone = {}
    for share in shares:
        inspection.mark(share.digest, share.mark)
        gone[share.digest] = replace(share, tallies={})
    for size in inspection.sizes():
        metric, epoch = size.cell.metric, size.cell.epoch
        if metric in gone and epoch < gone[metric].mark:
            gone[metric].tallies[size.shard, size.cell] = size
    for share in gone.values():
        if share.tallies:
            _delete(inspection, share)
            yield share


def survey_key(inspection: Inspection, catalog: Catalog, key: str) -> list[Share]:
    """Return what came under *key*, one share a definition, whatever the epoch."""
    shares: dict[bytes, Share] = {}
    for size in inspection.sizes():
        if key_in(split_source(size.cell.segment)[0]) == key:
            digest = size.cell.metric
            share = shares.setdefault(digest, Share(digest, catalog.by_digest.get(digest), 0))
            share.tallies[size.shard, size.cell] = size
    return sorted(shares.values(), key=str)


def prune_key(inspection: Inspection, shares: Iterable[Share], key: str) -> None:
    """Delete *key*'s tallies of *shares*.  Repeatable."""
    for share in shares:
        _delete(inspection, share, key)


def _delete(inspection: Inspection, share: Share, key: str = "") -> None:
    members: dict[tuple[int, int], list[str]] = {}
    for shard, cell in share.tallies:
        members.setdefault((shard, cell.epoch), []).append(member_of(cell))
    for (shard, epoch), names in sorted(members.items()):
        inspection.prune(shard, share.digest, epoch, names, key)


def _chosen(catalog: Catalog, selection: Selection) -> Mapping[bytes, Metric | None]:
    """Return the definitions that *selection* names, old ones of the same name too."""
    metrics = [(registry.app, metric) for registry in catalog.registries for metric in registry]
    for app in selection.apps:
        if app not in {own for own, _ in metrics}:
            raise RequestError(f"app={app}: no registry here is of this app")
    chosen: dict[bytes, Metric | None] = {
        metric.digest: metric
        for app, metric in metrics
        if app in selection.apps or not (selection.apps or selection.metrics)
    }
    for name in selection.metrics:
        named = [m for app, m in metrics if name in (m.address, f"{app}/{m.name}")]
        chosen |= {metric.digest: metric for metric in named}
        if not named:
            _refuse_of_several(name, metrics)
            digest = _digest(name)
            chosen[digest] = catalog.by_digest.get(digest)
            if chosen[digest] is None and selection.before is not None:
                rule = "is in no registry here, so its epochs have no dates: leave out the date"
                raise RequestError(f"metric={name}: {rule}")
    return chosen


def _refuse_of_several(name: str, metrics: Iterable[tuple[str, Metric]]) -> None:
    """Raise RequestError if several apps have metrics called *name*."""
    if addresses := sorted({metric.address for _, metric in metrics if metric.name == name}):
        raise RequestError(f"metric={name}: is of several apps: write {' or '.join(addresses)}")


def _digest(name: str) -> bytes:
    """Return the digest that *name* is in hexadecimal.  Raises RequestError: it is none."""
    try:
        digest = bytes.fromhex(name)
    except ValueError:
        digest = b""
    if len(digest) != DIGEST_SIZE:
        raise RequestError(f"metric={name}: must be a metric of the registries, or a digest")
    return digest


def _marks(
    chosen: Mapping[bytes, Metric | None], last: Mapping[bytes, int], before: int | None, now: float
) -> dict[bytes, int]:
    """Return of each definition the epoch before which all goes.

    Args: last: the last epoch that is stored of each metric.
    """
    marks = {}
    for digest, metric in chosen.items():
        if before is None:
            running = epoch_of(metric.every, now) if metric else 0
            marks[digest] = max(running, last.get(digest, 0)) + 1
        elif metric is not None and metric.every != ONCE:  # once has no date
            marks[digest] = epoch_of(metric.every, before * DAY)
    return marks
