"""Speed and size beside the peers, in one run on one machine: device, server, bytes, import.

Run: ``make bench-peers``, which makes .venv-peers from benchmarks/requirements.txt first.  The
peers draw from generators that are not cryptographic, but for OpenDP; we draw from the system.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import load
from client_sdk.randomness import system_randomness

HERE: Final = Path(__file__).parent
PYTHON: Final = HERE.parent / ".venv-peers" / "bin" / "python"
SIZES: Final = (16, 128, 1_024)
REPORTS: Final = 2_000  # a mechanism and size
NAMES: Final = ("grr", "sue", "oue", "olh", "hadamard", "subset_selection", "pgr")
IMPORTS: Final = {
    "pure-ldp": "pure_ldp.frequency_oracles",
    "multi-freq-ldpy": "multi_freq_ldpy.pure_frequency_oracles.GRR",
    "opendp": "opendp.prelude",
    "diffprivlib": "diffprivlib.mechanisms",
}
TRIES: Final = 3


def ours(name: str, k: int) -> dict[str, float]:
    """Return microseconds a report on device and server, and the bytes of a report."""
    mechanism, randomness = load(name)("1", k), system_randomness()
    people = [i * i % k for i in range(REPORTS)]
    mechanism.randomize(0, randomness)
    start = time.perf_counter()
    reports = [mechanism.randomize(item, randomness) for item in people]
    client = time.perf_counter() - start
    column = b"".join(reports)
    start = time.perf_counter()
    mechanism.debias(mechanism.tally(mechanism.check(column, np).payloads, np), REPORTS, np)
    server = time.perf_counter() - start
    scale = 1e6 / REPORTS
    return {"client": client * scale, "server": server * scale, "size": mechanism.payload_size}


def import_ms(python: str, module: str) -> float:
    """Return the least milliseconds that *module* adds to the start of an interpreter."""

    def least(code: str) -> float:
        times = []
        for _ in range(TRIES):
            start = time.perf_counter()
            subprocess.run([python, "-c", code], check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        return min(times)

    return 1_000 * (least(f"import {module}") - least("pass"))


def peers(python: str) -> list[tuple[str, str, int, dict[str, float]]]:
    """Return what the worker measured in the peers' environment."""
    command = [python, str(HERE / "_peers_worker.py"), json.dumps(SIZES), str(REPORTS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [tuple(row) for row in json.loads(done.stdout)]


def table(rows: list[tuple[str, str, int, dict[str, Any]]]) -> str:
    """Return the rows as Markdown; where a peer is ahead of our same mechanism, in bold."""
    mine = {(name, k): numbers for library, name, k, numbers in rows if library == "hearsay"}
    lines = [
        "| mechanism | items | library | device µs | server µs | bytes |",
        "|---|---|---|---|---|---|",
    ]
    for library, name, k, numbers in sorted(rows, key=lambda row: (row[1], row[2], row[0])):
        cells = []
        for key, form in (("client", ".1f"), ("server", ".2f"), ("size", ",.0f")):
            number = numbers[key]
            text = "none" if number is None else format(number, form)
            ahead = library != "hearsay" and number is not None and number < mine[name, k][key]
            cells.append(f"**{text}**" if ahead else text)
        lines.append(f"| {name} | {k:,} | {library} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print both tables, or say how to get the peers."""
    if not PYTHON.exists():
        print("the peers are not installed here: make bench-peers")
        return
    rows = [("hearsay", name, k, ours(name, k)) for name in NAMES for k in SIZES]
    print(table([*rows, *peers(str(PYTHON))]))
    print("\nBold: ahead of our same mechanism.\n\n| library | import ms |\n|---|---|")
    print(f"| hearsay | {import_ms(sys.executable, 'client_sdk'):.0f} |")
    for library, module in IMPORTS.items():
        print(f"| {library} | {import_ms(str(PYTHON), module):.0f} |")


if __name__ == "__main__":
    main()
