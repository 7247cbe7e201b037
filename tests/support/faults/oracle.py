"""What the tallies must be, from the bytes the devices logged, and how far they are from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from client_sdk.registry import Registry
from collector.storage.inspection import RedisInspection
from collector.storage.protocols import TallyStore
from collector.worker.fsck import fsck
from tests.support.crowds.fleet import Tallies, stored_tallies, tallies_of

from .reports import REGISTRY, UNIQUE


@dataclass(frozen=True)
class Comparison:
    """How the stored tallies differ from those of the uploads that were enqueued."""

    uploads: int
    lost: int  # uploads whose own cell is empty
    twice: int  # uploads whose own cell was counted in more than once
    torn: int  # other cells that differ: parts of uploads are missing, or too many
    findings: tuple[str, ...]  # of hearsay fsck, which compares tallies, streams and counts

    @property
    def equal(self) -> bool:
        """Whether every count is the integer it must be."""
        return not (self.lost or self.twice or self.torn or self.findings)

    def __str__(self) -> str:
        """Read as one line of the reliability page."""
        differing = f"lost {self.lost}, twice {self.twice}, torn {self.torn}"
        return f"{self.uploads:,} uploads, {differing}, fsck {len(self.findings)}"


def compare(wanted: Tallies, found: Tallies, uploads: int, findings: Iterable[str]) -> Comparison:
    """Compare two sets of tallies, cell by cell, as integers."""
    lost = twice = torn = 0
    for cell in wanted.keys() | found.keys():
        difference = found.get(cell, 0) - wanted.get(cell, 0)
        metric, _, _, index = cell
        if not difference:
            continue
        if metric == UNIQUE and index:
            lost, twice = lost + (difference < 0), twice + (difference > 0)
        elif metric != UNIQUE:  # how many reports ``unique`` has follows from its cells
            torn += 1
    return Comparison(uploads, lost, twice, torn, tuple(findings))


def compared(
    storage: TallyStore,
    inspection: RedisInspection,
    enqueued: Mapping[bytes, bytes],
    registry: Registry = REGISTRY,
) -> Comparison:
    """Compare what *storage* counted with the *enqueued* bodies, once nothing is pending."""
    bodies = list(enqueued.values())
    findings = [str(finding) for finding in fsck(inspection, registry.by_digest)]
    wanted = tallies_of(bodies, registry)
    found = stored_tallies(storage, registry, bodies)
    return compare(wanted, found, len(bodies), findings)
