"""What keys that are kept apart, and an exclusion, cost a question.

Run: ``python -m benchmarks strata``.  One Redis-compatible server of this machine, 90 epochs of a
metric of 1,024 items by 4 shards, a question without dimensions from its JSON to rows.  Rounds of
all rows are taken in turn, so that another load is on each alike, and the bar is on the least
processor time of this process.  It is on what an exclusion adds; the cost of keys is the
reading of their tallies, and in proportion to them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import product
from typing import Any, Final

import numpy as np

from benchmarks.lib.page import head, row, verdict
from benchmarks.speed.query import DAY, NOW, PREFIX, SHAPES, SHARDS, N, filled
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import UNKNOWN, Cell, key_source, segment_text
from collector.core.exclusions import Exclusion, to_json
from collector.query import plan, read, run
from collector.storage.connection import Command
from collector.storage.documents import ExclusionStore
from collector.storage.hashes import RedisHashes
from collector.storage.keys import Keys, member_of
from collector.storage.redis import RedisStorage

ROUNDS: Final = 25
MOST: Final = 1.2  # times what the same question takes without an exclusion
QUESTION: Final = json.dumps({"metrics": ["wide"], "date_range": "91d"}).encode()
KEYS: Final = (0, 1, 2, 4)  # of each store; 0: as before keys were kept apart


def main() -> None:
    """Print milliseconds of the question by keys, and with exclusions."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print(head("keys", "excluded", "ms, least", "processor ms", "of none excluded", "bar", ""))
    with filled(SHAPES[:1]) as (catalog, storage, _):
        for keys in KEYS:
            _fill(catalog, storage, keys)
            _table(catalog, storage, keys)


def _table(catalog: Catalog, storage: RedisStorage, keys: int) -> None:
    cases = {"nothing": "", "2 days": _day(2), "all 90 days": _day(90)}
    records = ExclusionStore(RedisHashes(storage._connection, PREFIX))  # of this server
    walls: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, first in cases.items():
            storage._connection.call("DEL", Keys(PREFIX, SHARDS).exclusions)
            if first:
                exclusion = Exclusion(
                    id="x", by="key", name=_key(0), first=first, last=_day(1),
                    author="benchmark", because="it is measured", at=int(NOW),
                )  # fmt: skip
                assert records.put("x", to_json(exclusion))
            walls[name].append(_timed(lambda: run(plan(read(QUESTION), catalog, NOW), storage)))
    used = {name: min(processor for _, processor in times) for name, times in walls.items()}
    for name, times in walls.items():
        part = used[name] / used["nothing"]
        bar, met = ("", None) if name == "nothing" else (f"≤ {MOST}", part <= MOST)
        wall = min(wall for wall, _ in times)
        numbers = f"{wall:.1f}", f"{used[name]:.1f}", f"{part:.2f}"
        print(row(str(keys), name, *numbers, bar, verdict(met)), flush=True)


def _fill(catalog: Catalog, storage: RedisStorage, keys: int) -> None:
    """Put tallies of so many keys in place of what there is of the metric."""
    metric, connection = catalog.metric("wide"), storage._connection
    for epoch in range(DAY - SHAPES[0].epochs, DAY):
        names = Keys(PREFIX, SHARDS)
        sets = [names.cells(shard, metric.digest, epoch) for shard in range(SHARDS)]
        connection.call_many([("DEL", name) for name in sets])
        connection.call_many(list(_stored(metric, epoch, keys)))


def _stored(metric: Metric, epoch: int, keys: int) -> Iterator[Command]:
    names, chance = Keys(PREFIX, SHARDS), np.random.default_rng(epoch)
    sources = [key_source(_key(place)) for place in range(keys)] or [UNKNOWN]
    for shard, source in product(range(SHARDS), sources):
        cell = Cell(metric.digest, epoch, segment_text(metric, {}, source))
        tally: Any = chance.binomial(N, 0.3, metric.mechanism.tally_size)
        vector = np.concatenate(([N], tally)).astype(">i8").tobytes()
        yield "SET", names.tally(shard, cell), vector
        yield "SADD", names.cells(shard, metric.digest, epoch), member_of(cell)


def _key(place: int) -> str:
    return f"{place:012x}"


def _day(back: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=DAY - back)).isoformat()


def _timed(action: Callable[[], object]) -> tuple[float, float]:
    """Return milliseconds of *action*, and of these those of this process's processor."""
    wall, used = time.perf_counter(), time.process_time()
    action()
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - used)
