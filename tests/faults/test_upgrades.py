"""A rolling upgrade to the next release and back, under the load of devices that know neither."""

from __future__ import annotations

import json
import random
import re
from importlib.resources import files
from pathlib import Path

import pytest

from client_sdk.registry import Registry
from collector.storage.preparation import LIBRARY_VERSION
from tests.faults.conftest import Tell
from tests.support.faults.fleet import Fleet, post
from tests.support.faults.reports import registry_text, upload_of
from tests.support.faults.site import FaultSite, fault_site
from tests.support.faults.supervisor import Supervised
from tests.support.patience import wait_for
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

NEXT = Registry.from_text(registry_text("added"))  # all of today's metrics, and one more
LIBRARY = files("collector.storage").joinpath("hearsay.lua").read_text(encoding="utf-8")
VERSION = re.compile(r"local VERSION = \d+")


def roll(site: FaultSite, process: Supervised, registry: str) -> None:
    """Ask a process to end, and have it started with another registry."""
    process.environment["HEARSAY_REGISTRY"] = str(site.folder / f"{registry}.toml")
    assert process.process is not None
    before = process.starts
    process.process.terminate()
    wait_for(lambda: process.starts > before)


def roll_all(site: FaultSite, registry: str) -> None:
    """Workers first on the way up, as a worker must know what a collector accepts."""
    for worker in site.workers:
        roll(site, worker, registry)
    for port, collector in zip(site.ports, site.collectors, strict=True):
        roll(site, collector, registry)
        site.wait_for_collector(port)


def load_library(site: FaultSite, version: int) -> None:
    text = VERSION.sub(f"local VERSION = {version}", LIBRARY)
    site.store.connection.call("FUNCTION", "LOAD", "REPLACE", text)


@pytest.mark.faults
@pytest.mark.parametrize(
    "rounds", [pytest.param(1, id="small"), pytest.param(5, id="full", marks=pytest.mark.faults)]
)
def test_a_rolling_upgrade_and_its_way_back_lose_and_repeat_nothing(
    rounds: int, seed: int, tmp_path: Path, tell: Tell
) -> None:
    """Old devices go on all the time; what only new workers know waits for them."""
    with fault_site(tmp_path, collectors=2, workers=2) as site:
        site.write_registry("next", registry_text("added"))
        fleet = Fleet(lambda: site.ports, seed)
        enqueued: dict[bytes, bytes] = {}
        with fleet.sending() as log:
            for number in range(rounds):
                load_library(site, LIBRARY_VERSION + 1)
                roll_all(site, "next")
                # Metrics of both registries; their own cells are far from those of the fleet.
                chance, first = random.Random(f"{seed} new {number}"), 500_000 + 10 * number
                new = dict(upload_of(serial, chance, NEXT) for serial in range(first, first + 10))
                enqueued |= new
                assert [post(site.ports[0], body)[0] for body in new.values()] == [202] * 10
                roll_all(site, "now")
                load_library(site, LIBRARY_VERSION)
        site.add_worker("next")  # left pending by the old ones, if the last upgrade was short
        found = site.compared({**enqueued, **log.enqueued}, NEXT)

    tell(f"upgraded and back {rounds} x: {found}; answers {dict(log.answers)}")
    assert found.equal, found
    assert log.final == {}


@pytest.mark.faults
def test_an_upload_of_a_wire_version_to_come_is_refused_for_good(
    seed: int, tmp_path: Path, tell: Tell
) -> None:
    """By a 4xx that blames the body, so that a device does not send it for ever."""
    _, body = upload_of(0, random.Random(seed))
    later = json.dumps({**json.loads(body), "v": 2}).encode()
    with fault_site(tmp_path, collectors=1, workers=0) as site:
        answers = {post(site.ports[0], later)[0] for _ in range(20)}
        left = site.storage.backlog()

    tell(f"wire version 2, sent 20 x: answers {answers}, counted {left}")
    assert answers == {400}
    assert left == 0
