"""How many intervals of the demo cover the truth, over RUNS runs with fresh people and fresh noise.

Run: ``python -m benchmarks demo_coverage``; some minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys

RUNS = 20


def main() -> None:
    """Print the covered share, the slowest run, and the totals."""
    covered = intervals = reports = 0
    slowest = 0.0
    for _ in range(RUNS):
        command = [sys.executable, "-m", "collector", "demo", "--once", "--json", "--port", "8877"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        document = json.loads(done.stdout)
        covered += document["covered"]["yes"]
        intervals += document["covered"]["of"]
        reports += document["reports"]
        slowest = max(slowest, document["seconds"])
    print(f"runs: {RUNS}, reports: {reports:,}, slowest run: {slowest} s")
    print(f"covered: {covered} of {intervals} intervals ({100 * covered / intervals:.1f} %)")


if __name__ == "__main__":
    main()
