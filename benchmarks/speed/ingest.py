"""What an upload costs the web process, beside the obvious collector, and what a fold costs.

Run: ``python -m benchmarks ingest``; Linux only.  Costs are processor time of the web processes,
kernel included, in many short rounds that take turns: on a busy machine the least of them is the
cost, and the median shows how busy it was.  Stores keep an append-only file, synced every second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Final, NamedTuple

from benchmarks.lib import sites
from benchmarks.lib.load import Plan, send
from benchmarks.lib.page import head, row, verdict
from benchmarks.lib.registries import items, registry_text
from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn, encode
from collector.intake.validation import judge
from collector.intake.wire import JSON, MSGPACK, decode
from collector.storage.values import SealedUpload

ROUNDS: Final = 12  # of each collector
SECONDS: Final = 0.6  # of a round
CONNECTIONS: Final = 64
FOLDS: Final = 6  # of each mechanism
GATEWAY_SIZE: Final = 8_000_000  # bytes of an upload
WEB_BAR, RATIO_BAR = 65.0, 4.2  # microseconds, times
DEVICE: Final = registry_text({f"m{i}": items("grr", 8) for i in range(5)}, epsilon="2.0")
GATEWAY: Final = {"grr": ("grr", 1_024), "pgr": ("pgr", 1_024), "oue": ("oue", 128)}
ACCEPT_BAR: Final = 5.0  # million reports a second and core
FOLD_BAR: Final = {"grr": 40.0, "pgr": 40.0, "oue": 5.0}


class Round(NamedTuple):
    """What some seconds of uploads cost."""

    cost: float  # microseconds of processor an upload
    speed: float  # uploads a second


def measure(site: sites.Site, plan: Plan) -> Round:
    """Send *plan* to *site* and return its cost."""
    plan = replace(plan, port=site.port)
    before = site.cpu()
    outcome = send(plan)
    spent = site.cpu() - before
    if set(outcome.statuses) != {"202"}:
        raise SystemExit(f"ingest: not all were accepted: {outcome.statuses}")
    return Round(spent / outcome.accepted * 1e6, outcome.accepted / plan.seconds)


def device_rows() -> Iterator[str]:
    """Measure device uploads of ten reports, ours and the obvious collector's in turns."""
    registry = Registry.from_text(DEVICE)
    ten, one = (sites.device_body(registry, *shape) for shape in ((10, 1), (1, 10)))
    plan = Plan(0, sites.request(ten), CONNECTIONS, SECONDS)
    gateway = replace(plan, request=sites.request(one, key=sites.GATEWAY_KEY))
    alone = replace(plan, request=sites.request(ten, "Connection: close"), alone=True)
    with sites.hearsay(DEVICE) as ours, sites.obvious() as theirs, sites.floor() as nothing:
        runs = {
            "10 columns of one report": (ours, plan),
            "1 column of 10 reports, of a gateway": (ours, gateway),
            "10 columns, a connection an upload": (ours, alone),
            "the obvious collector, a connection an upload": (theirs, alone),
            "HTTP alone: the body read, all accepted": (nothing, plan),
        }
        found: dict[str, list[Round]] = {name: [] for name in runs}
        for _ in range(ROUNDS):
            for name, (site, how) in runs.items():
                found[name].append(measure(site, how))
    heads = "device upload of 10 reports", "µs, least", "µs, median", "uploads/s, median", "bar", ""
    yield head(*heads)
    for name, rounds in found.items():
        least, middle = min(r.cost for r in rounds), median(r.cost for r in rounds)
        bar = f"≤ {WEB_BAR:.0f} µs" if name in list(runs)[:2] else ""
        speed = median(r.speed for r in rounds)
        numbers = f"{least:.0f}", f"{middle:.0f}", f"{speed:,.0f}"
        yield row(name, *numbers, bar, verdict(least <= WEB_BAR if bar else None))
    yield ""
    yield from _ratios(*list(found.values())[2:4])


