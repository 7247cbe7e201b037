"""Stores that lose what they held while devices send: nothing is acknowledged into the rest."""

from __future__ import annotations

import random
import time
from contextlib import closing
from pathlib import Path

import pytest

from collector.core.config import STANDARD, STRICT
from collector.core.errors import CollectorError, ReplacedStoreError, UnsafeStoreError
from collector.storage.connect import open_connection, open_storage
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from tests.faults.conftest import Tell
from tests.support.faults.fleet import Fleet, post
from tests.support.faults.reports import upload_of
from tests.support.faults.site import FaultSite, fault_site
from tests.support.store.cluster import Node, cluster, holder_of, url_of, wait_for
from tests.support.store.servers import needs_real
from tests.support.store.stored import DAY

pytestmark = [pytest.mark.real, needs_real]

REFUSED = 20  # uploads' tries that must be refused


def test_an_emptied_store_acknowledges_nothing_until_it_is_prepared_again(
    seed: int, tmp_path: Path, tell: Tell
) -> None:
    """Under load, from the first upload after it on; the processes stay as they are."""
    with fault_site(tmp_path, collectors=1, workers=1) as site:
        fleet = Fleet(lambda: site.ports, seed)
        with fleet.sending() as log:
            fleet.wait_for(20)
            wait_for_worker(site)  # one that starts prepares what it finds empty
            site.store.connection.call("FLUSHALL")
            emptied = time.monotonic()
            while log.answers[503] < REFUSED:
                assert time.monotonic() < emptied + 60
                time.sleep(0.02)
            kept = site.store.connection.call("DBSIZE")
            appended = sum(
                site.store.connection.call("EXISTS", site.keys.stream(shard))
                for shard in range(site.keys.shards)
            )
            site.storage.prepare(renew=True)
            time.sleep(1.5)
            body = upload_of(900_000, random.Random(seed))[1]
            after_init = post(site.ports[0], body)[0]
            site.collectors[0].kill()
            site.wait_for_collector(site.ports[0])
            after_restart = post(site.ports[0], body)[0]

    tell(f"FLUSHALL: {len(log.acknowledged)} acknowledged before, {appended} streams after, {kept}")
    assert appended == 0
    assert (after_init, after_restart) == (503, 202)
    assert log.final == {}


def wait_for_worker(site: FaultSite) -> None:
    """Return once a worker has claimed entries of a shard."""
    until = time.monotonic() + 60
    while not any(
        dict(zip(group[::2], group[1::2], strict=True))[b"consumers"]
        for shard in range(site.keys.shards)
        for group in site.store.connection.call("XINFO", "GROUPS", site.keys.stream(shard))
    ):
        assert time.monotonic() < until
        time.sleep(0.02)


def appended_to(storage: RedisStorage, shard: int, serial: int) -> bool:
    """Append one upload to *shard*; return whether it was acknowledged."""
    upload_id = (shard + storage.shards * serial).to_bytes(8, "big") + bytes(8)
    try:
        return storage.append_many([SealedUpload(upload_id, DAY, b"entry", 1)])[0]
    except CollectorError:
        return False


def test_a_server_of_a_cluster_that_comes_back_empty_acknowledges_nothing(tell: Tell) -> None:
    """The others go on; hearsay init makes another store of what is left."""
    with cluster() as nodes:
        keys = Keys("lost", 12)
        with closing(open_connection(url_of(nodes))) as connection:
            before = RedisStorage(connection, keys, STANDARD)
            before.prepare()
            shards = range(keys.shards)
            slots = [
                int(nodes[0].connection.call("CLUSTER", "KEYSLOT", keys.stream(s))) for s in shards
            ]
            lost = [s for s in shards if holder_of(nodes, slots[s]) is nodes[1]]
            first = [appended_to(before, shard, 1) for shard in shards]
            nodes[1].connection.call("FLUSHALL")

            second = [appended_to(before, shard, 2) for shard in shards]
            with pytest.raises(ReplacedStoreError):
                before.ping()
            with pytest.raises(UnsafeStoreError, match="shards="):
                RedisStorage(connection, keys, STANDARD).prepare()
            after = RedisStorage(connection, keys, STANDARD)
            after.prepare(renew=True)
            old = [appended_to(before, shard, 3) for shard in shards]
            new = [appended_to(after, shard, 3) for shard in shards]
            drift = [one.drift for one in after.counters()]

    tell(f"1 of 3 servers emptied: {len(lost)} of {len(shards)} shards took nothing")
    assert 0 < len(lost) < len(shards)
    assert all(first)
    assert second == [shard not in lost for shard in shards]
    assert (any(old), all(new)) == (False, True)
    assert drift == [0] * keys.shards


def test_a_server_of_a_cluster_that_dies_loses_no_acknowledged_upload(
    chance: random.Random, tell: Tell
) -> None:
    """It is killed while uploads come, and started again with its files."""
    with cluster(appendfsync="always") as nodes:
        storage = open_storage(url_of(nodes), "dies", 12, STRICT)
        storage.prepare()
        acknowledged, refused = 0, 0
        victim: Node = chance.choice(nodes)
        for serial in range(60):
            if serial == 20:
                victim.stop()
            if serial == 22:
                victim.start()
                wait_for(lambda: all(_answers(storage) for _ in range(3)))
            for shard in range(3):
                taken = appended_to(storage, shard, serial)
                acknowledged, refused = acknowledged + taken, refused + (not taken)
        counted = storage.counters()

    tell(f"1 of 3 servers killed: {acknowledged} acknowledged, {refused} refused")
    assert sum(one.stream for one in counted) == acknowledged
    assert acknowledged > 100
    assert [one.drift for one in counted] == [0] * 12


def _answers(storage: RedisStorage) -> bool:
    storage.ping()
    return True
