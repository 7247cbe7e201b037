"""What an upload costs the web process, beside the obvious collector, and what a fold costs.

Run: ``python -m benchmarks ingest``; Linux only.  Costs are processor time of the web processes,
kernel included, in many short rounds that take turns: on a busy machine the least of them is the
cost, and the median shows how busy it was.  Stores keep an append-only file, synced every second.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.lib import sites
from benchmarks.lib.load import Plan, send
from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn, encode
from collector.demo.embedded import PATH, WHEEL, launch
from collector.intake.validation import judge
from collector.intake.wire import JSON, MSGPACK, decode
from collector.storage.connect import open_storage
from collector.storage.values import SealedUpload
from collector.worker.worker import Worker

ROUNDS: Final = 12  # of each collector
SECONDS: Final = 0.6  # of a round
CONNECTIONS: Final = 64
FOLDS: Final = 6  # of each mechanism
GATEWAY_SIZE: Final = 8_000_000  # bytes of an upload
WEB_BAR, RATIO_BAR = 80.0, 4.0  # microseconds, times
DEVICE: Final = {f"m{i}": ("grr", 8) for i in range(5)}
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
    text = sites.registry_text(DEVICE)
    ten = sites.device_body(Registry.from_text(text), 10, 1)
    one = sites.device_body(Registry.from_text(text), 1, 10)
    plan = Plan(0, sites.WRITE_KEY, ten, True, CONNECTIONS, SECONDS)
    alone = replace(plan, keep_alive=False)
    with sites.hearsay(text) as ours, sites.obvious() as theirs, sites.floor() as nothing:
        runs = {
            "10 columns of one report": (ours, plan),
            "1 column of 10 reports, of a gateway": (
                ours,
                replace(plan, body=one, key=sites.GATEWAY_KEY),
            ),
            "10 columns, a connection an upload": (ours, alone),
            "the obvious collector, a connection an upload": (theirs, alone),
            "HTTP alone: the body read, all accepted": (nothing, plan),
        }
        found: dict[str, list[Round]] = {name: [] for name in runs}
        for _ in range(ROUNDS):
            for name, (site, how) in runs.items():
                found[name].append(measure(site, how))
    yield "| device upload of 10 reports | µs, least | µs, median | uploads/s, median | bar | |"
    yield "|---|---|---|---|---|---|"
    for name, rounds in found.items():
        least, middle = min(r.cost for r in rounds), median(r.cost for r in rounds)
        bar = f"≤ {WEB_BAR:.0f} µs" if name in list(runs)[:2] else ""
        met = "" if not bar else "pass" if least <= WEB_BAR else "FAIL"
        speed = median(r.speed for r in rounds)
        yield f"| {name} | {least:.0f} | {middle:.0f} | {speed:,.0f} | {bar} | {met} |"
    yield ""
    yield from _ratios(*list(found.values())[2:4])


def _ratios(ours: list[Round], theirs: list[Round]) -> Iterator[str]:
    """Yield how much faster ours is, pair by pair."""
    cost = median(b.cost / a.cost for a, b in zip(ours, theirs, strict=True))
    speed = median(a.speed / b.speed for a, b in zip(ours, theirs, strict=True))
    met = "pass" if speed >= RATIO_BAR else "FAIL"
    yield "| beside the obvious collector, pair by pair, a connection an upload | times | bar | |"
    yield "|---|---|---|---|"
    yield f"| uploads/s, one web process each | {speed:.1f} | ≥ {RATIO_BAR:.0f} | {met} |"
    yield f"| uploads a second of processor | {cost:.1f} | | |"


def step_rows() -> Iterator[str]:
    """Measure the steps of a device upload alone, in this process."""
    registry = Registry.from_text(sites.registry_text(DEVICE))
    catalog, today = Catalog([registry]), int(time.time() // 86_400)
    yield "| step of a device upload of 10 reports, alone | µs, least |"
    yield "|---|---|"
    for what, columns, reports in (("10 columns", 10, 1), ("1 column", 1, 10)):
        body = sites.device_body(registry, columns, reports)
        upload = decode(body, JSON)
        verdict = judge(upload, catalog, today)
        yield f"| decode, {what} | {_least(partial(decode, body, JSON)):.1f} |"
        yield f"| judge, {what} | {_least(partial(judge, upload, catalog, today)):.1f} |"
        yield f"| frame, {what} | {_least(partial(encode, verdict.accepted)):.1f} |"
    entry = encode(verdict.accepted)
    with tempfile.TemporaryDirectory() as folder, launch(None, Path(folder), (PATH, WHEEL)) as run:
        storage = open_storage(run.url, "bench", 4, "standard")
        storage.prepare()
        for size in (1, 8, 64):

            def append(size: int = size) -> None:
                storage.append_many(
                    [SealedUpload(os.urandom(16), today, entry, 10) for _ in range(size)]
                )

            yield f"| append, in a group of {size} | {_least(append, 1_024 // size) / size:.1f} |"


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
    text = sites.registry_text(GATEWAY)
    registry = Registry.from_text(text)
    yield "Reports a second of one core, web process and worker, in millions:\n"
    yield "| mechanism | reports an upload | accepted, M/s | bar | folded, M/s | bar | |"
    yield "|---|---|---|---|---|---|---|"
    with sites.hearsay(text) as site:
        for name, (_, size) in GATEWAY.items():
            body, reports = sites.gateway_body(registry, name, GATEWAY_SIZE)
            plan = Plan(0, sites.GATEWAY_KEY, body, False, 1, SECONDS)
            accepted = max(reports / measure(site, plan).cost for _ in range(FOLDS))
            folded = fold_speed(registry, name, body, reports)
            bars = f"≥ {ACCEPT_BAR:.0f}" if name != "oue" else "", f"≥ {FOLD_BAR[name]:.0f}"
            met = folded >= FOLD_BAR[name] and (accepted >= ACCEPT_BAR or not bars[0])
            yield (
                f"| {name}, k = {size:,} | {reports:,} | {accepted:.1f} | {bars[0]} |"
                f" {folded:.1f} | {bars[1]} | {'pass' if met else 'FAIL'} |"
            )


def fold_speed(registry: Registry, name: str, body: bytes, reports: int) -> float:
    """Return million reports that a second of the worker folds: claim, decode, tally and fold."""
    metric = registry.metric(name)
    [column] = decode(body, MSGPACK).columns
    entry = encode([AcceptedColumn(Cell(column.metric, column.epoch, ""), column.payloads)])
    today = int(time.time() // 86_400)
    best = 0.0
    with tempfile.TemporaryDirectory() as folder, launch(None, Path(folder), (PATH, WHEEL)) as run:
        storage = open_storage(run.url, "bench", 1, "standard")
        storage.prepare()
        worker = Worker(storage, {metric.digest: metric.mechanism}, {metric.digest: metric.every})
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
        for row in rows():
            print(row, flush=True)
        print()
