"""A store with tallies of all sources is sound: each report is counted once, and all are found."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from typing import Final

import pytest

from client_sdk.wire.reports import Column
from collector.core.catalog import Catalog
from collector.core.cells import FACTS, Cell, Source, split_source
from collector.core.entry import AcceptedColumn, encode
from collector.intake.validation import judge
from collector.intake.wire import Upload
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.fsck import accept_missing, fsck
from collector.worker.pruning import Selection, prune, survey
from collector.worker.quarantine import retry
from collector.worker.worker import Pace, Worker
from tests.support.crowds.uploads import TODAY, registry
from tests.support.store.stored import DAY, tallies

CATALOG: Final = Catalog([registry(expires="2099-12-31")])
METRICS: Final = CATALOG.by_digest
PAGE: Final = CATALOG.metric("page")
MECHANISMS: Final = {digest: metric.mechanism for digest, metric in METRICS.items()}
EVERY: Final = {digest: metric.every for digest, metric in METRICS.items()}
DAYS: Final = (TODAY, TODAY - 1)
UPLOADS: Final = 150


class Fleet:
    """Uploads that come in any way, some twice and then in another, and what must be counted."""

    def __init__(self, chance: random.Random) -> None:
        self.counted: Counter[tuple[int, str]] = Counter()  # by epoch and segment
        self.sources: Counter[Source] = Counter()
        self.sealed: list[SealedUpload] = []
        for _ in range(UPLOADS):
            segment = chance.choice([{}, {"platform": "mac"}])
            days = chance.sample(DAYS, chance.choice([1, 1, 2]))
            columns = [Column(PAGE.digest, day, bytes([chance.randrange(3)])) for day in days]
            upload = Upload(secrets.token_bytes(16), TODAY, segment, tuple(columns))
            for repeat in range(chance.choice([1, 2])):
                source = frozenset(fact for fact in FACTS if chance.randrange(2))
                verdict = judge(upload, CATALOG, TODAY, of_device=True, source=source)
                entry = encode(verdict.accepted)
                # The store is told a day far ahead, so that no server forgets the id.
                self.sealed.append(SealedUpload(upload.id, DAY, entry, verdict.reports))
                if not repeat:
                    self._count(verdict.accepted)

    def _count(self, columns: tuple[AcceptedColumn, ...]) -> None:
        for column in columns:
            source, segment = split_source(column.cell.segment)
            self.counted[column.cell.epoch, segment] += 1
            self.sources[source] += 1


def found(store: RedisStorage) -> Counter[Cell]:
    """Return the reports of each cell of the metric, of all classes of lateness."""
    stored: Counter[Cell] = Counter()
    for cell, vectors in tallies(store, PAGE.digest, DAYS).items():
        for vector in vectors:
            stored[cell._replace(lateness=0)] += int.from_bytes(vector[:8], "big")
    return stored


def work(store: RedisStorage) -> None:
    worker = Worker(store, MECHANISMS, EVERY, pace=Pace(min_idle_ms=0, most_entries=7))
    while store.backlog():
        worker.step()


@pytest.fixture
def fleet(store: RedisStorage) -> Fleet:
    """The uploads of a fleet, which are in the store; another worker has died over some."""
    fleet = Fleet(random.Random(1))
    for sealed in fleet.sealed:
        store.append(*sealed)
    for shard in range(store.shards):
        store.claim(shard, "dead", 5, 0)
    work(store)
    return fleet


def test_every_report_is_counted_once_with_the_source_of_its_first_arrival(
    store: RedisStorage, fleet: Fleet
) -> None:
    by_segment: Counter[tuple[int, str]] = Counter()
    by_source: Counter[Source] = Counter()
    for cell, n in found(store).items():
        source, segment = split_source(cell.segment)
        by_segment[cell.epoch, segment] += n
        by_source[source] += n

    assert by_segment == fleet.counted
    assert by_source == fleet.sources
    assert len(fleet.sources) == 2 ** len(FACTS)


def test_folded_is_in_tallies_pruned_or_lost(
    store: RedisStorage, server: Connection, keys: Keys, fleet: Fleet
) -> None:
    """A tally of a source is lost, the rest pruned: fsck finds the first and then nothing."""
    inspection = RedisInspection(server, keys)
    reports = sum(fleet.counted.values())
    assert list(fsck(inspection, METRICS)) == []

    place = next(t for t in inspection.tallies() if split_source(t.cell.segment)[0])
    server.call("DEL", keys.tally(place.shard, place.cell))
    gone = [str(finding) for finding in fsck(inspection, METRICS)]
    lost = sum(accept_missing(inspection))
    sound = list(fsck(inspection, METRICS))
    shares = survey(inspection, CATALOG, Selection(metrics=("page",)), (TODAY + 1) * 86_400.0)
    pruned = sum(share.reports for share in prune(inspection, shares))

    assert len(gone) == 1
    assert "@source" in gone[0]
    assert lost > 0
    assert sound == []
    assert pruned + lost == reports
    assert found(store) == {}
    counters = store.counters()
    assert sum(shard.pruned_reports + shard.lost_reports for shard in counters) == reports
    assert [shard.drift for shard in counters] == [0] * store.shards
    assert list(fsck(inspection, METRICS)) == []


def test_what_was_set_aside_comes_back_with_its_source(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    fleet = Fleet(random.Random(1))
    for sealed in fleet.sealed:
        store.append(*sealed)
    for shard in range(store.shards):
        for claimed in store.claim(shard, "first", 1_000, 0):
            assert store.quarantine(shard, claimed.id, "by hand")

    inspection = RedisInspection(server, keys)
    assert list(fsck(inspection, METRICS)) == []
    retry(inspection, ["all"])
    work(store)

    assert sum(found(store).values()) == sum(fleet.counted.values())
    assert list(fsck(inspection, METRICS)) == []
