"""Uploads for a long time, while slots move, servers are killed and sources come and go."""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from datetime import date, timedelta
from typing import Final

import pytest
from redis.crc import key_slot

from collector.core.catalog import Catalog
from collector.core.cells import Cell, key_source, segment_text
from collector.core.config import STANDARD
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import CollectorError, ExclusionError
from collector.core.exclusions import read_all
from collector.query import plan, read, repair
from collector.query.reading import slices_of, without_pruned
from collector.query.repair import ExclusionRequest, proposed
from collector.storage.connect import open_connection
from collector.storage.connection import Connection
from collector.storage.documents import ExclusionStore
from collector.storage.hashes import RedisHashes
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.fsck import fsck
from collector.worker.worker import Pace, Worker
from tests.faults.conftest import Tell
from tests.support.crowds.uploads import registry
from tests.support.patience import PATIENCE
from tests.support.patience import wait_for as until
from tests.support.store.cluster import Node, begin_move, cluster, holder_of, url_of
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

UPLOADS: Final = "HEARSAY_SOAK_UPLOADS"  # how many the full run sends
SHARDS: Final = 4
CATALOG: Final = Catalog([registry()])
PAGE: Final = CATALOG.metric("page")
KEYS: Final = tuple(f"{letter * 12}" for letter in "abc")
NOW: Final = time.time()
DAYS: Final = (int(NOW) // 86_400 - 1, int(NOW) // 86_400)
SLOTS: Final = [(key, day, item) for key in KEYS for day in DAYS for item in range(3)]
ENTRIES: Final = [
    encode([
        AcceptedColumn(
            Cell(PAGE.digest, day, segment_text(PAGE, {}, key_source(key))), bytes([item])
        )
    ])
    for key, day, item in SLOTS
]  # fmt: skip
BATCH, REPEATS = 200, 20  # new uploads a round trip, and some of before
_KEYS_A_MOVE: Final = 200


class Senders:
    """A thread that appends uploads, and repeats of some, and one that folds."""

    def __init__(self, url: str, keys: Keys, uploads: int, seed: int) -> None:
        self.uploads, self.sent, self.refused = uploads, 0, 0
        self.failures: list[BaseException] = []
        self._url, self._keys, self._seed = url, keys, seed
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._send, self._fold)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Return when all is sent and folded."""
        for thread in self._threads:
            thread.join()
        assert self.failures == []

    @property
    def is_over(self) -> bool:
        return self._ended.is_set() or bool(self.failures)

    def _guarded(self, work: object) -> None:
        assert callable(work)
        try:
            with closing(open_connection(self._url)) as connection:
                work(RedisStorage(connection, self._keys, STANDARD))
        except BaseException as error:  # noqa: BLE001  # shown by finish
            self.failures.append(error)
            self._ended.set()

    def upload(self, serial: int) -> SealedUpload:
        """Return upload *serial*: the same bytes whenever it is asked for."""
        name = hashlib.sha256(f"{self._seed} {serial}".encode()).digest()[:16]
        return SealedUpload(name, DAYS[1], ENTRIES[serial % len(ENTRIES)], 1)

    def _send(self, storage: RedisStorage) -> None:
        chance = random.Random(self._seed)
        while self.sent < self.uploads:
            last = min(self.sent + BATCH, self.uploads)
            before = [chance.randrange(self.sent) for _ in range(REPEATS)] if self.sent else []
            serials = [*range(self.sent, last), *before]
            firsts = self._append(storage, [self.upload(serial) for serial in serials])
            assert not any(firsts[last - self.sent :]), "a repeat was counted"
            self.sent = last
        self._ended.set()

    def _append(self, storage: RedisStorage, uploads: Sequence[SealedUpload]) -> list[bool]:
        deadline = time.monotonic() + 2 * PATIENCE
        while True:
            try:
                return storage.append_many(uploads)
            except CollectorError:
                self.refused += 1
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def _fold(self, storage: RedisStorage) -> None:
        digests = CATALOG.by_digest
        mechanisms = {digest: metric.mechanism for digest, metric in digests.items()}
        every = {digest: metric.every for digest, metric in digests.items()}
        pace = Pace(min_idle_ms=1_000, idle_s=0.01, last_retry_s=0.5)
        worker = Worker(storage, mechanisms, every, pace=pace)
        while True:
            was_over = self._ended.is_set()
            try:
                folded = worker.step()
                if was_over and not folded and not storage.backlog():
                    return
            except CollectorError:
                if self.failures:  # what was to be folded will never come
                    return
                time.sleep(0.05)


class Operator:
    """Moves slots, kills servers, and takes sources out and back; says what is in force."""

    def __init__(
        self,
        nodes: Sequence[Node],
        connection: Connection,
        keys: Keys,
        chance: random.Random,
    ) -> None:
        self.storage = RedisStorage(connection, keys, STANDARD)
        self._records = ExclusionStore(RedisHashes(connection, keys.prefix))
        self._nodes, self._keys, self._chance = nodes, keys, chance
        self.steps = Counter[str]()

    def act(self) -> None:
        """Do something that happens in the life of a store."""
        step = self._chance.choice(["move", "kill", "exclude", "exclude", "include"])
        steps = {
            "move": self._move,
            "kill": self._kill,
            "exclude": self.exclude,
            "include": self.include,
        }
        try:
            done = steps[step]()
        except CollectorError:  # the cluster is away, or was until now: an operator tries again
            done, step = True, f"{step} refused"
        self.steps[step] += done

    def _move(self) -> bool:
        shard = self._chance.randrange(SHARDS)
        slot = key_slot(self._keys.stream(shard).encode())
        source = holder_of(self._nodes, slot)
        target = self._chance.choice([node for node in self._nodes if node is not source])
        target_id = begin_move(slot, source, target)
        while names := source.connection.call("CLUSTER", "GETKEYSINSLOT", slot, _KEYS_A_MOVE):
            where = "127.0.0.1", target.port, "", 0, 5_000, "REPLACE"
            with suppress(CollectorError):  # too slow on a busy machine: those keys again
                source.connection.call("MIGRATE", *where, "KEYS", *names)
        for node in (target, source, *self._nodes):
            node.connection.call("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        return True

    def _kill(self) -> bool:
        node = self._chance.choice(self._nodes)
        node.stop()
        with suppress(AssertionError):  # a long file takes longer than tests wait for
            node.start()
        until(lambda: self._is_back(node))
        return True

    def _is_back(self, node: Node) -> bool:
        try:
            return b"cluster_state:ok" in node.connection.call("CLUSTER", "INFO")
        except CollectorError:
            return False

    def exclude(self) -> bool:
        key = self._chance.choice(KEYS)
        first = self._chance.randrange(2)
        days = range(DAYS[first], DAYS[self._chance.randrange(first, 2)] + 1)
        wish = ExclusionRequest(
            "key", key, "a soak", "ada", (PAGE.address,), text_of(days[0]), text_of(days[-1])
        )
        with suppress(ExclusionError):  # nothing of it is there yet, or it is excluded already
            exclusion, _ = proposed(wish, CATALOG, self.storage, KEYS)
            repair.exclude(exclusion, self.storage, self._records)
            return True
        return False

    def include(self) -> bool:
        known = sorted(self.excluded())
        if not known:
            return False
        name = self._chance.choice(known)
        repair.include(name, "it was right", "bob", self.storage, self._records)
        return True

    def excluded(self) -> dict[str, tuple[str, range]]:
        """Return of each exclusion in force the key and the days."""
        return {
            each.id: (each.name, each.epochs(PAGE))
            for each in read_all(self.storage.exclusions())
            if each.included is None
        }

    def answer(self) -> tuple[int, list[int]]:
        """Return reports and counts by item, as questions of both days read them."""
        query = {"metrics": ["page"], "date_range": [text_of(DAYS[0]), text_of(DAYS[1])]}
        asked = plan(read(json.dumps(query).encode()), CATALOG, NOW)
        made = without_pruned(asked, self.storage)
        (whole,) = slices_of(made, made.readings[0], PAGE, self.storage)
        return whole.n, whole.tally.tolist()


def text_of(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()


def expected(uploads: int, excluded: Iterable[tuple[str, range]]) -> tuple[int, list[int]]:
    """Return what an answer must be if the excluded had never been sent."""
    gone, counts = list(excluded), [0, 0, 0]
    for place, (key, day, item) in enumerate(SLOTS):
        if not any(key == name and day in days for name, days in gone):
            counts[item] += len(range(place, uploads, len(SLOTS)))
    return sum(counts), counts


@pytest.mark.parametrize(
    "uploads",
    [
        pytest.param(2_000, id="small"),
        pytest.param(int(os.environ.get(UPLOADS, "1000000")), id="full", marks=pytest.mark.faults),
    ],
)
def test_a_soak_with_exclusions_and_reshards_counts_each_upload_once(
    uploads: int, seed: int, chance: random.Random, tell: Tell
) -> None:
    """And whatever is excluded at its end is as if it had never been sent, integer for integer."""
    keys = Keys(f"soak-{secrets.token_hex(4)}", SHARDS)
    with cluster() as nodes, closing(open_connection(url_of(nodes))) as connection:
        operator = Operator(nodes, connection, keys, chance)
        operator.storage.prepare()
        senders = Senders(url_of(nodes), keys, uploads, seed)
        senders.start()
        while not senders.is_over:
            operator.act()
            time.sleep(chance.random() * min(2.0, uploads / 20_000))
        senders.finish()
        while len(operator.excluded()) < 2:
            operator.exclude()
        findings = list(fsck(RedisInspection(connection, keys), CATALOG.by_digest))
        counters = operator.storage.counters()
        now, gone = operator.answer(), list(operator.excluded().values())
        while operator.excluded():
            operator.include()
        whole = operator.answer()

    told = ", ".join(f"{step} {times} x" for step, times in sorted(operator.steps.items()))
    tell(f"soak of {uploads:,} uploads: {told}; batches refused {senders.refused}, fsck {findings}")
    assert sum(one.accepted.uploads for one in counters) == uploads
    assert findings == []
    assert [one.quarantined.uploads for one in counters] == [0] * SHARDS
    assert whole == expected(uploads, [])
    assert now == expected(uploads, gone)
    assert now != whole
