"""From real devices over HTTP to tallies: every report is counted once, to the integer.

The oracle sees the bytes that left the devices, and adds them up one payload after another.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from client_sdk.registry import Registry
from collector.core.config import STANDARD
from collector.storage.connect import open_storage
from collector.storage.protocols import TallyStore
from collector.storage.redis import RedisStorage
from tests.support.crowds.fleet import (
    RecordingTransport,
    Tallies,
    recording,
    send_reports,
    stored_tallies,
    tallies_of,
)
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY, registry_text
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

REGISTRY = Registry.from_text(registry_text(expires="2999-12-31"))
SHARDS = 4  # the default of ``hearsay serve``


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(expires="2999-12-31"), encoding="utf-8")
    with running_site(tmp_path / "store", path, WRITE_KEY, READ_TOKEN) as running:
        yield running


@pytest.fixture
def storage(site: Site) -> RedisStorage:
    return open_storage(site.redis_url, "hearsay", SHARDS, STANDARD)


def sent_and_stored(transport: RecordingTransport, storage: TallyStore) -> tuple[Tallies, Tallies]:
    """Return the tallies of what was sent, each upload once, and those in the store."""
    assert all(len(bodies) == 1 for bodies in transport.bodies.values())  # retries are identical
    bodies = [body for (body,) in transport.bodies.values()]
    return tallies_of(bodies, REGISTRY), stored_tallies(storage, REGISTRY, bodies)


def test_lost_requests_and_answers_lose_nothing_and_count_nothing_twice(
    site: Site, storage: RedisStorage, tmp_path: Path
) -> None:
    transport = recording(site.url, WRITE_KEY, lost_requests=0.1, lost_answers=0.25)

    send_reports(range(120), REGISTRY, transport, time.time(), tmp_path)
    site.wait_until_folded()

    sent, stored = sent_and_stored(transport, storage)
    assert transport.duplicates > 20
    assert len(transport.bodies) == 200  # 80 say their platform, but not to all metrics
    assert stored == sent


def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(
    site: Site, storage: RedisStorage, tmp_path: Path
) -> None:
    transport, now = recording(site.url, WRITE_KEY, lost_answers=0.2), time.time()
    send_reports(range(40), REGISTRY, transport, now, tmp_path)
    site.kill_worker()
    send_reports(range(40, 80), REGISTRY, transport, now, tmp_path)
    for shard in range(SHARDS):  # a worker that died between claim and fold leaves this behind
        assert storage.claim(shard, "dead-worker", 3, 60_000)

    site.restart_worker()
    send_reports(range(80, 120), REGISTRY, transport, now, tmp_path)
    site.wait_until_folded()

    sent, stored = sent_and_stored(transport, storage)
    assert stored == sent
