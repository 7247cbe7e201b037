"""One server of a cluster is away: who is refused, who goes on, that each upload counts once."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import requests
from redis.crc import key_slot

from collector.core.config import HA, STANDARD, STRICT, Config
from collector.core.errors import StorageUnavailableError
from collector.intake.backpressure import Load, Pressure
from collector.operations.doctor.checkup import check_deployment
from collector.storage.connect import open_connection
from collector.storage.connection import parse_info
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.faults.conftest import Tell
from tests.support.crowds.uploads import WRITE_KEY, bearer
from tests.support.faults.reports import upload_of
from tests.support.faults.site import READ_TOKEN, Deployment
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.cluster import Node, cluster, holder_of, replicated_cluster, url_of
from tests.support.store.processes import descendants
from tests.support.store.servers import needs_real
from tests.support.store.stored import DAY

pytestmark = [pytest.mark.real, needs_real]

SHARDS: Final = 8
# A quick failover, also to a replica that is behind; the slots of the others stay served.
SETTINGS: Final = {
    "cluster-node-timeout": "1000",
    "cluster-require-full-coverage": "no",
    "cluster-replica-validity-factor": "0",
    "repl-diskless-sync-delay": "0",
}
OVER: Final = "2026-01-01", "2026-01-02"  # so an answer has a name, and may be given again
RUNS: Final = "7d"  # to today, so it is asked for anew


class Clustered(Deployment):
    """A web process and a worker on a cluster, and devices that send to shards of their choice."""

    def __init__(self, folder: Path, profile: str, nodes: list[Node], seed: int) -> None:
        super().__init__(folder, profile, url_of(nodes), SHARDS)
        self.holders = holders_of(nodes, self.keys)
        self.enqueued: dict[bytes, bytes] = {}
        self._chance, self._serial = random.Random(seed), 0

    def shards_of(self, node: Node) -> list[int]:
        return [shard for shard, holder in enumerate(self.holders) if holder is node]

    def seal(self) -> dict[int, bytes]:
        """Return an upload for each shard, the body by the shard."""
        bodies: dict[int, bytes] = {}
        while len(bodies) < SHARDS:
            upload_id, body = upload_of(self._serial, self._chance)
            shard = self.keys.shard_of(upload_id)
            if shard not in bodies:
                self._serial += 1
                bodies[shard] = self.enqueued[upload_id] = body
        return bodies

    def send(self, bodies: Mapping[int, bytes]) -> dict[int, requests.Response]:
        """Send all at once; return the answers by shard."""
        headers = {**bearer(WRITE_KEY), "Content-Type": "application/json"}

        def post(body: bytes) -> requests.Response:
            url = f"http://127.0.0.1:{self.ports[0]}/v1/reports"
            return requests.post(url, body, headers=headers, timeout=PATIENCE)

        with ThreadPoolExecutor(SHARDS) as threads:
            return dict(zip(bodies, threads.map(post, bodies.values()), strict=True))

    def statuses(self, bodies: Mapping[int, bytes]) -> dict[int, int]:
        return {shard: answer.status_code for shard, answer in self.send(bodies).items()}

    def get(self, path: str, **parameters: str) -> requests.Response:
        url = f"http://127.0.0.1:{self.ports[0]}{path}"
        return requests.get(url, parameters, headers=bearer(READ_TOKEN), timeout=PATIENCE)

    def wait_until_refusing(self, shards: list[int]) -> None:
        """Return once the process names *shards* as those of which it takes no uploads, and is so.

        Readiness asks the store; uploads are refused by what was last read.
        """
        wanted = {shard: 503 if shard in shards else 202 for shard in range(SHARDS)}
        bodies = self.seal()

        def refuses() -> bool:
            answer = self.get("/readyz")
            is_named = answer.ok and answer.json()["refusing"] == shards
            return is_named and self.statuses(bodies) == wanted

        self._wait_for(refuses, f"{shards} are not those that are refused")

    def send_again(self) -> None:
        """Send each upload once more until it is taken, as devices do that had no answer."""
        for body in self.enqueued.values():
            self._wait_for(partial(self._is_taken, body), "an upload is not taken")

    def _is_taken(self, body: bytes) -> bool:
        return self.statuses({0: body}) == {0: 202}

    def processes(self) -> set[int]:
        """Return the web processes and workers that run."""
        started = [one.process for one in (*self.collectors, *self.workers) if one.process]
        return {pid for process in started for pid in {process.pid} | descendants(process.pid)}

    def ask(self, dates: str | Sequence[str]) -> requests.Response:
        return self.get("/v1/query", q=json.dumps({"metrics": ["m0"], "date_range": dates}))


@contextmanager
def clustered(folder: Path, profile: str, nodes: list[Node], seed: int) -> Iterator[Clustered]:
    """Run a web process and a worker on *nodes*."""
    site = Clustered(folder, profile, nodes, seed)
    try:
        site.storage.prepare()
        site.add_collector()
        site.add_worker()
        yield site
    finally:
        site.supervisor.stop()


def kill(node: Node) -> None:
    node.stop()


def hang(node: Node) -> None:
    node.signal(signal.SIGSTOP)


def start(node: Node) -> None:
    node.start()


def go_on(node: Node) -> None:
    node.signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("victim", "leave", "come_back"),
    [
        pytest.param(0, kill, start, id="first", marks=pytest.mark.faults),
        pytest.param(1, kill, start, id="second", marks=pytest.mark.faults),
        pytest.param(2, kill, start, id="small third"),  # has the number of shards, and exclusions
        pytest.param(1, hang, go_on, id="small second hangs"),  # has half of the shards
    ],
)
def test_a_server_that_is_away_refuses_the_uploads_of_its_shards_only(
    victim: int,
    leave: Callable[[Node], None],
    come_back: Callable[[Node], None],
    tmp_path: Path,
    seed: int,
    tell: Tell,
) -> None:
    """The others are stored and folded meanwhile; afterwards each upload counts once."""
    with (
        cluster(appendfsync="always", **SETTINGS) as nodes,
        clustered(tmp_path, STRICT, nodes, seed) as site,
    ):
        lost = site.shards_of(nodes[victim])
        before = site.statuses(site.seal())
        answer = site.ask(OVER)
        site.wait_until_folded()  # so the worker has started

        leave(nodes[victim])
        at_first = site.statuses(site.seal())
        site.wait_until_refusing(lost)
        refused = site.send(site.seal())
        question = site.ask(RUNS)
        findings = check_deployment(Config.from_env(site.settings()))
        site.wait_until_folded(but=lost)

        come_back(nodes[victim])
        site.wait_until_refusing([])
        site.send_again()
        comparison = site.compared(site.enqueued)
        after = site.ask(OVER)

    tell(f"1 of 3 servers away, {len(lost)} of {SHARDS} shards: {comparison}")
    wanted = {shard: 503 if shard in lost else 202 for shard in range(SHARDS)}
    assert set(before.values()) == {202}
    assert set(wanted.values()) == {202, 503}
    assert at_first == wanted  # also before it is known who is away
    assert {shard: answer.status_code for shard, answer in refused.items()} == wanted
    assert comparison.equal, comparison
    for problem in (question, *(refused[shard] for shard in lost)):
        assert int(problem.headers["Retry-After"]) > 0
        assert problem.json()["type"] == "urn:hearsay:problem:store-unavailable"
    assert [finding.what.partition(":")[0] for finding in findings] == [
        f"shards {', '.join(map(str, lost))}"
    ]
    assert (answer.status_code, question.status_code, after.status_code) == (200, 503, 200)
    # As it was not started again, it holds what it held.
    assert (after.headers["ETag"] == answer.headers["ETag"]) == (leave is hang)


@pytest.mark.parametrize("profile", [STRICT, HA])
def test_a_replica_that_takes_over_is_followed_without_a_restart(
    profile: str, tmp_path: Path, seed: int, chance: random.Random, tell: Tell
) -> None:
    """Profile ``ha`` takes its uploads once it has a replica, too: the server that was killed."""
    with (
        replicated_cluster(appendfsync="always", **SETTINGS) as nodes,
        clustered(tmp_path, profile, nodes, seed) as site,
    ):
        victim = chance.choice(nodes[:3])
        before = site.statuses(site.seal())
        answer = site.ask(OVER)
        site.wait_until_folded()  # so the worker has started
        wait_for(lambda: all(map(has_copied, nodes[:3])))
        processes = site.processes()

        victim.stop()
        site.wait_until_refusing([] if profile == STRICT else site.shards_of(victim))
        alone = site.statuses(site.seal())
        victim.start()
        site.wait_until_refusing([])
        site.send_again()
        comparison = site.compared(site.enqueued)
        after = site.ask(OVER)
        kept = processes & site.processes()

    tell(f"1 of 3 primaries killed, its replica takes over, {profile}: {comparison}")
    assert set(before.values()) == {202}
    assert set(alone.values()) == ({202} if profile == STRICT else {202, 503})
    assert comparison.equal, comparison
    assert kept == processes
    assert answer.headers["ETag"] != after.headers["ETag"]


def test_what_a_replica_that_takes_over_never_had_is_told_as_lost(
    chance: random.Random, tell: Tell
) -> None:
    """It copies without an acknowledgement, but with profile ``ha``."""
    with (
        replicated_cluster(**SETTINGS) as nodes,
        closing(open_connection(url_of(nodes))) as connection,
    ):
        keys = Keys("behind", SHARDS)
        storage = RedisStorage(connection, keys, STANDARD)
        storage.prepare()
        pressure = Pressure(storage, 1_000, 1_000, time.monotonic, time.time)
        for upload_id in ids_of_shards(chance):
            storage.append(upload_id, DAY, b"entry", 1)
        primary, replica = chance.choice([*zip(nodes, nodes[3:], strict=False)])
        held = [shard for shard, node in enumerate(holders_of(nodes, keys)) if node is primary]
        wait_for(lambda: has_copied(primary))
        replica.signal(signal.SIGSTOP)
        primary.connection.call("CLIENT", "KILL", "TYPE", "replica")
        for upload_id in ids_of_shards(chance):
            storage.append(upload_id, DAY, b"entry", 1)
        contents = polled(pressure).health.contents

        primary.stop()
        away = polled(pressure)
        replica.signal(signal.SIGCONT)
        wait_for(lambda: polled(pressure).refusing == {})
        stored = [
            storage.append(upload_id, DAY, b"entry", 1) for upload_id in ids_of_shards(chance)
        ]

    tell(f"a replica without the last {len(held)} uploads took over: {pressure.lost} told as lost")
    assert all(stored)
    assert [*away.refusing] == held
    assert pressure.lost == len(held)
    assert away.failure is None
    assert away.health.contents == ""
    assert pressure.contents not in ("", contents)


def test_a_process_that_starts_while_a_server_is_away_takes_uploads_of_the_others(
    chance: random.Random,
) -> None:
    """One web process of several that dies is started again without a look at the whole store."""
    keys = Keys("starts", SHARDS)
    with (
        cluster(maxmemory="100mb", **SETTINGS) as nodes,
        closing(open_connection(url_of(nodes))) as before,
        closing(open_connection(url_of(nodes))) as after,
    ):
        RedisStorage(before, keys, STANDARD).prepare()
        whole = RedisStorage(before, keys, STANDARD).health()
        started, victim = RedisStorage(after, keys, STANDARD), chance.choice(nodes)
        lost = [shard for shard, node in enumerate(holders_of(nodes, keys)) if node is victim]
        victim.stop()

        refusing, part = started.refusing(), started.health()
        stored = [
            started.append(upload_id, DAY, b"entry", 1)
            for shard, upload_id in enumerate(ids_of_shards(chance))
            if shard not in lost
        ]

    assert [*refusing] == lost
    assert set(map(type, refusing.values())) == {StorageUnavailableError}
    assert stored == [True] * (SHARDS - len(lost))
    assert [shard for shard, count in enumerate(part.accepted) if count is None] == lost
    assert (bool(whole.contents), part.contents) == (True, "")
    assert whole.memory_limit == part.memory_limit  # or keys would have smaller shares of it


def ids_of_shards(chance: random.Random) -> list[bytes]:
    """Return the id of an upload for each shard, in their order."""
    first = chance.randrange(1 << 60) * SHARDS
    return [(first + shard).to_bytes(8, "big") + chance.randbytes(8) for shard in range(SHARDS)]


def holders_of(nodes: Sequence[Node], keys: Keys) -> list[Node]:
    """Return the primary of each shard."""
    streams = map(keys.stream, range(keys.shards))
    return [holder_of(nodes, key_slot(stream.encode())) for stream in streams]


def polled(pressure: Pressure) -> Load:
    """Return the store's state now."""
    pressure.poll()
    return pressure.load


def has_copied(primary: Node) -> bool:
    """Return whether the replica of *primary* has all that it has."""
    info = parse_info(primary.connection.call("INFO", "replication"))
    return f"offset={info['master_repl_offset']}," in info.get("slave0", "")
