"""How many intervals of the demo cover the truth, over RUNS runs with fresh people and fresh noise.

Run: ``python -m benchmarks demo_coverage``; some minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

RUNS = 20


def run_once(port: int = 8877) -> dict[str, Any]:
    """Run the demo once and return its document."""
    command = [sys.executable, "-m", "collector", "demo", "--once", "--json", "--port", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def main() -> None:
    """Print the covered share, the slowest run, and the totals."""
    covered = intervals = reports = 0
    slowest = 0.0
    for _ in range(RUNS):
        document = run_once()
        covered += document["covered"]["yes"]
        intervals += document["covered"]["of"]
        reports += document["reports"]
        slowest = max(slowest, document["seconds"])
    print(f"runs: {RUNS}, reports: {reports:,}, slowest run: {slowest} s")
    print(f"covered: {covered} of {intervals} intervals ({100 * covered / intervals:.1f} %)")
