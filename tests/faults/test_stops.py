"""Processes asked to stop and applications that fork, under load, again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from client_sdk.registry import Registry
from collector.intake.wire import JSON, decode
from tests.faults.conftest import Tell
from tests.support.faults.fleet import Fleet
from tests.support.faults.forking import registry_text
from tests.support.faults.site import fault_site
from tests.support.patience import PATIENCE
from tests.support.store.namespaces import AS_FIRST, needs_namespace
from tests.support.store.processes import only_child
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]


@pytest.mark.faults
@needs_namespace
@pytest.mark.parametrize("role", ["collector", "worker"])
@pytest.mark.parametrize(
    "stops", [pytest.param(2, id="small"), pytest.param(50, id="full", marks=pytest.mark.faults)]
)
def test_a_process_that_is_asked_to_stop_under_load_ends_well_and_loses_nothing(
    stops: int, role: str, seed: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """Uploads on their way are answered, and what a worker had claimed is folded."""
    slowest, statuses = 0.0, []
    with fault_site(tmp_path, collectors=0, workers=0) as site:
        collector = site.add_collector(prefix=AS_FIRST)
        worker = site.add_worker(prefix=AS_FIRST)
        asked = collector if role == "collector" else worker
        fleet = Fleet(lambda: site.ports, seed)
        with fleet.sending() as log:
            for _ in range(stops):
                site.wait_for_collector(site.ports[0])
                site.wait_for_worker(worker)  # until then, the first process ignores signals
                fleet.wait_for(len(log.acknowledged) + 10)
                time.sleep(chance.random())
                process = asked.process
                assert process is not None
                first = only_child(process.pid)
                began = time.monotonic()
                os.kill(first, signal.SIGTERM)
                statuses.append(process.wait(PATIENCE))
                slowest = max(slowest, time.monotonic() - began)
                if asked is worker:
                    Path(worker.environment["HEARSAY_HEARTBEAT"]).unlink()
        found = site.compared(log.enqueued)

    tell(f"{role} asked to stop {stops} x: {found}; slowest {slowest:.1f} s")
    assert set(statuses) == {0}
    assert found.equal, found
    assert log.duplicates == 0  # no upload was stored and not answered
    assert log.final == {}


@pytest.mark.faults
@pytest.mark.parametrize(
    "forks", [pytest.param(10, id="small"), pytest.param(200, id="full", marks=pytest.mark.faults)]
)
def test_forked_children_share_neither_noise_nor_connections(
    forks: int, tmp_path: Path, tell: Tell
) -> None:
    """Each child of a process that has sent records, sends and ends; all is counted once."""
    text, log = registry_text(forks + 1), tmp_path / "bodies"
    registry = Registry.from_text(text)
    with fault_site(tmp_path, collectors=0, workers=0) as site:
        path = site.write_registry("forks", text)
        site.add_collector("forks")
        site.add_worker("forks")
        program = [sys.executable, "-m", "tests.support.faults.forking"]
        subprocess.run(
            [*program, str(path), str(tmp_path / "data"), str(log), str(site.ports[0]), str(forks)],
            check=True,
            timeout=10 * PATIENCE,
        )
        bodies = {bytes.fromhex(line) for line in log.read_text().split()}
        enqueued = {decode(body, JSON).id: body for body in bodies}
        found = site.compared(enqueued, registry)

    payloads = [column.payloads for body in bodies for column in decode(body, JSON).columns]
    tell(f"{forks} forks after the first upload: {found}; {len(set(payloads))} different payloads")
    assert found.equal, found
    assert len(enqueued) == len(bodies)
    assert len(payloads) == forks + 1
    assert len(set(payloads)) == len(payloads)  # 128 fair bits each
