"""The page on gateways tells the truth: its snippet runs, and its limits are those of the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from client_sdk.epoch import HOUR
from client_sdk.gateway import GROUP
from client_sdk.limits import (
    MAX_GATEWAY_BODY,
    MAX_GATEWAY_PENDING,
    MAX_GATEWAY_REPORTS,
    MAX_GATEWAY_SIZE,
    MAX_REPORT_AGE,
)
from client_sdk.schedule import UPLOAD_EVERY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "gateway.md").read_text(encoding="utf-8")


def test_the_snippet_records_and_sends_nothing_before_it_is_time(tmp_path: Path) -> None:
    """Law: as it stands on the page, beside a registry called metrics.toml."""
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shutil.copy(ROOT / "examples" / "gateway_metrics.toml", tmp_path / "metrics.toml")
    undecided = {n: t for n, t in os.environ.items() if n != "DO_NOT_TRACK"}

    done = subprocess.run(
        [sys.executable, "-c", f"{snippet}print(gateway.stats())"],
        env={**undecided, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert "'recorded': 3" in done.stdout
    assert "'network': 0" in done.stdout


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    """Law: whoever changes a limit finds it here."""
    for said in (
        f"{GROUP:,} reports in one transaction",
        "every two to six hours",
        f"up to {MAX_GATEWAY_BODY >> 20} MiB and {MAX_GATEWAY_REPORTS:,} reports",
        f"{MAX_GATEWAY_PENDING:,}, or {MAX_GATEWAY_SIZE >> 20} MiB of payloads",
        f"| {MAX_REPORT_AGE} days; older",
    ):
        assert said in PAGE
    assert (UPLOAD_EVERY / 2, UPLOAD_EVERY * 1.5) == (2 * HOUR, 6 * HOUR)
