"""A store that is torn, full, slow or emptied stops the intake and loses nothing."""

from __future__ import annotations

import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from collector.core.config import STANDARD, STRICT
from collector.core.errors import CollectorError, ReplacedStoreError, UnsafeStoreError
from collector.storage.connect import open_connection, open_storage
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from tests.faults.conftest import Tell
from tests.support.device.small_disk import fill, small_disk
from tests.support.faults.fleet import Fleet, post
from tests.support.faults.folding import append, fold, worker
from tests.support.faults.oracle import compared
from tests.support.faults.reports import upload_of
from tests.support.faults.site import FaultSite, fault_site
from tests.support.patience import wait_for as until
from tests.support.store.cluster import Node, cluster, holder_of, url_of, wait_for
from tests.support.store.servers import needs_real, real_server
from tests.support.store.stored import DAY

pytestmark = [pytest.mark.real, needs_real]

KEYS = Keys("faults", 2)
TAIL = 2_048  # bytes of the log, each of which is where it may be torn
DISK = 64 * 1024 * 1024  # bytes
REFUSED = 20  # uploads' tries that must be refused before the fault ends


def is_refused(fleet: Fleet) -> bool:
    return fleet.log.answers[503] >= REFUSED


def wait_until_refused(fleet: Fleet) -> float:
    """Return when devices are told to come again later, with the seconds until then."""
    began = time.monotonic()
    until(lambda: is_refused(fleet), lambda: fleet.log.answers)
    return time.monotonic() - began


@contextmanager
def stopped_node(folder: Path) -> Iterator[Node]:
    """Yield a server with its files in *folder*, to be started; kill it afterwards."""
    folder.mkdir()
    node = Node(folder, {"appendfsync": "always"})
    try:
        yield node
    finally:
        node.stop()
        node.connection.close()


