"""Whether a panel draws its shares of the devices, and intervals hold the truth of all of them.

The devices of a real gateway record twelve metrics in each of many weeks; their uploads go through
intake and worker, and each week is queried.  Truths are of all devices, those that the panel did
not draw included.  Beside it stands how often intervals would hold that are of the devices alone
that reported.

Run: ``python -m benchmarks panels``; some minutes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import sqrt
from typing import Final, NamedTuple

from benchmarks.lib.page import table
from client_sdk.core.dataclass import replace
from client_sdk.core.epoch import DAY, day_of
from client_sdk.gateway import Gateway
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import Consent, NoOptOuts
from client_sdk.privacy.panel import with_samples
from client_sdk.registry.contract import Registry
from client_sdk.testing import FrozenClock, MemoryTransport
from collector.core.catalog import Catalog
from collector.core.entry import encode
from collector.intake.validation import judge
from collector.intake.wire import MSGPACK, decode
from collector.query import plan, read, run
from collector.worker.worker import Pace, Worker
from tests.support.store.memory_storage import MemoryStorage

DEVICES: Final = 1_200
WEEKS: Final = 120
EPSILONS: Final = ("1", "2", "4")
WEIGHTS: Final = (1, 2, 3)
WEEK: Final = "20"  # of the panel: some three metrics at a time
MONDAY: Final = (2_900 * 7 - 3) * DAY + DAY // 2  # Unix time

_METRIC: Final = """
[metrics.{name}]
title = "A metric"
question = "What do we decide by it?"
{kind}
epsilon = "{epsilon}"
every = "7d"
longitudinal = "fresh"
owner = "benchmarks"
expected_devices = 1000
min_reports = 100
expires = 2099-12-31
weight = {weight}
"""
_KINDS: Final = ('type = "boolean"', 'type = "category"\nvalues = ["true", "b", "c"]')

Values = Mapping[str, Sequence[object]]  # by the name of a metric, of every device


class Covered(NamedTuple):
    """How many intervals of a metric there were, and how many held the share of the first item."""

    intervals: int
    held: int


def registry(
    epsilons: Sequence[str] = EPSILONS, weights: Sequence[int] = WEIGHTS, week: str = WEEK
) -> Registry:
    """Return twelve weekly metrics of two kinds, of these ε and weights in turn."""
    metrics = (
        _METRIC.format(
            name=f"m{i}",
            kind=_KINDS[i % len(_KINDS)],
            epsilon=epsilons[i % len(epsilons)],
            weight=weights[i // 4 % len(weights)],
        )
        for i in range(12)
    )
    head = f'schema = 1\napp = "panels"\n[panel]\nweek = "{week}"\n'
    return with_samples(Registry.from_text(head + "".join(metrics)))


def values_of(metrics: Registry, devices: int) -> Values:
    """Return what each device holds, the same in all weeks."""
    chance, values = random.Random(14), {}
    for place, metric in enumerate(metrics):
        share = (0.05, 0.2, 0.35, 0.5)[place % 4]
        other = False if metric.type == "boolean" else "b"
        true = True if metric.type == "boolean" else "true"
        values[metric.name] = [true if chance.random() < share else other for _ in range(devices)]
    return values


def collected(metrics: Registry, values: Values, weeks: int) -> MemoryStorage:
    """Return the store after every device has recorded all of *values* in each of *weeks*."""
    clock, storage, catalog = FrozenClock(MONDAY), MemoryStorage(), Catalog([metrics])
    mechanisms = {digest: metric.mechanism for digest, metric in metrics.by_digest.items()}
    worker = Worker(storage, mechanisms, dict.fromkeys(mechanisms, "7d"), pace=Pace())
    transport = MemoryTransport()
    gateway = Gateway(
        "http://127.0.0.1", "", metrics, consent=Consent.GRANTED, data_dir=None,
        caps=Caps(week="99", lifetime="99999"), transport=transport, opt_outs=NoOptOuts(),
        clock=clock, uptime=clock.uptime,
    )  # fmt: skip
    for _ in range(weeks):
        for name, column in values.items():
            gateway.record_many((f"d{i}", name, value) for i, value in enumerate(column))
        while gateway.flush().waiting:
            pass
        for body in transport.uploads:
            upload = decode(body, MSGPACK)
            verdict = judge(upload, catalog, day_of(clock()))
            storage.append(upload.id, upload.sealed, encode(verdict.accepted), verdict.reports)
        transport.uploads.clear()
        while worker.step():
            pass
        clock.advance(days=7)
    counts = gateway.stats()
    recorded = weeks * sum(map(len, values.values()))
    if counts["recorded"] + counts["not_in_panel"] != recorded:
        raise RuntimeError(f"stats={dict(counts)}: must be recorded or outside of the panel")
    return storage


def covered(
    metrics: Registry, storage: MemoryStorage, values: Values, weeks: int
) -> dict[str, Covered]:
    """Return of each metric how often the interval of a week held the share of all devices."""
    last, catalog = MONDAY + weeks * 7 * DAY, Catalog([metrics])
    dates = [date_of(MONDAY - DAY), date_of(last)]
    result = {}
    for name, column in values.items():
        first = Counter(column)[True] or Counter(column)["true"]
        truth = first / len(column)
        body = {"metrics": [name], "dimensions": ["time"], "date_range": dates}
        answer = run(plan(read(json.dumps(body).encode()), catalog, last), storage)
        rows = [row for row in answer.rows if row.item == "true" and row.value is not None]
        held = sum((row.ci_low or 0) <= truth <= (row.ci_high or 0) for row in rows)
        result[name] = Covered(len(rows), held)
    return result


def reports(metrics: Registry, storage: MemoryStorage) -> dict[str, int]:
    """Return how many reports of each metric were folded."""
    counts: Counter[str] = Counter()
    for cell, entries in storage.tallied.items():
        counts[metrics.by_digest[cell.metric].name] += entries[0]
    return dict(counts)


def of_reporters(metrics: Registry) -> Registry:
    """Return *metrics* as if nobody had been drawn."""
    plain = {m.name: replace(m, sample=type(m.sample)()) for m in metrics}
    return replace(metrics, metrics=plain)


def date_of(seconds: float) -> str:
    """Return the day of Unix time *seconds* as a query takes it."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _apart(share: float, reported: float, draws: int) -> float:
    """Return how many standard errors the reported share is apart from its chance."""
    return (reported - share) / sqrt(share * (1 - share) / draws)


def main() -> None:
    """Print a line a metric, and all together."""
    metrics = registry()
    values = values_of(metrics, DEVICES)
    storage = collected(metrics, values, WEEKS)
    counts, draws = reports(metrics, storage), DEVICES * WEEKS
    ours, theirs = (covered(of, storage, values, WEEKS) for of in (metrics, of_reporters(metrics)))
    rows = [
        (
            name,
            f"{float(metric.epsilon):g}",
            f"{100 * metric.sample.share:.2f} %",
            f"{100 * counts[name] / draws:.2f} %",
            f"{_apart(metric.sample.share, counts[name] / draws, draws):+.1f}",
            f"{100 * ours[name].held / ours[name].intervals:.1f} %",
            f"{100 * theirs[name].held / theirs[name].intervals:.1f} %",
        )
        for name, metric in metrics.metrics.items()
    ]
    heads = (
        "metric",
        "ε",
        "chance",
        "reported",
        "standard errors apart",
        "intervals hold",
        "without the draw",
    )
    print(table(heads, rows))
    for words, of in (("with", ours), ("without", theirs)):
        intervals, held = (sum(part) for part in zip(*of.values(), strict=True))
        print(f"{words} the draw {100 * held / intervals:.2f} % of {intervals:,} intervals hold")
