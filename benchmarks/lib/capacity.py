"""The capacity model: what a fleet needs, from what an upload, an id and a counter cost.  Pure.

All sizes are bytes, all times microseconds of processor, unless a name says otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from math import ceil
from typing import Any, Final

from redis.crc import key_slot

from benchmarks.lib.page import head, row
from collector.core.cells import LAST_DAYS
from collector.intake.backpressure import ALARM_MEMORY
from collector.storage.redis import SEEN_DAYS

GIB: Final = 1 << 30
DAY_S: Final = 86_400
SLOTS: Final = 16_384  # of a cluster
COUNTER: Final = 8  # bytes
HEADER: Final = 6  # bytes of a string, its end included
BUSY: Final = 0.7  # share of a core that is planned for
IDS_A_SET: Final = 1_000_000  # ids of one shard and day, from which more shards are planned
# As in hearsay.lua: the fewest buckets of a day, ids a bucket for which it is planned, and those
# from which there are four times as many.
FEWEST, PLANNED, FULL = 16, 288, 384
SERVERS: Final = {
    "768 MB, as in `docker-compose.yml`": 768 << 20,
    "8 GiB": 8 << 30,
    "32 GiB": 32 << 30,
}
NODE_GIB: Final = 32  # maxmemory of one server; its machine has twice that


def _what(text: str) -> Any:
    return field(metadata={"what": text})


@dataclass(frozen=True)
class Costs:
    """What was measured, as the table in docs/evidence/scale.md names it."""

    id: float = _what(
        "bytes: an upload id, its part of its bucket and of the server's table included"
    )
    waiting: float = _what("bytes: an upload of three reports that waits to be folded")
    window: float = _what("bytes: the index of one metric and epoch, on one shard")
    tally: float = _what("bytes: a tally, beside its counters")
    web: float = _what("µs of a web process, an upload")
    append: float = _what("µs of the store, an upload accepted")
    fold: float = _what("µs of the store, an upload claimed and folded")
    worker: float = _what("µs of a worker, an upload")
    wire_in: float = _what("bytes from a device, headers included, without TLS")
    wire_out: float = _what("bytes to it")
    store_in: float = _what("bytes into the store, an upload accepted and folded")
    store_out: float = _what("bytes out of it")
    log: float = _what("bytes of append-only file, an upload accepted and folded")
    forget: float = _what("ns of the store: to delete an id")


@dataclass(frozen=True)
class Fleet:
    """Who reports what, and for how long it is kept."""

    name: str
    devices: int
    uploads: float = 1.0  # of a device a day, of up to three reports
    metrics: int = 3  # each asked daily
    counters: int = 101  # of a tally: 100 items and the number of reports
    segments: int = 5  # combinations of declared values
    epochs: int = 400  # days whose tallies are kept
    peak: float = 10.0  # busiest minute over the mean: the return of a fleet after an outage
    outage_h: float = 1.0  # hours without a worker that the streams must hold


@dataclass(frozen=True)
class Plan:
    """What a fleet needs."""

    shards: int
    primaries: int
    ids: float
    tallies: float
    backlog: float
    fullest: float  # bytes in use of the server with most shards
    rate: float  # uploads a second, mean


def wrong_repeats(ids: int, planned: int) -> float:
    """Return how many of the *ids* of a shard and day are taken for repeats that they are not.

    An id is, if one of those in the buckets where it is looked for has the same 64 bits.

    Args: planned: ids for which the day began with buckets.
    """
    total = float(max(FEWEST, ceil(planned / PLANNED)))
    before = compared = 0.0  # ids of levels that are full, and ids in their buckets
    expected = 0.0
    while before < ids:
        size = total if not before else 3 * total / 4
        here = min(ids, FULL * total) - before
        expected += here * (compared + here / size / 2)
        before, compared, total = before + here, compared + here / size, 4 * total
    return expected / 2**64


def counter_bytes(counters: int) -> int:
    """Return the most bytes that the counters of a tally take.

    A string that a later fold made longer has twice the room it needs, until the server is started
    again; and the allocator has four sizes from one power of two to the next.
    """
    needed = 2 * COUNTER * counters + HEADER
    step = 1 << max(4, (needed - 1).bit_length() - 3)
    return ceil(needed / step) * step


def tally_bytes(costs: Costs, windows: int, segments: int, counters: int) -> float:
    """Return the bytes of *windows* of so many tallies of so many counters, on one shard."""
    return windows * (costs.window + segments * (costs.tally + counter_bytes(counters)))


def fullest_share(shards: int, primaries: int) -> float:
    """Return the share of the shards on the primary with most, the slots being cut evenly."""
    places = Counter(key_slot(b"{%d}" % shard) * primaries // SLOTS for shard in range(shards))
    return max(places.values()) / shards


def shards_for(uploads_a_day: float) -> int:
    """Return how many shards keep a day's set of ids small: a power of two, at least 4."""
    return 1 << max(2, (ceil(uploads_a_day / IDS_A_SET) - 1).bit_length())