def tear(kept: Path, folder: Path, cut: int) -> None:
    """Make *folder* what was *kept*, without the last *cut* bytes of the log."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kept, folder)
    [log] = (folder / "appendonlydir").glob("*.incr.aof")
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - cut)


def borders(folder: Path) -> set[int]:
    """Return how many bytes of the log in *folder* stand behind each end of a late command.

    A command is ``*2``, then for each word its length and the word; a word may hold what looks like
    a command, so the log is read from its beginning.
    """
    [log] = (folder / "appendonlydir").glob("*.incr.aof")
    data, place, found = log.read_bytes(), 0, set[int]()
    while place < len(data):
        end = data.index(b"\r\n", place)
        words, place = int(data[place + 1 : end]), end + 2
        for _ in range(words):
            end = data.index(b"\r\n", place)
            place = end + 4 + int(data[place + 1 : end])
        found.add(len(data) - place)
    return {cut for cut in found if cut <= TAIL}


@pytest.mark.parametrize(
    "every", [pytest.param(0, id="small"), pytest.param(8, id="full", marks=pytest.mark.faults)]
)
def test_a_store_whose_log_is_torn_anywhere_starts_and_is_whole(
    every: int, seed: int, chance: random.Random, tmp_path: Path, tell: Tell, progress: Tell
) -> None:
    """Every step is there or not; devices that send all again make it complete.

    At every eighth byte, and before, at and behind each end of a command.
    """
    bodies = dict(upload_of(serial, random.Random(seed + serial)) for serial in range(25))
    with stopped_node(tmp_path / "now") as node:
        storage = open_storage(f"redis://{node.address}/0", KEYS.prefix, KEYS.shards, STRICT)
        inspection = RedisInspection(node.connection, KEYS)
        node.start()
        storage.prepare()
        append(storage, list(bodies.values())[:24])
        fold(storage)
        append(storage, list(bodies.values())[24:])  # the tail holds this, and a part of the fold
        node.stop()
        (tmp_path / "now").rename(tmp_path / "kept")

        smallest = len(bodies)
        offset, ends = chance.randrange(every or 1), borders(tmp_path / "kept")
        beside = {cut + step for cut in ends for step in (-1, 0, 1)}
        regular = range(1 + offset, TAIL + 1, every) if every else chance.sample(range(1, TAIL), 12)
        cuts = sorted({*regular, *(beside if every else ())} & {*range(1, TAIL + 1)})
        for done, cut in enumerate(cuts):
            progress(f"log torn {done} of {len(cuts)} times")
            tear(tmp_path / "kept", tmp_path / "now", cut)
            node.start()
            counters = inspection.counters()
            assert [one.drift for one in counters] == [0, 0], cut
            smallest = min(smallest, sum(one.accepted.uploads for one in counters))
            append(storage, bodies.values())
            fold(storage)
            found = compared(storage, inspection, bodies)
            assert found.equal, (cut, found)
            node.stop()

    torn = f"log torn at {len(cuts)} of its last {TAIL} bytes"
    tell(f"{torn}: {found}; down to {smallest} uploads left")
    assert smallest < len(bodies)  # some cuts took whole uploads, which came again


@pytest.mark.faults
@pytest.mark.parametrize("profile", [STRICT, STANDARD])
def test_a_full_disk_stops_the_intake_and_loses_nothing(
    profile: str, seed: int, tmp_path: Path, tell: Tell
) -> None:
    """Synced at every write the server ends itself; otherwise it refuses to write.  Then: 503."""
    with (
        small_disk(tmp_path / "disk", DISK) as disk,
        fault_site(tmp_path, collectors=1, profile=profile, data=disk) as site,
    ):
        fleet = Fleet(lambda: site.ports, seed)
        with fleet.sending() as log:
            fleet.wait_for(20)
            rubbish = fill(disk)
            waited = wait_until_refused(fleet)
            rubbish.unlink()
            if profile == STRICT:
                site.store.stop()
                site.store.start()
            fleet.wait_for(len(log.acknowledged) + 20)
        found = site.compared(log.enqueued)

    tell(f"disk full, profile {profile}: {found}; {REFUSED} refused after {waited:.1f} s")
    assert found.equal, found
    assert log.final == {}


@pytest.mark.faults
def test_full_memory_stops_the_intake_while_the_worker_drains(
    seed: int, tmp_path: Path, tell: Tell
) -> None:
    """Folding goes on until nothing is pending, and the intake by itself when there is room."""
    with fault_site(tmp_path, collectors=1, workers=0) as site:
        fleet = Fleet(lambda: site.ports, seed)
        with fleet.sending() as log:
            fleet.wait_for(60)
            site.store.connection.call("CONFIG", "SET", "maxmemory", 1_000_000)  # less than in use
            waited = wait_until_refused(fleet)
            pending = site.storage.backlog()
            site.add_worker()
            lag = site.wait_until_folded()
            refused = is_refused(fleet)
            site.store.connection.call("CONFIG", "SET", "maxmemory", 0)
            fleet.wait_for(len(log.acknowledged) + 20)
        found = site.compared(log.enqueued)

    tell(
        f"memory full: {found}; refused after {waited:.1f} s, "
        f"{pending} pending entries folded in {lag:.1f} s meanwhile"
    )
    assert pending >= 60
    assert refused
    assert found.equal, found
    assert log.final == {}


@pytest.mark.faults
@pytest.mark.parametrize(
    "pauses",
    [
        pytest.param([1.0, 3.0], id="small"),
        pytest.param([1.0, 3.0, 7.0, 12.0, 30.0], id="full", marks=pytest.mark.faults),
    ],
)
def test_a_store_that_hangs_loses_and_repeats_nothing(
    pauses: list[float], seed: int, tmp_path: Path, tell: Tell
) -> None:
    """Commands that are sent again after a time-out have had their effect once."""
    with fault_site(tmp_path, collectors=1) as site:
        fleet = Fleet(lambda: site.ports, seed)
        with fleet.sending() as log:
            for pause in pauses:
                fleet.wait_for(len(log.acknowledged) + 20)
                site.store.signal(signal.SIGSTOP)
                time.sleep(pause)
                site.store.signal(signal.SIGCONT)
        found = site.compared(log.enqueued)

    told = dict(sorted(log.answers.items()))
    tell(f"store hangs up to {max(pauses):.0f} s: {found}; {told}; slowest {log.slowest:.1f} s")
    assert found.equal, found
    assert set(log.answers) <= {202, 503}  # each was answered: no device waited for nothing


@pytest.mark.parametrize(
    "uploads",
    [pytest.param(600, id="small"), pytest.param(20_000, id="full", marks=pytest.mark.faults)],
)
def test_workers_that_fold_the_same_entries_count_them_once(
    uploads: int, seed: int, tell: Tell
) -> None:
    """Four of them take whatever another holds, at once: the deletion decides whose fold it is."""
    with real_server() as embedded:
        storages = [open_storage(embedded.url, KEYS.prefix, 1, STANDARD) for _ in range(5)]
        storages[0].prepare()
        bodies = dict(upload_of(serial, random.Random(seed + serial)) for serial in range(uploads))
        stop = threading.Event()
        workers = [worker(storage) for storage in storages[1:]]
        threads = [threading.Thread(target=one.run, args=(stop,)) for one in workers]
        for thread in threads:
            thread.start()
        append(storages[0], bodies.values())
        until(lambda: not storages[0].backlog())
        stop.set()
        for thread in threads:
            thread.join()
        counted = storages[0].counters()
        inspection = RedisInspection(Connection.open(embedded.url), Keys(KEYS.prefix, 1))
        found = compared(storages[0], inspection, bodies)

    tell(f"four workers, each taking what the others hold: {found}")
    assert found.equal, found
    assert [one.folded.uploads for one in counted] == [uploads]


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
            until(lambda: log.answers[503] >= REFUSED)
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
    until(
        lambda: any(
            dict(zip(group[::2], group[1::2], strict=True))[b"consumers"]
            for shard in range(site.keys.shards)
            for group in site.store.connection.call("XINFO", "GROUPS", site.keys.stream(shard))
        )
    )


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
            refusing = before.refusing()
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
    assert [*refusing] == lost
    assert set(map(type, refusing.values())) == {ReplacedStoreError}
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
                wait_for(lambda: storage.refusing() == {})
            for shard in range(3):
                taken = appended_to(storage, shard, serial)
                acknowledged, refused = acknowledged + taken, refused + (not taken)
        counted = storage.counters()

    tell(f"1 of 3 servers killed: {acknowledged} acknowledged, {refused} refused")
    assert sum(one.stream for one in counted) == acknowledged
    assert acknowledged > 100
    assert [one.drift for one in counted] == [0] * 12
