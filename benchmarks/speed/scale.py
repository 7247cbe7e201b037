"""What an upload, an id and a counter cost, and what a fleet therefore needs.

Run: ``python -m benchmarks scale``; Linux only.  The model of ``capacity`` is fitted to a small
store and has to predict a larger one.  Costs of processor are the least of rounds that take turns
between the two stores.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Iterator
from typing import Final

from benchmarks.lib import sites
from benchmarks.lib.capacity import (
    Costs,
    costs_table,
    counter_bytes,
    plan_table,
    servers_table,
    tally_bytes,
)
from benchmarks.lib.load import Plan, send
from benchmarks.lib.page import head, row, verdict
from benchmarks.lib.registries import items, registry_text
from client_sdk.core.epoch import epoch_of
from client_sdk.registry import Registry
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn, encode
from collector.storage.connect import open_connection, open_storage
from collector.storage.connection import parse_info
from collector.storage.redis import SEEN_DAYS
from collector.storage.values import SealedUpload

SMALL, FACTOR = 15_000, 5  # uploads of the small store; how many times as many the larger has
WINDOWS: Final = 200  # of the small store
SHARDS: Final = 4
ITEMS: Final = 100
SEGMENTS: Final = [f"platform=p{i}" for i in range(5)]
REPORTS: Final = 3  # an upload
GROUP: Final = 64  # uploads appended in a round trip
ROUNDS, SECONDS, FOLDED = 8, 0.6, 1_024  # of each store; of a round; uploads folded in a round
SETTLE: Final = 0.3  # seconds: for the store's own tables to shrink or its file to be counted
BAR: Final = 0.15
PAST: Final = (7, 14)  # days before today, by which a day is planned
SAMPLE: Final = 16  # ids that are counted as one; as in hearsay.lua
_SHAPES: Final = ((1, 16), (5, 16))  # tallies a window, and counters of each: to fit two costs
_CHECKED: Final = (3, 101)


class Deployment:
    """A web process with its store, and a worker in this process."""

    def __init__(self, site: sites.Site, registry: Registry, uploads: int) -> None:
        """Use *site*, whose store shall hold so many *uploads*."""
        self.site, self.uploads = site, uploads
        self.metrics = list(registry)
        self.storage = open_storage(site.redis_url, "hearsay", SHARDS, "standard")
        self._connection = open_connection(site.redis_url)
        self.worker = sites.worker_of(self.storage, registry)
        self.today = int(time.time() // 86_400)

    def command(self, *parts: str | int | bytes) -> object:
        """Send one command to the store."""
        return self._connection.call(*parts)

    def info(self) -> dict[str, str]:
        """Return what the store says about itself."""
        return dict(parse_info(self._connection.call("INFO", "ALL")))

    def memory(self) -> float:
        """Return the bytes in use, without those of connections, slow log and file buffer."""
        self.command("SLOWLOG", "RESET")  # on a busy machine it fills, with the commands themselves
        time.sleep(SETTLE)
        info = self.info()
        passing = float(info["mem_clients_normal"]) + float(info["mem_aof_buffer"])
        return float(info["used_memory"]) - passing

    def cpu(self) -> float:
        """Return the microseconds of processor that the store has had."""
        info = self.info()
        return 1e6 * (float(info["used_cpu_user"]) + float(info["used_cpu_sys"]))

    def append(self, uploads: int, day: int | None = None) -> int:
        """Append uploads of three reports, sealed today, in whole groups; return how many."""
        day = self.today if day is None else day
        epoch = epoch_of("1d", time.time())
        for _ in range(0, uploads, GROUP):
            segment = random.choice(SEGMENTS)
            columns = [
                AcceptedColumn(
                    Cell(metric.digest, epoch, segment), bytes([random.randrange(ITEMS)])
                )
                for metric in self.metrics
            ]
            entry = encode(columns)
            group = [SealedUpload(os.urandom(16), day, entry, REPORTS) for _ in range(GROUP)]
            self.storage.append_many(group)
        return GROUP * len(range(0, uploads, GROUP))

    def fold(self) -> None:
        """Fold all that waits."""
        while self.worker.step():
            pass

    def plan_today(self, uploads: int) -> None:
        """Let so many *uploads* be expected today, as after two weeks of them."""
        for shard in range(SHARDS):
            for days in PAST:
                day = f"hearsay:{{{shard}}}:seen:{self.today - days}"
                self.command("HSET", day, "samples", uploads // SHARDS // SAMPLE)

    def remembered(self) -> int:
        """Return how many ids of today there are; a bucket holds a mark beside them."""
        ids = 0
        for shard in range(SHARDS):
            day = f"hearsay:{{{shard}}}:seen:{self.today}"
            names = [name.decode() for name in self._connection.call("HKEYS", day)]
            sizes = [("SCARD", f"{day}:{name}") for name in names if name.isdigit()]
            ids += sum(map(int, self._connection.call_many(sizes))) - len(sizes)
        return ids

    def forget(self, day: int, shard: int) -> None:
        """Delete the ids of a *day*, whether it is over or not."""
        state, seen = (f"hearsay:{{{shard}}}:{name}" for name in ("state", f"seen:{day}"))
        self.command("HSET", state, "floor", day + SEEN_DAYS)
        while self.command("FCALL", "hearsay_forget_ids", 2, state, seen, day, SEEN_DAYS) == 2:
            pass
        self.command("HDEL", state, "floor", "forgotten")


def fill(of: Deployment) -> dict[str, float]:
    """Append all uploads and fold them; return the bytes of an upload, by what they are for."""
    of.plan_today(of.uploads)
    of.append(50 * GROUP, of.today - 1)  # every tally is there before the first look
    of.fold()
    empty, start = of.memory(), of.info()
    added = of.append(of.uploads)
    waiting = of.memory()
    of.fold()
    folded, end = of.memory(), of.info()
    per = {
        name: (float(end[key]) - float(start[key])) / added
        for name, key in (
            ("log", "aof_current_size"),
            ("store_in", "total_net_input_bytes"),
            ("store_out", "total_net_output_bytes"),
        )
    }
    return {
        **per,
        "waiting": (waiting - folded) / added,
        "ids": (folded - empty) / added,
    }


def tallies(of: Deployment, windows: int, segments: int, counters: int) -> float:
    """Return the bytes of *windows* of tallies on one shard, each folded twice, as it fills."""
    digest, first, shard = bytes(6), 1_000, 0
    before = of.memory()
    for epoch in range(first, first + windows):
        cells = [Cell(digest, epoch, SEGMENTS[i]) for i in range(segments)]
        # Half of it first: the string then grows, and as ever to twice what is needed.
        for last in (counters // 2, counters):
            pairs = [(0, last - 1), *((index, 1) for index in range(1, last))]
            _fold_one(of, shard, dict.fromkeys(cells, pairs))
    found = of.memory() - before
    for epoch in range(first, first + windows):
        names = [f"{digest.hex()}:{epoch}:0:{segment}" for segment in SEGMENTS[:segments]]
        of.command("DEL", *(f"hearsay:{{{shard}}}:tally:{name}" for name in names))
        of.command("DEL", f"hearsay:{{{shard}}}:cells:{digest.hex()}:{epoch}")
    return found


def _fold_one(of: Deployment, shard: int, increments: dict[Cell, list[tuple[int, int]]]) -> None:
    """Fold *increments* for an upload whose id is remembered nowhere."""
    day = of.today - 1  # of its own: deleted at once
    of.storage.append(shard.to_bytes(8, "big") + os.urandom(8), day, b"filling", 1)
    [claimed] = of.storage.claim(shard, "filling", 1, 0)
    of.storage.fold(shard, [claimed.id], increments)
    of.forget(day, shard)


def times(of: Deployment, body: bytes) -> dict[str, float]:
    """Return microseconds an upload of one round of accepting, and of one of folding."""
    store, web = of.cpu(), of.site.cpu()
    outcome = send(Plan(of.site.port, sites.request(body), GROUP, SECONDS))
    if set(outcome.statuses) != {"202"}:
        raise SystemExit(f"scale: not all were accepted: {outcome.statuses}")
    found = {
        "web": (of.site.cpu() - web) * 1e6 / outcome.accepted,
        "append": (of.cpu() - store) / outcome.accepted,
    }
    of.fold()
    of.append(FOLDED)
    store, worker = of.cpu(), time.process_time()
    of.fold()
    found["worker"] = (time.process_time() - worker) * 1e6 / FOLDED
    found["fold"] = (of.cpu() - store) / FOLDED
    return found


def forget(of: Deployment) -> float:
    """Return the nanoseconds to delete an id: all of today's, step by step."""
    ids = of.remembered()
    of.command("CONFIG", "RESETSTAT")
    for shard in range(SHARDS):
        of.forget(of.today, shard)
    return 1e3 * float(of.info()["cmdstat_fcall"].split("usec=")[1].split(",")[0]) / ids


