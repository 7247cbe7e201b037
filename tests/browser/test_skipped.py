"""Without a browser the run says loudly that the pages were not tested."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE


def test_a_run_without_a_browser_ends_with_a_loud_word(tmp_path: Path) -> None:
    """Its worker could not say so: workers print nothing."""
    one = Path(__file__).with_name("test_checks.py")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(one)]

    done = subprocess.run(
        [*words, "-k", "sound", "-n", "1"],
        env={**os.environ, "PATH": str(tmp_path)},
        cwd=one.parents[2],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )

    assert done.returncode == 0
    assert "THE PAGES WERE NOT TESTED" in done.stdout
    assert "1 tests of the pages were skipped" in done.stdout
