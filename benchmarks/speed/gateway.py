"""Reports a second that a gateway records and uploads, on one core, for as many devices.

Run: ``python -m benchmarks gateway``.  Each device reports METRICS once; every report is charged to
its device's ledger, perturbed and queued on the disk.  The collector is a stub that says yes: what
a real one takes is in the benchmarks of the collector.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.lib.page import ROOT, show
from client_sdk.gateway import Gateway
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.testing import answer_of
from client_sdk.upload.transport import Answer

DEVICES: Final = 20_000
METRICS: Final = {"theme": "dark", "uses_plugins": True, "startup_ms": 740}
REGISTRY: Final = ROOT / "examples" / "metrics.toml"


class _Stub:
    """Accepts everything and weighs it."""

    def __init__(self) -> None:
        self.uploads = self.size = 0

    def send(self, body: bytes, timeout: float) -> Answer:
        self.uploads, self.size = self.uploads + 1, self.size + len(body)
        return answer_of(202)


def main() -> None:
    """Print how fast a gateway is, and how large its uploads and its database."""
    values = [(f"device {i}", *pair) for i in range(DEVICES) for pair in METRICS.items()]
    with tempfile.TemporaryDirectory() as folder:
        stub = _Stub()
        with Gateway(
            "https://collector.example", "key", Registry.from_file(REGISTRY), consent="granted",
            data_dir=folder, segment={"platform": "linux"}, transport=stub, opt_outs=NoOptOuts(),
        ) as gateway:  # fmt: skip
            started = time.perf_counter()
            gateway.record_many(values)
            recorded = time.perf_counter()
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            sending = time.perf_counter()
            gateway.flush(600.0)
            ended = time.perf_counter()
            counts = gateway.stats()
    assert counts["uploaded"] == counts["recorded"] == len(values)
    n = len(values)
    rows = {
        f"recorded, {DEVICES:,} devices": f"{n / (recorded - started):,.0f} reports/s",
        "sealed, handed over, deleted": f"{n / (ended - sending):,.0f} reports/s",
        "uploads": f"{stub.uploads}, {stub.size / n:.1f} bytes a report",
        "on the disk before the upload": f"{size / n:.0f} bytes a report",
    }
    show(("what", "measured"), rows.items())