def memory(costs: Costs, fleet: Fleet, shards: int) -> tuple[float, float, float]:
    """Return the bytes of ids, of tallies and of what waits, over all servers."""
    a_day = fleet.devices * fleet.uploads
    ids = SEEN_DAYS * a_day * costs.id
    windows = fleet.metrics * fleet.epochs
    tallies = len(LAST_DAYS) * fleet.segments
    kept = shards * tally_bytes(costs, windows, tallies, fleet.counters)
    return ids, kept, a_day / 24 * fleet.outage_h * costs.waiting


def plan(costs: Costs, fleet: Fleet, node: float = NODE_GIB * GIB) -> Plan:
    """Return what *fleet* needs on servers of *node* bytes of ``maxmemory``.

    Raises: ValueError: not even a server a shard is enough.
    """
    a_day = fleet.devices * fleet.uploads
    shards = shards_for(a_day)
    ids, tallies, backlog = memory(costs, fleet, shards)
    total = ids + tallies + backlog
    counts = range(1, shards + 1)
    fitting = (n for n in counts if total * fullest_share(shards, n) <= ALARM_MEMORY * node)
    primaries = next(fitting, 0)
    if not primaries:
        raise ValueError(f"node={node:.0f}: must be larger for this fleet")
    fullest = total * fullest_share(shards, primaries)
    return Plan(shards, primaries, ids, tallies, backlog, fullest, a_day / DAY_S)


def most_uploads(costs: Costs, node: float) -> int:
    """Return how many uploads a day one server of *node* bytes of ``maxmemory`` carries."""
    few, many = 0, ceil(node)
    while many - few > 1:
        middle = (few + many) // 2
        needed = sum(memory(costs, Fleet("", middle), shards_for(middle)))
        few, many = (middle, many) if needed <= ALARM_MEMORY * node else (few, middle)
    return few


FLEETS: Final = (
    Fleet("1 M devices", 1_000_000),
    Fleet("100 M devices", 100_000_000),
    Fleet("100 M devices, an upload a report", 100_000_000, 3.0),
)


def costs_table(costs: Costs) -> Iterator[str]:
    """Yield the table of what was measured."""
    yield head("cost", "measured", "what")
    for one in fields(Costs):
        yield row(one.name, f"{getattr(costs, one.name):,.1f}", one.metadata["what"])


def plan_table(costs: Costs) -> Iterator[str]:
    """Yield what each fleet needs, a column each."""
    columns = [_column(costs, fleet) for fleet in FLEETS]
    yield head("", *(fleet.name for fleet in FLEETS))
    for what in columns[0]:
        yield row(what, *(column[what] for column in columns))


def _column(costs: Costs, fleet: Fleet) -> dict[str, str]:
    found = plan(costs, fleet)
    peak, a_day = found.rate * fleet.peak, found.rate * DAY_S
    cores = peak / 1e6 / BUSY  # of one microsecond an upload
    return {
        "uploads a second, mean": f"{found.rate:,.0f}",
        f"uploads a second, peak of {fleet.peak:.0f} ×": f"{peak:,.0f}",
        "`HEARSAY_SHARDS`": str(found.shards),
        f"ids of {SEEN_DAYS} days, GiB": f"{found.ids / GIB:,.1f}",
        "uploads a year taken for repeats": f"{_wrong(found, DAY_S):.0e}",
        "tallies of 400 days, GiB": f"{found.tallies / GIB:,.1f}",
        "an hour without workers, GiB": f"{found.backlog / GIB:,.2f}",
        f"servers of {NODE_GIB} GiB `maxmemory`": str(found.primaries),
        "the same with a replica each": str(2 * found.primaries),
        "in use on the fullest, GiB": f"{found.fullest / GIB:,.1f}",
        "store, cores at the peak": f"{cores * (costs.append + costs.fold):.2f}",
        "web processes, cores at the peak": f"{cores * costs.web:.2f}",
        "workers, cores at the peak": f"{cores * costs.worker:.2f}",
        "from devices at the peak, MB/s": f"{peak * costs.wire_in / 1e6:,.1f}",
        "append-only file, GB a day": f"{a_day * costs.log / 1e9:,.1f}",
        "deleting a day of ids of a shard, ms": f"{costs.forget * a_day / found.shards / 1e6:,.1f}",
    }


def _wrong(found: Plan, day: int) -> float:
    """Return how many uploads of a year are taken for repeats, as each day is planned for."""
    ids = ceil(found.rate * day / found.shards)
    return 365 * found.shards * wrong_repeats(ids, ids)


def servers_table(costs: Costs) -> Iterator[str]:
    """Yield how many uploads a day single servers carry."""
    yield head("`maxmemory` of a single server", "million uploads a day")
    for name, size in SERVERS.items():
        yield row(name, f"{most_uploads(costs, size) / 1e6:.1f}")
