"""Processes asked to stop under load, as the first of a container, again and again."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.faults.conftest import Tell
from tests.support.faults.fleet import Fleet
from tests.support.faults.site import fault_site
from tests.support.store.namespaces import AS_FIRST, needs_namespace
from tests.support.store.processes import only_child
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

WITHIN = 10.0  # seconds in which a process that is asked must have ended


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
                statuses.append(process.wait(WITHIN))
                slowest = max(slowest, time.monotonic() - began)
                if asked is worker:
                    Path(worker.environment["HEARSAY_HEARTBEAT"]).unlink()
        found = site.compared(log.enqueued)

    tell(f"{role} asked to stop {stops} x: {found}; slowest {slowest:.1f} s")
    assert set(statuses) == {0}
    assert found.equal, found
    assert log.duplicates == 0  # no upload was stored and not answered
    assert log.final == {}
