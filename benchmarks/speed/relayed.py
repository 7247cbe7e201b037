"""What an upload through a relay costs the web process and the device, beside one without.

Run: ``python -m benchmarks relayed``; Linux only.  Costs are processor time of the web process,
kernel included, in many short rounds that take turns: on a busy machine the least is the cost.
Each capsule is sealed beforehand, by a key of its own, and holds one report under an id of its own.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.lib import sites
from benchmarks.lib.load import Plan, send
from benchmarks.lib.page import head, row, verdict
from benchmarks.speed.ingest import DEVICE
from client_sdk.core.base64url import base64url
from client_sdk.registry import Registry
from client_sdk.upload.ohttp import seal
from client_sdk.wire import binary_http
from client_sdk.wire.binary_http import Request
from client_sdk.wire.oblivious import PATH, REQUEST_TYPE, KeyConfiguration
from collector.intake.capsules import Opener
from collector.intake.oblivious_keys import add_key

ROUNDS: Final = 12  # of each way
SECONDS: Final = 0.5  # of a round
CAPSULES: Final = 4_000  # of a round: more than are sent in it
CONNECTIONS: Final = 64
BAR: Final = 60.0  # microseconds that a relay may add to an upload
STEPS: Final = 1_000  # times that a step alone is taken
ANSWER: Final = b'{"accepted":1,"duplicate":false,"rejected":[]}'


def inner(body: bytes) -> bytes:
    """Return the request in a capsule."""
    key = f"Bearer {sites.WRITE_KEY}"
    fields = (("authorization", key), ("content-type", "application/json"))
    request = Request("POST", "https", "t.example.org", "/v1/reports", fields, body)
    return binary_http.encode_request(request)


def with_own_id(body: bytes) -> bytes:
    """Return *body* under an id of its own."""
    return body.replace(base64url(sites.NO_ID).encode(), base64url(os.urandom(16)).encode(), 1)


def write_capsules(path: Path, key: KeyConfiguration, body: bytes) -> None:
    """Write the requests of a relay that carries CAPSULES uploads."""
    with path.open("wb") as file:
        for _ in range(CAPSULES):
            message = seal(key, inner(with_own_id(body))).message
            lines = (
                f"POST {PATH} HTTP/1.1",
                "Host: localhost",
                f"Content-Type: {REQUEST_TYPE}",
                f"Content-Length: {len(message)}",
            )
            request = ("\r\n".join(lines) + "\r\n\r\n").encode() + message
            file.write(len(request).to_bytes(4, "big") + request)


def cost(site: sites.Site, plan: Plan, status: str) -> float:
    """Return the microseconds of processor an upload of *plan*, all answered with *status*."""
    before = site.cpu()
    statuses = send(plan).statuses
    spent = site.cpu() - before
    if set(statuses) != {status}:
        raise SystemExit(f"relayed: not all were answered {status}: {statuses}")
    return spent / statuses[status] * 1e6


def upload_rows(folder: Path) -> Iterator[str]:
    """Measure uploads of one report, with and without a relay, in turns."""
    keys = add_key(str(folder / "keys.json"), datetime.now(UTC).date())
    body = sites.device_body(Registry.from_text(DEVICE), 1, 1)
    corpus = folder / "capsules"
    found: dict[str, list[float]] = {"on its own": [], "in a capsule": []}
    with sites.hearsay(DEVICE, HEARSAY_OBLIVIOUS_KEYS=str(folder / "keys.json")) as site:
        for _ in range(ROUNDS):
            write_capsules(corpus, keys[0].configuration, body)
            plain = Plan(site.port, sites.request(body), CONNECTIONS, SECONDS)
            carried = Plan(site.port, b"", CONNECTIONS, SECONDS, corpus=str(corpus))
            found["on its own"].append(cost(site, plain, "202"))
            found["in a capsule"].append(cost(site, carried, "200"))
    yield head("device upload of one report", "µs, least", "µs, median", "bar", "")
    for name, costs in found.items():
        yield row(name, f"{min(costs):.0f}", f"{median(costs):.0f}", "", "")
    own, sealed = found.values()
    least, middle = min(sealed) - min(own), median(sealed) - median(own)
    met = verdict(least <= BAR)
    yield row("what the capsule adds", f"{least:.0f}", f"{middle:.0f}", f"≤ {BAR:.0f} µs", met)


def step_rows(folder: Path) -> Iterator[str]:
    """Measure the steps alone, in this process."""
    [key] = add_key(str(folder / "steps.json"), datetime.now(UTC).date())
    body = sites.device_body(Registry.from_text(DEVICE), 1, 1)
    opener, request = Opener([key]), inner(body)
    message = seal(key.configuration, request).message
    capsule = opener.open(message)
    fields = (("content-type", "application/json"),)
    steps: dict[str, Callable[[], object]] = {
        "device: seal a capsule": lambda: seal(key.configuration, request),
        "collector: open it": lambda: opener.open(message),
        "collector: read the request": capsule.read,
        "collector: seal the answer": lambda: capsule.answer(202, fields, ANSWER),
    }
    yield head("step of an upload of one report, alone", "µs, least")
    for name, step in steps.items():
        yield row(name, f"{_least(step):.1f}")


def _least(step: Callable[[], object]) -> float:
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(STEPS):
            step()
        found.append((time.process_time() - start) / STEPS * 1e6)
    return min(found)


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        for rows in (upload_rows, step_rows):
            for line in rows(Path(folder)):
                print(line, flush=True)
            print()