def wire(port: int, body: bytes) -> tuple[int, int]:
    """Return the bytes of one upload and of its answer, without TLS."""
    head = (
        f"POST /v1/reports HTTP/1.1\r\nHost: collector.example\r\nUser-Agent: hearsay/1\r\n"
        f"Accept-Encoding: identity\r\nAccept: */*\r\nConnection: keep-alive\r\n"
        f"Authorization: Bearer {sites.WRITE_KEY}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(head + body)
        return len(head) + len(body), len(connection.recv(65_536))


def fit(of: Deployment, body: bytes, filled: dict[str, float]) -> dict[str, float]:
    """Return the costs in bytes that the small store shows."""
    tallies(of, 1, *_SHAPES[0])  # the first fold of a consumer costs memory of its own
    one, five = (tallies(of, WINDOWS, *shape) / WINDOWS for shape in _SHAPES)
    each = (five - one) / (_SHAPES[1][0] - _SHAPES[0][0])
    incoming, outgoing = wire(of.site.port, body)
    return {
        "id": filled["ids"],
        "waiting": filled["waiting"],
        "window": one - each,
        "tally": each - counter_bytes(_SHAPES[0][1]),
        "wire_in": incoming,
        "wire_out": outgoing,
        **{name: filled[name] for name in ("log", "store_in", "store_out")},
    }


def checks(
    costs: Costs, filled: dict[str, float], tally: float, least: dict[str, float]
) -> Iterator[str]:
    """Yield what the model says of the larger store beside what was found there."""
    windows = FACTOR * WINDOWS
    rows = {
        "id, its share of its bucket included, bytes": (costs.id, filled["ids"]),
        "waiting upload, bytes": (costs.waiting, filled["waiting"]),
        f"{windows:,} windows of {_CHECKED[0]} tallies of {_CHECKED[1]} counters, KiB": (
            tally_bytes(costs, windows, *_CHECKED) / 1_024,
            tally / 1_024,
        ),
        "append-only file, bytes an upload": (costs.log, filled["log"]),
        **{f"{name}, µs an upload": (getattr(costs, name), found) for name, found in least.items()},
    }
    yield head("what", f"predicted at {FACTOR} ×", "found there", "error", f"≤ {BAR:.0%}")
    for what, (said, found) in rows.items():
        error = said / found - 1
        met = verdict(abs(error) <= BAR)
        yield row(what, f"{said:,.1f}", f"{found:,.1f}", f"{error:+.1%}", met)


def rounded(**found: float) -> Costs:
    """Return costs as the table shows them, so that what is planned follows from the table."""
    return Costs(**{name: round(value, 1) for name, value in found.items()})


def main() -> None:
    """Print the tables."""
    metrics = {f"m{i}": items("grr", ITEMS) for i in range(REPORTS)}
    text = registry_text(metrics, epsilon="2.0")
    registry = Registry.from_text(text)
    body = sites.device_body(registry, REPORTS, 1)
    with sites.hearsay(text) as one, sites.hearsay(text) as other:
        small = Deployment(one, registry, SMALL)
        large = Deployment(other, registry, SMALL * FACTOR)
        filled = fill(small)
        sizes = fit(small, body, filled)
        filled = fill(large)
        tally = tallies(large, WINDOWS * FACTOR, *_CHECKED)
        rounds = [(times(small, body), times(large, body)) for _ in range(ROUNDS)]
        least = [{name: min(r[i][name] for r in rounds) for name in rounds[0][i]} for i in (0, 1)]
        costs = rounded(**sizes, **least[0], forget=forget(large))
    print("\n".join([*costs_table(costs), "", *checks(costs, filled, tally, least[1]), ""]))
    print("\n".join([*plan_table(costs), "", *servers_table(costs)]))
