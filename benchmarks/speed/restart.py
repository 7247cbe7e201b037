"""How long a store is away that is killed: by the ids that it remembers, and by its log.

Run: ``python -m benchmarks restart``; it takes 3 GB of memory and of disk for some minutes.  A web
process and a worker run beside a server of their own, whose append-only file is synced every
second.  Ids lie there as ``append`` puts them: so many to a bucket, over 16 days and four shards;
those of 10⁸ are copies of those of 10⁷ under other names, which take as long to read.

The server is killed and started at once, as by an init system.  *answers*: until it has read its
file; *processor*: what it had of one until then, which others on the machine make longer by little.
*acknowledges*: until a device that asks every 10 ms gets its 202.  All from the kill on.
Between two rewrites a file is what the last one wrote and a log of all that came since, at most as
long again; *a log* is what that takes, from uploads that were really appended and folded.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.lib.capacity import PLANNED
from benchmarks.lib.page import head, row, verdict
from client_sdk.core.epoch import DAY
from collector.core.config import STANDARD
from collector.core.errors import CollectorError
from collector.storage.connection import parse_info
from collector.storage.keys import Keys
from collector.storage.redis import SEEN_DAYS
from tests.support.faults.fleet import post
from tests.support.faults.folding import append
from tests.support.faults.reports import upload_of
from tests.support.faults.site import PREFIX, SHARDS, FaultSite

MILLION: Final = 1_000_000
DRAWN: Final = (0, MILLION, 10 * MILLION)  # ids of a row, each drawn
COPIES: Final = 10  # of the last of these, for one row more
READY: Final = 3.0  # seconds until an upload is acknowledged, of a store with few ids
MOST: Final = 60.0  # seconds until a store of 10⁸ ids answers
LOGGED: Final = 50_000  # uploads in the log
ROUNDS: Final = 3  # kills, of which the least is told
PATIENCE: Final = 600.0  # seconds for one start or rewrite
BATCH: Final = 200  # commands a round trip
POLL: Final = 0.01  # seconds
DAYS: Final = SEEN_DAYS  # whose ids are remembered


class Times(NamedTuple):
    """Seconds from the kill on."""

    answers: float
    processor: float  # of the store
    acknowledges: float


def main() -> None:
    """Print seconds by ids, and what a log adds."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print(head("ids", "MB of file", "answers, s", "processor, s", "acknowledges, s", "bar", ""))
    with tempfile.TemporaryDirectory(prefix="hearsay-restart-") as folder:
        site = FaultSite(Path(folder), STANDARD, {"auto-aof-rewrite-percentage": "0"})
        try:
            site.store.start()
            site.storage.prepare()
            site.add_collector()
            site.add_worker()
            _table(site)
        finally:
            site.stop()


def _table(site: FaultSite) -> None:
    known = 0
    for ids in DRAWN:
        _draw(site, known, ids)
        known = ids
        bar = READY if not ids else None
        _row(site, ids, bar, of_acknowledgement=True)
    _copy(site, known, COPIES)
    whole = _row(site, COPIES * known, MOST, of_acknowledgement=False)
    before = _file_size(site)
    _upload(site, LOGGED)
    log = _file_size(site) - before
    more = min(_restart(site) for _ in range(ROUNDS)).processor - whole
    rest = f"{LOGGED:,} uploads in the log", f"+ {log / 1e6:,.0f}", "", f"+ {more:.1f}"
    print(row(*rest, "", "", ""), flush=True)
    longest = whole + more * before / log
    told = "10⁸, and a log as long (computed)", f"{2 * before / 1e6:,.0f}", "", f"{longest:.0f}"
    print(row(*told, "", f"≤ {MOST:.0f}", verdict(longest <= MOST)))


def _row(site: FaultSite, ids: int, bar: float | None, *, of_acknowledgement: bool) -> float:
    """Print the least of some restarts; return the processor seconds until the store answers."""
    _rewrite(site)
    size = _file_size(site)
    least = min(_restart(site) for _ in range(ROUNDS))
    measured = least.acknowledges if of_acknowledgement else least.answers
    told = "" if bar is None else f"≤ {bar:.0f}"
    met = verdict(None if bar is None else measured <= bar)
    print(row(f"{ids:,}", f"{size / 1e6:.0f}", *map("{:.2f}".format, least), told, met), flush=True)
    return least.processor


