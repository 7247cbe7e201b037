"""A flood under one public key, with a real store that has little memory."""

from __future__ import annotations

import http.client
import random
from collections import Counter
from pathlib import Path

import pytest

from collector.core.credentials import WRITE, Credential, digest_of
from collector.intake.backpressure import SHED_MEMORY
from collector.intake.memory_quota import daily
from collector.storage.connection import Connection
from collector.storage.records import RedisCredentials
from tests.faults.conftest import Tell
from tests.support.crowds.uploads import WRITE_KEY, bearer
from tests.support.faults.reports import upload_of
from tests.support.faults.site import PREFIX, FaultSite, fault_site
from tests.support.store.servers import needs_real

MEMORY = 4 * 1024 * 1024  # bytes
QUIET = "quiet-key-for-tests-0123456789"
SLACK = 500  # uploads; what a process takes between two exchanges of counts


def send(site: FaultSite, key: str, chance: random.Random, first: int, count: int) -> Counter[int]:
    """Send so many new uploads over one connection; return the answers."""
    answers: Counter[int] = Counter()
    connection = http.client.HTTPConnection("127.0.0.1", site.ports[0], timeout=30)
    headers = {**bearer(key), "Content-Type": "application/json"}
    for serial in range(first, first + count):
        connection.request("POST", "/v1/reports", upload_of(serial, chance)[1], headers)
        response = connection.getresponse()
        response.read()
        answers[response.status] += 1
    connection.close()
    return answers


@pytest.mark.faults
@pytest.mark.real
@needs_real
def test_a_flood_under_one_key_leaves_memory_and_answers_to_the_others(
    chance: random.Random, tmp_path: Path, tell: Tell
) -> None:
    """It ends at the daily share of its key, far below the memory from which all are refused."""
    most = daily(MEMORY)
    assert most is not None
    with fault_site(tmp_path, collectors=0, settings={"maxmemory": str(MEMORY)}) as site:
        store = RedisCredentials(Connection.open(f"redis://{site.store.address}/0"), PREFIX)
        store.put(digest_of(QUIET), Credential(WRITE).to_json())
        site.add_collector()
        flood = Counter[int]()
        while flood[202] < most and flood[202] + flood[429] < 3 * most:
            flood += send(site, WRITE_KEY, chance, flood[202] + flood[429], 250)
        after = send(site, WRITE_KEY, chance, 200_000, 50)
        quiet = send(site, QUIET, chance, 300_000, 50)
        memory = site.storage.health().memory or 1.0

    tell(f"flood under one key: {dict(flood)}, then {dict(after)}; another key {dict(quiet)}")
    assert after == {429: 50}
    assert most <= flood[202] <= most + SLACK
    assert quiet == {202: 50}
    assert memory < SHED_MEMORY
