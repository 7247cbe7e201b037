"""How long uploads wait: at 70 % load, beside slow connections, and when ten times too many come.

Run: ``python -m benchmarks ingest_load``.  Uploads come at random moments, as those of a fleet do,
and their time counts from the moment at which they were due.  The load itself runs on the same
machine and takes processor from the collector; so does everything else that runs here.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Final

from benchmarks.lib import page, sites
from benchmarks.lib.load import Outcome, Plan, finish, send, start
from benchmarks.speed.ingest import DEVICE
from client_sdk.registry import Registry

SECONDS: Final = 5.0  # of a measurement; half of it, of a round
ROUNDS: Final = 5
LOAD: Final = 0.7  # of what was answered when asked as fast as possible
P99_BAR: Final = 25.0  # milliseconds at that load
SLOW: Final = 500  # connections that send half an upload
SLOW_BAR: Final = 2.0  # times the p99 without them
LIMIT: Final = 200  # uploads a second that a key may send, in the test of a flood
FLOOD: Final = 10  # times as many
HONEST_BAR: Final = 0.99  # share of another key's uploads that is accepted meanwhile


def row(
    what: str, outcome: Outcome, seconds: float, bar: str = "", met: bool | None = None
) -> tuple[str, ...]:
    """Return a line of the table."""
    told = ", ".join(f"{status}: {n:,}" for status, n in sorted(outcome.statuses.items()))
    numbers = f"{outcome.accepted / seconds:,.0f}", f"{outcome.median:.1f}", f"{outcome.p99:.1f}"
    return what, *numbers, told, bar, page.verdict(met)


@contextmanager
def slow_connections(port: int, key: str) -> Iterator[None]:
    """Keep SLOW connections open that have sent half a body; renew those that are given up."""
    half = f"POST /v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    half += "Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
    with ExitStack() as stack:
        for _ in range(SLOW):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(half.encode())
        yield


def waiting(body: bytes) -> Iterator[tuple[str, ...]]:
    """Measure the wait at 70 % load, without and with slow connections, in turns."""
    with sites.hearsay(DEVICE) as site:
        plan = Plan(site.port, sites.request(body), 64, SECONDS / 2)
        most, steady = _in_turns(plan)
        yield row("as fast as possible, 64 connections", most, SECONDS / 2)
        bar = f"p99 ≤ {P99_BAR:.0f} ms"
        yield row(f"at {LOAD:.0%} of that", steady, SECONDS / 2, bar, steady.p99 <= P99_BAR)
        busy = send(replace(plan, connections=64 * FLOOD))
        kept = busy.accepted >= 0.7 * most.accepted
        yield row(f"{FLOOD} times as many connections", busy, SECONDS / 2, "≥ 70 % of it", kept)
        calmly = replace(plan, connections=256, rate=most.accepted / SECONDS / 2, seconds=SECONDS)
        calm = send(calmly)
        yield row("at a quarter", calm, SECONDS)
        with slow_connections(site.port, sites.WRITE_KEY):
            held = send(calmly)
        bar = f"p99 ≤ {SLOW_BAR:.0f} × without"
        what = f"the same beside {SLOW} half-sent bodies"
        yield row(what, held, SECONDS, bar, held.p99 <= SLOW_BAR * calm.p99)


def _in_turns(plan: Plan) -> tuple[Outcome, Outcome]:
    """Return *plan* and LOAD of it, measured in turns: the round with the median p99 under load.

    A load is a share of what the machine could do just before; others may be at work on it.
    """
    rounds = []
    for _ in range(ROUNDS):
        most = send(plan)
        rate = LOAD * most.accepted / plan.seconds
        rounds.append((most, send(replace(plan, connections=256, rate=rate))))
    return sorted(rounds, key=lambda pair: pair[1].p99)[ROUNDS // 2]


def flood(body: bytes) -> Iterator[tuple[str, ...]]:
    """Let one key send ten times what it may, and another what it may."""
    with sites.hearsay(DEVICE, HEARSAY_KEY_RATE=str(LIMIT)) as site:
        plan = Plan(site.port, sites.request(body), 64, SECONDS, LIMIT * FLOOD)
        time.sleep(1)
        flooding = start(plan)
        others = sites.request(body, key=sites.GATEWAY_KEY)
        other = send(replace(plan, request=others, rate=LIMIT / 2))
        outcome = finish(flooding)
    kept = outcome.accepted >= LIMIT * SECONDS
    what = f"a key that may send {LIMIT}/s sends {LIMIT * FLOOD:,}/s"
    yield row(what, outcome, SECONDS, f"≥ {LIMIT}/s accepted", kept)
    share = other.accepted / sum(other.statuses.values())
    bar = f"≥ {HONEST_BAR:.0%} accepted"
    yield row("another key meanwhile", other, SECONDS, bar, share >= HONEST_BAR)


def main() -> None:
    """Print the table."""
    body = sites.device_body(Registry.from_text(DEVICE), 10, 1)
    heads = "uploads of 10 columns", "accepted/s", "median, ms", "p99, ms", "answers", "bar", ""
    page.show(heads, chain(waiting(body), flood(body)))