def _restart(site: FaultSite) -> Times:
    """Kill the store and start it."""
    body = upload_of(random.randrange(MILLION), random.Random(os.urandom(8)))[1]
    time.sleep(1.5)  # until what was written is synced
    began = time.monotonic()
    site.store.stop()
    _start(site)
    answers = time.monotonic() - began
    info = parse_info(site.store.connection.call("INFO", "cpu"))
    processor = float(info["used_cpu_user"]) + float(info["used_cpu_sys"])
    while post(site.ports[0], body)[0] != HTTPStatus.ACCEPTED:
        assert time.monotonic() < began + PATIENCE
        time.sleep(POLL)
    return Times(answers, processor, time.monotonic() - began)


def _start(site: FaultSite) -> None:
    """Return when the store answers: a large one reads longer than tests wait for."""
    began = time.monotonic()
    try:
        site.store.start()
    except AssertionError:
        while not _answers(site):
            assert time.monotonic() < began + PATIENCE
            time.sleep(POLL)


def _answers(site: FaultSite) -> bool:
    try:
        return bool(site.store.connection.call("PING") == b"PONG")
    except CollectorError:
        return False


def _days() -> list[str]:
    """Return the days of ids of all shards."""
    keys, today = Keys(PREFIX, SHARDS), int(time.time() // DAY)
    past = range(today - DAYS, today)  # the collector begins that of today itself
    return [keys.seen(shard, day) for day in past for shard in range(SHARDS)]


def _draw(site: FaultSite, known: int, ids: int) -> None:
    """Put ids beside the *known* ones, until there are so many."""
    chance, days = np.random.default_rng(known), _days()
    for some in _batches(known // PLANNED, ids // PLANNED):
        members = chance.integers(-(2**63), 2**63 - 1, (len(some), PLANNED))
        commands: list[tuple[str | int, ...]] = []
        for place, own in zip(some, members.tolist(), strict=True):
            day = days[place % len(days)]
            commands.append(("SADD", f"{day}:{place // len(days)}", 0, *own))
            commands.append(("HSET", day, place // len(days), 1))
        site.store.connection.call_many(commands)


def _copy(site: FaultSite, ids: int, times: int) -> None:
    """Copy all buckets, so that there are so many *times* the *ids*."""
    days, count = _days(), ids // PLANNED
    for names in _batches(0, count):
        commands: list[tuple[str | int, ...]] = []
        for place in names:
            day, number = days[place % len(days)], place // len(days)
            for copy in range(1, times):
                other = number + copy * (count // len(days) + 1)
                commands.append(("COPY", f"{day}:{number}", f"{day}:{other}"))
                commands.append(("HSET", day, other, 1))
        site.store.connection.call_many(commands)


def _batches(first: int, last: int) -> Iterator[range]:
    """Yield the numbers from *first* to before *last*, so many at a time."""
    return (range(begin, min(begin + BATCH, last)) for begin in range(first, last, BATCH))


def _upload(site: FaultSite, uploads: int) -> None:
    """Append so many uploads, and return when all are folded."""
    chance = random.Random(1)
    for serials in _batches(0, uploads):
        append(site.storage, (upload_of(serial, chance)[1] for serial in serials))
    site.wait_until_folded()


def _rewrite(site: FaultSite) -> None:
    """Write the file anew, and return once that is done."""
    site.store.connection.call("BGREWRITEAOF")
    deadline = time.monotonic() + PATIENCE
    while True:
        time.sleep(0.1)
        info = parse_info(site.store.connection.call("INFO", "persistence"))
        if info["aof_rewrite_in_progress"] == info["aof_rewrite_scheduled"] == "0":
            return
        assert time.monotonic() < deadline


def _file_size(site: FaultSite) -> int:
    info = parse_info(site.store.connection.call("INFO", "persistence"))
    return int(info["aof_current_size"])
