"""Whether an upload costs the web process more where late reports fall into very many tallies.

Run: ``python -m benchmarks ingest_known``; Linux only.  Two collectors take turns: reports of the
last day fall into 9,600 tallies, those of the last 14 days into 134,400.  All tallies are there
before anything is measured.  Costs are the least processor time of several rounds.
"""

from __future__ import annotations

import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks.lib import sites
from benchmarks.lib.load import Plan
from benchmarks.lib.page import show, verdict
from benchmarks.lib.registries import items, registry_text
from benchmarks.speed.ingest import measure
from client_sdk.core.epoch import day_of
from client_sdk.registry import Registry
from client_sdk.wire.reports import Column, seal_padded

Seal: TypeAlias = Callable[[bytes], bytes]  # an upload, by its id

METRICS, SEGMENTS, SHARDS = 200, 12, 4
DAYS: Final = (1, 14)
REPORTS: Final = 6  # of an upload, each of another metric and day
ROUNDS: Final = 12
SECONDS: Final = 1.5  # of a round
CONNECTIONS: Final = 64
BAR: Final = 1.2  # times the cost where all reports are of one day
_AT_ONCE: Final = 32  # requests that are sent before their answers are read
_HEAD: Final = f"[segments]\nplatform = {[f'p{number}' for number in range(SEGMENTS)]}\n"
_METRIC: Final = items("grr", 8) + '\nsegments = ["platform"]'


def uploads_of(registry: Registry, days: int, today: int) -> list[Seal]:
    """Return uploads that together have a report of every metric, segment and day, by their ids."""
    draw = random.Random(0)
    uploads: list[Seal] = []
    for number in range(SEGMENTS):
        columns = [
            Column(metric.digest, today - late, bytes(metric.mechanism.payload_size))
            for metric, late in product(registry, range(days))
        ]
        draw.shuffle(columns)
        segment = {"platform": f"p{number}"}
        uploads += [
            partial(seal_padded, sealed_day=today, segment=segment, columns=some)
            for some in (columns[at : at + REPORTS] for at in range(0, len(columns), REPORTS))
        ]
    draw.shuffle(uploads)
    return uploads


def begin_tallies(site: sites.Site, uploads: Sequence[Seal]) -> None:
    """Send each of *uploads* once to every shard."""
    requests = [
        sites.request(seal(shard.to_bytes(8, "big") + number.to_bytes(8, "big")))
        for number, seal in enumerate(uploads, 1)
        for shard in range(SHARDS)
    ]
    with socket.create_connection(("127.0.0.1", site.port)) as connection:
        for place in range(0, len(requests), _AT_ONCE):
            some = requests[place : place + _AT_ONCE]
            connection.sendall(b"".join(some))
            answers = b""
            while answers.count(b"HTTP/1.1 ") < len(some):
                answers += connection.recv(65_536)
            if answers.count(b"HTTP/1.1 202") < len(some):
                raise SystemExit(f"ingest_known: not all were accepted: {answers[:200]!r}")


def rows() -> Iterator[tuple[str, ...]]:
    """Measure uploads of one day and of many, in turns."""
    text = registry_text({f"m{n}": _METRIC for n in range(METRICS)}, _HEAD, epsilon="2.0")
    registry, today = Registry.from_text(text), day_of(time.time())
    settings = {"HEARSAY_SHARDS": str(SHARDS), "HEARSAY_NEW_TALLIES_MB": "1000"}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runs: dict[int, tuple[sites.Site, Plan]] = {}
        for days in DAYS:
            uploads = uploads_of(registry, days, today)
            site = stack.enter_context(sites.hearsay(text, **settings))
            begin_tallies(site, uploads)
            requests = [sites.request(seal(sites.NO_ID)) for seal in uploads]
            corpus = folder / f"{days}.requests"
            corpus.write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in requests))
            plan = Plan(0, requests[0], CONNECTIONS, SECONDS, corpus=str(corpus))
            runs[days] = site, plan
        found: dict[int, list[float]] = {days: [] for days in DAYS}
        for _ in range(ROUNDS):
            for days, (site, plan) in runs.items():
                found[days].append(measure(site, plan).cost)
    least = {days: min(costs) for days, costs in found.items()}
    for days, cost in least.items():
        met = None if days == DAYS[0] else cost <= BAR * least[DAYS[0]]
        tallies = METRICS * SEGMENTS * SHARDS * days
        times = f"{cost / least[DAYS[0]]:.2f}"
        yield str(days), f"{tallies:,}", f"{cost:.0f}", times, verdict(met)


def main() -> None:
    """Print the table."""
    show(("days", "tallies", "web µs an upload", "times", f"≤ {BAR}"), rows())
