"""How much longer honest uploads wait while somebody attacks.

Run: ``python -m benchmarks hostile``.  Honest uploads come at random moments; each attack sends 100
requests a second beside them.  Rounds with and without the attack take turns; both figures are
medians over the rounds, and so is their ratio, pair by pair.  The attackers run on the same machine
and take processor from the collector too.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from statistics import median
from typing import Final

from benchmarks.lib import page, sites
from benchmarks.lib.load import Outcome, Plan, finish, send, start
from benchmarks.lib.sites import request
from benchmarks.speed.ingest import DEVICE
from benchmarks.speed.ingest_load import SLOW, slow_connections
from client_sdk.core.epoch import day_of, epoch_of
from client_sdk.core.limits import MAX_COLUMNS, MAX_DEVICE_BODY
from client_sdk.registry import Registry
from client_sdk.wire.reports import Column, seal, seal_binary

RATE: Final = 200.0  # honest uploads a second
ATTACK: Final = 100.0  # hostile requests a second
CONNECTIONS: Final = 32
SECONDS: Final = 2.0  # of a round
ROUNDS: Final = 7
BAR: Final = 2.0  # times the p99 without the attack
_BOMB: Final = 60 << 20  # bytes, within a device's limit once they are packed
_INVALID: Final = b"\xff"  # a payload of DEVICE's metrics that no value gives


def attacks(registry: Registry, now: float) -> dict[str, bytes]:
    """Return a request of every attack."""
    day, epoch = day_of(now), epoch_of("1d", now)
    metrics = list(registry)
    name = metrics[0].digest
    long = seal_binary(sites.NO_ID, day, {}, [Column(name, epoch, _INVALID * 65_000)])
    pairs = [(metric.digest, epoch - back) for back in range(MAX_COLUMNS) for metric in metrics]
    many = [Column(*pair, _INVALID) for pair in pairs[:MAX_COLUMNS]]
    text = seal(sites.NO_ID, day, {}, [Column(name, epoch, b"\0" * 30_000)])
    much = seal_binary(sites.NO_ID, day, {}, [Column(name, epoch, _INVALID * 260_000)])
    invalid, packed = seal_binary(sites.NO_ID, day, {}, many), "Content-Encoding: gzip"
    return {
        "bombs of gzip, 60 MB each": request(gzip.compress(b" " * _BOMB), packed),
        "60,000 brackets": request(b"[" * 60_000),
        "a number of 60,000 digits": request(b'{"v":' + b"7" * 60_000 + b"}"),
        "a number of 60,000 digits as payloads": request(
            text.replace(b'"payloads":"', b'"payloads":' + b"7" * 20_000 + b',"x":"')
        ),
        "a key in disguise, and 40 kB": request(text.replace(b'"v"', b'"\\u0076"')),
        "65,000 invalid payloads": request(long, kind="msgpack"),
        "260,000 invalid payloads as gzip": request(gzip.compress(much), packed, kind="msgpack"),
        f"{MAX_COLUMNS} invalid columns": request(invalid, kind="msgpack"),
        "140 headers": request(b"{}", *(f"X-{i}: {'x' * 100}" for i in range(140))),
        "a body of 64 KiB of spaces": request(b" " * MAX_DEVICE_BODY),
        "a wrong key": request(b"{}", key="nobody"),
    }


def rows(text: str) -> Iterator[tuple[object, ...]]:
    """Measure each attack in turns with no attack."""
    registry = Registry.from_text(text)
    body = sites.device_body(registry, 10, 1)
    with sites.hearsay(text) as site:
        plan = Plan(site.port, request(body), CONNECTIONS, SECONDS, RATE)
        send(plan)
        for what, raw in attacks(registry, time.time()).items():
            attack = Plan(site.port, raw, CONNECTIONS, SECONDS + 1, ATTACK)
            yield row(what, *zip(*(_pair(plan, attack) for _ in range(ROUNDS)), strict=True))
        pairs = []
        for _ in range(ROUNDS):
            alone = send(plan)
            with slow_connections(site.port, sites.WRITE_KEY):
                pairs.append((alone, send(plan)))
        yield row(f"{SLOW} half-sent bodies", *zip(*pairs, strict=True))


def _pair(plan: Plan, attack: Plan) -> tuple[Outcome, Outcome]:
    alone = send(plan)
    attacker = start(attack)
    beside = send(plan)
    finish(attacker)
    return alone, beside


def row(what: str, alone: tuple[Outcome, ...], beside: tuple[Outcome, ...]) -> tuple[object, ...]:
    """Return a line of the table."""
    ratio = median(b.p99 / a.p99 for a, b in zip(alone, beside, strict=True))
    refused = sum(sum(b.statuses.values()) - b.accepted for b in beside)
    refused -= sum(b.statuses.get("not sent", 0) for b in beside)  # late, and so in no p99
    met = ratio <= BAR and not refused
    times = (f"{median(outcome.p99 for outcome in side):.1f}" for side in (alone, beside))
    return what, *times, f"{ratio:.2f}", refused, page.verdict(met)


def main() -> None:
    """Print the table."""
    print(f"Honest: {RATE:.0f} uploads/s of 10 columns.  Attack: {ATTACK:.0f} requests/s.\n")
    bar = f"times (bar ≤ {BAR:.0f})"
    heads = "attack", "p99 alone, ms", "beside it, ms", bar, "honest refused", ""
    page.show(heads, rows(DEVICE))
