"""Processes killed at random moments under load: nothing acknowledged is lost, nothing is twice."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from collector.core.config import STANDARD, STRICT
from tests.faults.conftest import Tell
from tests.support.faults.fleet import Fleet
from tests.support.faults.site import SHARDS, FaultSite, fault_site
from tests.support.faults.supervisor import PARTS
from tests.support.patience import PATIENCE
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]


class Scale(NamedTuple):
    """How large a run is."""

    kills: int
    devices: int
    rate: float  # uploads a second and device; each holds three reports


SMALL = pytest.param(Scale(5, 20, 2.5), id="small")
FULL = pytest.param(Scale(100, 200, 0.5), id="full", marks=pytest.mark.faults)
SMALL_STORE = pytest.param(Scale(2, 20, 2.5), id="small")
FULL_STORE = pytest.param(Scale(30, 200, 0.5), id="full", marks=pytest.mark.faults)


def claim_and_die(site: FaultSite) -> int:
    """Claim entries as a worker does that then dies; return how many."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for worker in site.workers:
            worker.kill()
        time.sleep(0.3)
        held = [site.storage.claim(shard, "dead", 3, 60_000) for shard in range(SHARDS)]
        if count := sum(map(len, held)):
            return count
    raise AssertionError("the workers leave nothing to claim")


@pytest.mark.parametrize("scale", [SMALL, FULL])
def test_killed_collectors_lose_and_repeat_nothing(
    scale: Scale, seed: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """Devices see errors that mean: send again; every upload is counted once."""
    with fault_site(tmp_path) as site:
        fleet = Fleet(lambda: site.ports, seed, devices=scale.devices, rate=scale.rate)
        slowest = 0.0
        with fleet.sending() as log:
            for _ in range(scale.kills):
                time.sleep(chance.random())
                which = chance.randrange(len(site.ports))
                site.collectors[which].kill(chance.choice(PARTS))
                slowest = max(slowest, site.wait_for_collector(site.ports[which]))
        found = site.compared(log.enqueued)

    tell(f"collector killed {scale.kills} x: {found}; ready again within {slowest:.1f} s")
    assert found.equal, found
    assert log.final == {}


@pytest.mark.parametrize("scale", [SMALL, FULL])
def test_killed_workers_lose_and_repeat_nothing(
    scale: Scale, seed: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """Whatever a dead worker held is claimed and folded by another, once."""
    with fault_site(tmp_path, collectors=1, workers=2) as site:
        fleet = Fleet(lambda: site.ports, seed, devices=scale.devices, rate=scale.rate)
        with fleet.sending() as log:
            for _ in range(scale.kills):
                time.sleep(0.2 + 1.3 * chance.random())
                chance.choice(site.workers).kill()
            held = claim_and_die(site)
        lag = site.wait_until_folded()
        found = site.compared(log.enqueued)

    tell(
        f"worker killed {scale.kills} x: {found}; {held} entries left claimed, "
        f"all folded {lag:.1f} s after the load"
    )
    assert found.equal, found
    assert set(log.answers) == {202}


@pytest.mark.parametrize("profile", [STRICT, STANDARD])
@pytest.mark.parametrize("scale", [SMALL_STORE, FULL_STORE])
def test_a_killed_store_loses_and_repeats_nothing(
    scale: Scale, profile: str, seed: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """Also with a log synced every second: the system keeps what a dead process has written."""
    with fault_site(tmp_path, collectors=1, profile=profile) as site:
        fleet = Fleet(lambda: site.ports, seed, devices=scale.devices, rate=scale.rate)
        with fleet.sending() as log:
            for _ in range(scale.kills):
                fleet.wait_for(len(log.acknowledged) + 10)
                time.sleep(chance.random())
                site.store.stop()
                time.sleep(0.5 * chance.random())
                site.store.start()
        found = site.compared(log.enqueued)

    tell(f"store killed {scale.kills} x, profile {profile}: {found}; longest gap {log.gap:.1f} s")
    assert found.equal, found
    assert log.final == {}
