"""docs/ask/mechanisms.md: its example runs, and does what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "ask" / "mechanisms.md").read_text("utf-8")
REPORTS, DEVICES = 10_000, 3_000
STANDARD_ERROR = 140  # devices, of the third count
BOUND = 7  # standard errors; passed by chance with less than 1e-11


def test_the_example_goes_from_values_to_counts_with_intervals() -> None:
    """Twelve lines, without a server: counts add up, and the third is near the truth."""
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    done = subprocess.run(
        [sys.executable, "-c", snippet], capture_output=True, text=True, check=True, cwd=ROOT
    )

    rows = [line.split() for line in done.stdout.splitlines()]
    counts = [int(count) for _, count, _, _ in rows]
    assert [item for item, *_ in rows] == ["0", "1", "2", "3"]
    assert abs(sum(counts) - REPORTS) <= len(counts)  # each is rounded
    assert abs(counts[2] - DEVICES) < BOUND * STANDARD_ERROR
    assert all(float(low) < int(count) / REPORTS < float(high) for _, count, low, high in rows)
