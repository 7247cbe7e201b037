"""The time that ``record`` takes from an application, and that a charge takes from its thread.

Run: ``python -m benchmarks device``.  What the import and the start cost is in ``sdk_costs``.  A
busy machine shows more.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Final

from benchmarks.lib.page import show, verdict
from benchmarks.speed.sdk_costs import REGISTRY
from client_sdk import Client, Registry
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.storage.ledger import Charge, Ledger
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.store import Store
from tests.support.device.ledgers import LAST_DAY, fill_ledger

CALLS: Final = 800  # of record, each measured
MILLION: Final = 1_000_000  # calls of record in a row
RECORD_BAR: Final = 20.0  # microseconds, median
LOOP_BAR: Final = 2.0  # microseconds a call, on average


@contextmanager
def waiting_client(metric: str, value: object) -> Iterator[Client]:
    """Yield a client that has recorded *value* and whose thread waits; close it."""
    with tempfile.TemporaryDirectory() as folder:
        client = Client(
            "https://collector.example", "key", Registry.from_text(REGISTRY),
            consent="granted", data_dir=folder, opt_outs=NoOptOuts(),
        )  # fmt: skip
        client.record(metric, value)
        time.sleep(0.5)  # the thread has written it and waits
        yield client
        client.close()


def record_times(metric: str, value: object, accepted: bool) -> list[float]:
    """Return the microseconds of each of CALLS calls of record in background mode.

    Args: accepted: whether the value is its metric's; a wrong one is refused and counted.
    """
    times = []
    with waiting_client("dark_mode", True) as client:
        for _ in range(CALLS):
            start = time.perf_counter_ns()
            client.record(metric, value)
            times.append((time.perf_counter_ns() - start) / 1e3)
    if client.stats()["invalid_value"] != (0 if accepted else CALLS):
        raise SystemExit("record: values were not refused as expected")
    return times


def loop(metric: str, value: object) -> tuple[float, int]:
    """Record *value* MILLION times in a row.

    Returns: microseconds a call, the writing beside it included, and how many calls were lost.
    """
    with waiting_client(metric, value) as client:
        start = time.perf_counter()
        for _ in range(MILLION):
            client.record(metric, value)
        seconds = time.perf_counter() - start
    counts = client.stats()
    taken = counts["aggregated"] + counts["recorded"] + counts["already_reported"]
    return seconds / MILLION * 1e6, MILLION + 1 - taken


def charge_times(charges: int) -> tuple[float, int]:
    """Return the median microseconds of a charge beside so many, and the bytes of their database.

    The commit is left out: it waits for the disk, whatever the ledger holds.
    """
    digests = [b"metric", b"second"]
    with tempfile.TemporaryDirectory() as folder:
        store, ledger, times = Store(folder), Ledger(Caps(lifetime="999999")), []
        with store.transaction() as tx:
            fill_ledger(tx, digests, charges // len(digests))
        for i in range(CALLS):
            with store.transaction() as tx:
                charge = Charge(digests[i % 2], 24 * LAST_DAY + i, 1_000)
                start = time.perf_counter_ns()
                ledger.charge(tx, charge, LAST_DAY + i // 48)
                times.append((time.perf_counter_ns() - start) / 1e3)
        store.close()
        return median(times), os.path.getsize(os.path.join(folder, FILE_NAME))


def rows() -> Iterator[tuple[str, str, str, bool]]:
    """Measure everything."""
    for metric, value, accepted in (
        ("dark_mode", True, True),
        ("theme", "dark", True),
        ("files", 12.5, True),
        ("theme", "unknown", False),
    ):
        times = record_times(metric, value, accepted)
        middle, late = median(times), quantiles(times, n=100)[98]
        label = f"record({metric!r}, {value!r}){'' if accepted else ', refused'}"
        measured = f"{middle:.1f} µs median, {late:.0f} µs in the slowest 1 %"
        yield label, measured, f"≤ {RECORD_BAR:.0f} µs median", middle <= RECORD_BAR
    for metric, value in (("runs", 1), ("runs", 0.5), ("dark_mode", True)):
        each, lost = loop(metric, value)
        label = f"record({metric!r}, {value!r}), {MILLION:,} times in a row"
        wanted = f"≤ {LOOP_BAR:.0f} µs, 0 lost"
        yield label, f"{each:.2f} µs, {lost:,} lost", wanted, each <= LOOP_BAR and lost == 0
    short, _ = charge_times(1_000)
    for charges in (1_000, 100_000):
        middle, size = charge_times(charges)
        measured = f"{middle:.0f} µs median; {size / 1e6:.1f} MB"
        label = f"a charge beside {charges:,}, without its commit"
        yield label, measured, "≤ 2 × that beside 1,000", middle <= 2 * short


def main() -> None:
    """Print every cost with its bar."""
    lines = ((what, measured, bar, verdict(met)) for what, measured, bar, met in rows())
    show(("what", "measured", "bar", ""), lines)
