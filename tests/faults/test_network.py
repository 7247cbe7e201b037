"""A network that loses, repeats, delays and reorders, one that is gone, and floods of one key."""

from __future__ import annotations

import http.client
import random
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from collector.core.credentials import WRITE, Credential, digest_of
from collector.intake.backpressure import SHED_MEMORY
from collector.intake.memory_quota import daily_uploads
from collector.storage.connection import Connection
from collector.storage.hashes import RedisHashes
from collector.storage.records import CredentialStore
from tests.faults.conftest import Tell
from tests.support.crowds.uploads import WRITE_KEY, bearer
from tests.support.device.loopback import running
from tests.support.faults.fleet import Fleet
from tests.support.faults.proxy import Proxy, Weather
from tests.support.faults.reports import upload_of
from tests.support.faults.site import PREFIX, FaultSite, fault_site
from tests.support.patience import PATIENCE
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]


class Scale(NamedTuple):
    """How large a run is."""

    devices: int
    rate: float  # uploads a second and device; each holds three reports
    uploads: int
    held_s: float  # seconds by which a request may be late
    dark_s: float  # seconds of a partition


SMALL = pytest.param(Scale(20, 5.0, 170, 1.0, 2.0), id="small")
FULL = pytest.param(Scale(200, 0.5, 2_000, 10.0, 60.0), id="full", marks=pytest.mark.faults)


@pytest.mark.parametrize("scale", [SMALL, FULL])
def test_a_network_that_loses_repeats_and_reorders_changes_no_count(
    scale: Scale, seed: int, tmp_path: Path, tell: Tell
) -> None:
    """30 % of answers lost, 20 % of requests repeated, 10 % lost, and a third of them late."""
    weather = Weather(lose_request=0.1, lose_answer=0.3, repeat=0.2, hold=0.33, held_s=scale.held_s)
    with fault_site(tmp_path, collectors=1) as site:
        proxy = Proxy(site.ports[0], weather, seed)
        fleet = Fleet(
            lambda: [proxy.port],
            seed,
            devices=scale.devices,
            rate=scale.rate,
            most=scale.uploads,
        )
        with running(proxy), fleet.sending() as log:
            fleet.wait_for(scale.uploads)
        found = site.compared(log.enqueued)

    done = ", ".join(f"{name} {count}" for name, count in sorted(proxy.counts.items()))
    tell(f"lossy network: {found}; {done}; {log.duplicates} told as duplicates")
    assert found.equal, found
    assert log.duplicates > scale.uploads // 10
    assert log.final == {}


@pytest.mark.faults
@pytest.mark.parametrize("scale", [SMALL, FULL])
@pytest.mark.parametrize("way", ["both ways", "answers only"])
def test_a_partition_loses_and_repeats_nothing(
    way: str, scale: Scale, seed: int, chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """Half open: requests vanish without an error, or arrive while no answer does."""
    weather = Weather()
    with fault_site(tmp_path, collectors=1) as site:
        proxy = Proxy(site.ports[0], weather, seed)
        fleet = Fleet(lambda: [proxy.port], seed, devices=scale.devices, rate=scale.rate)
        with running(proxy), fleet.sending() as log:
            fleet.wait_for(scale.devices)
            gone = weather.dark if way == "both ways" else weather.mute
            gone.set()
            time.sleep(scale.dark_s * (0.5 + 0.5 * chance.random()))
            gone.clear()
            fleet.wait_for(len(log.acknowledged) + scale.devices)
        found = site.compared(log.enqueued)

    tell(f"partition, {way}, up to {scale.dark_s:.0f} s: {found}; {log.duplicates} duplicates")
    assert found.equal, found
    assert set(log.answers) <= {0, 202, 503}
    assert log.gap > 0.4 * scale.dark_s  # nothing came through


MEMORY = 4 * 1024 * 1024  # bytes
QUIET = "quiet-key-for-tests-0123456789"
SLACK = 500  # uploads; what a process takes between two exchanges of counts


def send(site: FaultSite, key: str, chance: random.Random, count: int) -> Counter[int]:
    """Send so many new uploads over one connection, into the same tallies; return the answers."""
    answers: Counter[int] = Counter()
    connection = http.client.HTTPConnection("127.0.0.1", site.ports[0], timeout=PATIENCE)
    headers = {**bearer(key), "Content-Type": "application/json"}
    for _ in range(count):
        try:
            connection.request("POST", "/v1/reports", upload_of(0, chance)[1], headers)
            with connection.getresponse() as response:
                response.read()
                answers[response.status] += 1
        except ConnectionError:  # a server may end a connection between two requests
            connection.close()
    connection.close()
    return answers


@pytest.mark.faults
def test_a_flood_under_one_key_leaves_memory_and_answers_to_the_others(
    chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """It ends at the daily share of its key, far below the memory from which all are refused."""
    most = daily_uploads(MEMORY)
    assert most is not None
    with fault_site(tmp_path, collectors=0, settings={"maxmemory": str(MEMORY)}) as site:
        connection = Connection.open(f"redis://{site.store.address}/0")
        store = CredentialStore(RedisHashes(connection, PREFIX))
        store.put(digest_of(QUIET), Credential(WRITE).to_json())
        site.add_collector()
        flood = Counter[int]()
        while flood[202] < most and flood[202] + flood[429] < 3 * most:
            flood += send(site, WRITE_KEY, chance, 250)
        after = send(site, WRITE_KEY, chance, 50)
        quiet = send(site, QUIET, chance, 50)
        memory = site.storage.health().memory or 1.0

    tell(f"flood under one key: {dict(flood)}, then {dict(after)}; another key {dict(quiet)}")
    assert after == {429: 50}
    assert most <= flood[202] <= most + SLACK
    assert quiet == {202: 50}
    assert memory < SHED_MEMORY
