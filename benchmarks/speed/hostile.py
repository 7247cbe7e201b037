"""How much longer honest uploads wait while somebody attacks.

Run: ``python -m benchmarks hostile``.  Honest uploads come at random moments; each attack sends 100
requests a second beside them.  Rounds with and without the attack take turns; both figures are
medians over the rounds, and so is their ratio, pair by pair.  The attackers run on the same machine
and take processor from the collector too.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Final

from benchmarks.lib import attack as attackers
from benchmarks.lib import page, sites
from benchmarks.lib.load import Outcome, Plan, send
from benchmarks.speed.ingest import DEVICE
from benchmarks.speed.ingest_load import SLOW, slow_connections
from client_sdk.core.epoch import day_of, epoch_of
from client_sdk.core.limits import MAX_COLUMNS, MAX_DEVICE_BODY
from client_sdk.core.wire import Column, seal, seal_binary
from client_sdk.registry import Registry

RATE: Final = 200.0  # honest uploads a second
ATTACK: Final = 100.0  # hostile requests a second
CONNECTIONS: Final = 32
SECONDS: Final = 2.0  # of a round
ROUNDS: Final = 7
BAR: Final = 2.0  # times the p99 without the attack
_MEGABYTE: Final = 1 << 20
_INVALID: Final = b"\xff"  # a payload of DEVICE's metrics that no value gives


def request(body: bytes, kind: str = "json", *lines: str, key: str = sites.WRITE_KEY) -> bytes:
    """Return an upload as raw bytes."""
    head = (
        "POST /v1/reports HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {key}",
        f"Content-Type: application/{kind}",
        f"Content-Length: {len(body)}",
        *lines,
    )
    return ("\r\n".join(head) + "\r\n\r\n").encode() + body


def bomb() -> bytes:
    """Return 60 MB of spaces as gzip, within a device's limit."""
    deflater = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    parts = [deflater.compress(b" " * _MEGABYTE) for _ in range(60)]
    return b"".join((*parts, deflater.flush()))


def attacks(registry: Registry, now: float) -> dict[str, bytes]:
    """Return a request of every attack."""
    day, epoch = day_of(now), epoch_of("1d", now)
    metrics = list(registry)
    name = metrics[0].digest
    long = seal_binary(sites.NO_ID, day, {}, [Column(name, epoch, _INVALID * 65_000)])
    pairs = [(metric.digest, epoch - back) for back in range(MAX_COLUMNS) for metric in metrics]
    many = [Column(*pair, _INVALID) for pair in pairs[:MAX_COLUMNS]]
    text = seal(sites.NO_ID, day, {}, [Column(name, epoch, b"\0" * 30_000)])
    packed = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    squeezed = (
        packed.compress(
            seal_binary(sites.NO_ID, day, {}, [Column(name, epoch, _INVALID * 260_000)])
        )
        + packed.flush()
    )
    return {
        "bombs of gzip, 60 MB each": request(bomb(), "json", "Content-Encoding: gzip"),
        "60,000 brackets": request(b"[" * 60_000),
        "a number of 60,000 digits": request(b'{"v":' + b"7" * 60_000 + b"}"),
        "a number of 60,000 digits as payloads": request(
            text.replace(b'"payloads":"', b'"payloads":' + b"7" * 20_000 + b',"x":"')
        ),
        "a key in disguise, and 40 kB": request(text.replace(b'"v"', b'"\\u0076"')),
        "65,000 invalid payloads": request(long, "msgpack"),
        "260,000 invalid payloads as gzip": request(squeezed, "msgpack", "Content-Encoding: gzip"),
        f"{MAX_COLUMNS} invalid columns": request(
            seal_binary(sites.NO_ID, day, {}, many), "msgpack"
        ),
        "140 headers": request(b"{}", "json", *(f"X-{i}: {'x' * 100}" for i in range(140))),
        "a body of 64 KiB of spaces": request(b" " * MAX_DEVICE_BODY),
        "a wrong key": request(b"{}", key="nobody"),
    }


def rows(text: str) -> Iterator[str]:
    """Measure each attack in turns with no attack."""
    registry = Registry.from_text(text)
    body = sites.device_body(registry, 10, 1)
    with sites.hearsay(text) as site:
        plan = Plan(site.port, sites.WRITE_KEY, body, True, CONNECTIONS, SECONDS, RATE)
        send(plan)
        for what, raw in attacks(registry, time.time()).items():
            attack = attackers.Attack(site.port, raw, ATTACK, CONNECTIONS, SECONDS)
            yield row(what, *zip(*(_pair(plan, attack) for _ in range(ROUNDS)), strict=True))
        pairs = []
        for _ in range(ROUNDS):
            alone = send(plan)
            with slow_connections(site.port, sites.WRITE_KEY):
                pairs.append((alone, send(plan)))
        yield row(f"{SLOW} half-sent bodies", *zip(*pairs, strict=True))


def _pair(plan: Plan, attack: attackers.Attack) -> tuple[Outcome, Outcome]:
    alone = send(plan)
    attacker = attackers.start(replace(attack, seconds=SECONDS + 1))
    beside = send(plan)
    attacker.wait()
    return alone, beside


def row(what: str, alone: tuple[Outcome, ...], beside: tuple[Outcome, ...]) -> str:
    """Return a line of the table."""
    ratio = median(b.p99 / a.p99 for a, b in zip(alone, beside, strict=True))
    refused = sum(sum(b.statuses.values()) - b.accepted for b in beside)
    refused -= sum(b.statuses.get("not sent", 0) for b in beside)  # late, and so in no p99
    met = ratio <= BAR and not refused
    times = (f"{median(outcome.p99 for outcome in side):.1f}" for side in (alone, beside))
    return page.row(what, *times, f"{ratio:.2f}", refused, page.verdict(met))


def main() -> None:
    """Print the table."""
    print(f"Honest: {RATE:.0f} uploads/s of 10 columns.  Attack: {ATTACK:.0f} requests/s.\n")
    bar = f"times (bar ≤ {BAR:.0f})"
    print(page.head("attack", "p99 alone, ms", "beside it, ms", bar, "honest refused", ""))
    for line in rows(sites.registry_text(DEVICE)):
        print(line, flush=True)
