"""Costs of the SDK in an application: start, memory, and the time that ``record`` takes from it.

Run: ``python -m benchmarks device``.  Each step is measured in TRIES new interpreters with compiled
modules, as an installed package has them; the median counts.  A busy machine shows more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

from client_sdk.storage.schema import FILE_NAME

TRIES: Final = 15  # interpreters
CALLS: Final = 800  # of record, each measured
MILLION: Final = 1_000_000  # calls of record in a row

REGISTRY: Final = """schema = 1
app = "demo"
""" + "".join(
    f"""
[metrics.{name}]
title = "A metric"
question = "What do we decide by it?"
{kind}
epsilon = "1.0"
every = "1d"
longitudinal = "fresh"
owner = "benchmarks"
expected_devices = 10000
expires = 2099-12-31
"""
    for name, kind in (
        ("dark_mode", 'type = "boolean"'),
        ("theme", 'type = "category"\nvalues = ["light", "dark", "system"]'),
        ("files", 'type = "count"\nmin = 0\nmax = 100\nstep = 1\nunit = "files"'),
        (
            "runs",
            'type = "count"\nmin = 0\nmax = 1000\nstep = 1\nunit = "runs"\naggregate = "sum"',
        ),
    )
)

# Each prints milliseconds and the growth of the resident set in MB.
_MEASURE: Final = """
import sys, time
def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
folder = sys.argv[1]
{before}
memory, start = rss(), time.perf_counter()
{action}
print((time.perf_counter() - start) * 1e3, rss() - memory)
"""
_IMPORT: Final = "import client_sdk; client_sdk.Client; client_sdk.Caps"
_CLIENT: Final = (
    "client = client_sdk.Client('https://collector.example', 'key', folder + '/metrics.toml',"
    " consent='granted', data_dir=folder + '/data')"
)
_STEPS: Final = (
    ("import client_sdk", "", "import client_sdk", (12.0, 6.0)),
    ("import with Client and Caps", "", _IMPORT, (12.0, 6.0)),
    ("first Client(), three metrics of mechanism auto", _IMPORT, _CLIENT, None),
    ("first Client(), their mechanisms named", _IMPORT, _CLIENT.replace("metrics", "named"), None),
    (
        "first record(), which starts the thread",
        f"{_IMPORT}\n{_CLIENT}",
        "client.record('dark_mode', True)",
        None,
    ),
    (
        "close() after one value, to the disk",
        f"{_IMPORT}\n{_CLIENT}\nclient.record('dark_mode', True)",
        "client.close()",
        (1_000.0, 1e9),
    ),
)
RECORD_BAR: Final = 20.0  # microseconds, median
LOOP_BAR: Final = 2.0  # microseconds a call, on average


class Cost(NamedTuple):
    """Milliseconds and megabytes."""

    milliseconds: float
    megabytes: float


def cost(before: str, action: str) -> Cost:
    """Return the median cost of *action* in new interpreters that have run *before*."""
    program = _MEASURE.format(before=before, action=action)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    found = []
    with tempfile.TemporaryDirectory() as compiled:
        for _ in range(TRIES + 1):
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "metrics.toml").write_text(REGISTRY)
                (Path(folder) / "named.toml").write_text(named_registry())
                run = subprocess.run(
                    [sys.executable, "-c", program, folder],
                    env={**environment, "PYTHONPYCACHEPREFIX": compiled},
                    capture_output=True,
                    text=True,
                    check=True,
                )
            found.append(Cost(*map(float, run.stdout.split())))
    del found[0]  # it compiled
    return Cost(median(c.milliseconds for c in found), median(c.megabytes for c in found))


def records(metric: str, value: object, accepted: bool) -> list[float]:
    """Return the microseconds of each of CALLS calls of record in background mode.

    Args: accepted: whether the value is its metric's; a wrong one is refused and counted.
    """
    from client_sdk import Client, Registry
    from client_sdk.privacy.consent import NoOptOuts

    with tempfile.TemporaryDirectory() as folder:
        client = Client(
            "https://collector.example", "key", Registry.from_text(REGISTRY),
            consent="granted", data_dir=folder, opt_outs=NoOptOuts(),
        )  # fmt: skip
        client.record("dark_mode", True)
        time.sleep(0.5)  # the thread has written it and waits
        found = []
        for _ in range(CALLS):
            start = time.perf_counter_ns()
            client.record(metric, value)
            found.append((time.perf_counter_ns() - start) / 1e3)
        client.close()
        if client.stats()["invalid_value"] != (0 if accepted else CALLS):
            raise SystemExit("record: values were not refused as expected")
    return found


def charge_times(charges: int) -> tuple[float, int]:
    """Return the median microseconds of a charge beside so many, and the bytes of their database.

    The commit is left out: it waits for the disk, whatever the ledger holds.
    """
    from client_sdk.privacy.caps import Caps
    from client_sdk.storage.ledger import Charge, Ledger
    from client_sdk.storage.store import Store
    from tests.support.device.ledgers import LAST_DAY, fill_ledger

    digests = [b"metric", b"second"]
    with tempfile.TemporaryDirectory() as folder:
        store, ledger, found = Store(folder), Ledger(Caps(lifetime="999999")), []
        with store.transaction() as tx:
            fill_ledger(tx, digests, charges // len(digests))
        for i in range(CALLS):
            with store.transaction() as tx:
                charge = Charge(digests[i % 2], 24 * LAST_DAY + i, 1_000)
                start = time.perf_counter_ns()
                ledger.charge(tx, charge, LAST_DAY + i // 48)
                found.append((time.perf_counter_ns() - start) / 1e3)
        store.close()
        return median(found), os.path.getsize(os.path.join(folder, FILE_NAME))


def loop(metric: str, value: object) -> tuple[float, int]:
    """Record *value* MILLION times in a row.

    Returns: microseconds a call, the writing beside it included, and how many calls were lost.
    """
    from client_sdk import Client, Registry
    from client_sdk.privacy.consent import NoOptOuts

    with tempfile.TemporaryDirectory() as folder:
        client = Client(
            "https://collector.example", "key", Registry.from_text(REGISTRY),
            consent="granted", data_dir=folder, opt_outs=NoOptOuts(),
        )  # fmt: skip
        client.record(metric, value)
        time.sleep(0.5)  # the thread has written it and waits
        start = time.perf_counter()
        for _ in range(MILLION):
            client.record(metric, value)
        seconds = time.perf_counter() - start
        client.close()
        counts = client.stats()
    taken = counts["aggregated"] + counts["recorded"] + counts["already_reported"]
    return seconds / MILLION * 1e6, MILLION + 1 - taken


def named_registry() -> str:
    """Return REGISTRY as ``auto`` fills it in."""
    from client_sdk import Registry

    text = REGISTRY
    for metric in Registry.from_text(REGISTRY):
        head = f"[metrics.{metric.name}]\n"
        text = text.replace(head, f'{head}mechanism = "{metric.mechanism_name}"\n')
    return text


def rows() -> Iterator[tuple[str, str, str, bool | None]]:
    """Measure everything."""
    for what, before, action, bar in _STEPS:
        found = cost(before, action)
        met = None if bar is None else found.milliseconds <= bar[0] and found.megabytes <= bar[1]
        yield what, f"{found.milliseconds:.1f} ms, {found.megabytes:.1f} MB", _bar(bar), met
    for metric, value, accepted in (
        ("dark_mode", True, True),
        ("theme", "dark", True),
        ("files", 12.5, True),
        ("theme", "unknown", False),
    ):
        found_times = records(metric, value, accepted)
        middle, late = median(found_times), quantiles(found_times, n=100)[98]
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


def _bar(bar: tuple[float, float] | None) -> str:
    if bar is None:
        return ""
    return f"≤ {bar[0]:,.0f} ms" + (f", ≤ {bar[1]:.0f} MB" if bar[1] < 1e9 else "")


def main() -> None:
    """Print every cost with its bar."""
    print("| what | measured | bar | |\n|---|---|---|---|")
    for what, found, bar, met in rows():
        print(f"| {what} | {found} | {bar} | {'' if met is None else 'pass' if met else 'FAIL'} |")