def _ratios(ours: list[Round], theirs: list[Round]) -> Iterator[str]:
    """Yield how much faster ours is, pair by pair."""
    cost = median(b.cost / a.cost for a, b in zip(ours, theirs, strict=True))
    speed = median(a.speed / b.speed for a, b in zip(ours, theirs, strict=True))
    met = verdict(speed >= RATIO_BAR)
    what = "beside the obvious collector, pair by pair, a connection an upload"
    yield head(what, "times", "bar", "")
    yield row("uploads/s, one web process each", f"{speed:.1f}", f"≥ {RATIO_BAR}", met)
    yield row("uploads a second of processor", f"{cost:.1f}", "", "")


def step_rows() -> Iterator[str]:
    """Measure the steps of a device upload alone, in this process."""
    registry = Registry.from_text(DEVICE)
    catalog, today = Catalog([registry]), int(time.time() // 86_400)
    yield head("step of a device upload of 10 reports, alone", "µs, least")
    for what, columns, reports in (("10 columns", 10, 1), ("1 column", 1, 10)):
        body = sites.device_body(registry, columns, reports)
        upload = decode(body, JSON)
        entry = judge(upload, catalog, today).entry
        for step, action in (
            ("decode", partial(decode, body, JSON)),
            ("judge and frame", partial(judge, upload, catalog, today)),
        ):
            yield row(f"{step}, {what}", f"{_least(action):.1f}")
    with sites.store_and_worker(registry, shards=4) as (storage, _):
        for size in (1, 8, 64):

            def append(size: int = size) -> None:
                storage.append_many(
                    [SealedUpload(os.urandom(16), today, entry, 10) for _ in range(size)]
                )

            each = _least(append, 1_024 // size) / size
            yield row(f"append, in a group of {size}", f"{each:.1f}")


def _least(action: Callable[[], object], times: int = 1_000) -> float:
    """Return the microseconds of processor of *action*: the least of several rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(times):
            action()
        found.append((time.process_time() - start) / times * 1e6)
    return min(found)


def gateway_rows() -> Iterator[str]:
    """Measure uploads of a gateway, HTTP and append included, and their folds."""
    metrics = {name: items(*shape) for name, shape in GATEWAY.items()}
    text = registry_text(metrics, epsilon="2.0")
    registry = Registry.from_text(text)
    yield "Reports a second of one core, web process and worker, in millions:\n"
    speeds = "accepted, M/s", "bar", "folded, M/s", "bar"
    yield head("mechanism", "reports an upload", *speeds, "")
    with sites.hearsay(text) as site:
        for name, (_, size) in GATEWAY.items():
            body, reports = sites.gateway_body(registry, name, GATEWAY_SIZE)
            request = sites.request(body, kind="msgpack", key=sites.GATEWAY_KEY)
            plan = Plan(0, request, 1, SECONDS)
            accepted = max(reports / measure(site, plan).cost for _ in range(FOLDS))
            folded = fold_speed(registry, body, reports)
            bars = f"≥ {ACCEPT_BAR:.0f}" if name != "oue" else "", f"≥ {FOLD_BAR[name]:.0f}"
            met = folded >= FOLD_BAR[name] and (accepted >= ACCEPT_BAR or not bars[0])
            cells = f"{accepted:.1f}", bars[0], f"{folded:.1f}", bars[1]
            yield row(f"{name}, k = {size:,}", f"{reports:,}", *cells, verdict(met))


def fold_speed(registry: Registry, body: bytes, reports: int) -> float:
    """Return million reports that a second of the worker folds: claim, decode, tally and fold."""
    [column] = decode(body, MSGPACK).columns
    entry = encode([AcceptedColumn(Cell(column.metric, column.epoch, ""), column.payloads)])
    today = int(time.time() // 86_400)
    best = 0.0
    with sites.store_and_worker(registry) as (storage, worker):
        for _ in range(FOLDS):
            storage.append_many([SealedUpload(os.urandom(16), today, entry, reports)])
            before = time.process_time()
            worker.step()
            best = max(best, reports / (time.process_time() - before) / 1e6)
        if storage.backlog():
            raise SystemExit("ingest: not all was folded")
    return best


def main() -> None:
    """Print the tables."""
    for rows in (device_rows, step_rows, gateway_rows):
        for line in rows():
            print(line, flush=True)
        print()
