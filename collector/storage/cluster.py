"""Many servers as one: each command goes to the primary that holds the slot of its first key.

All keys of one command share a hash tag, so none of them is refused for touching two slots.

A server that does not answer is asked by a thread of its own, until it does or another holds its
slots.  Meanwhile commands to it are refused at once: those to other servers wait for no time-out.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from ..core.errors import CollectorError, ConfigError, StorageUnavailableError
from .connection import (
    NO_PROOF,
    Command,
    Connection,
    Proof,
    client_of,
    is_elsewhere,
    translated,
)

SCHEMES: Final = {"redis-cluster": "redis", "rediss-cluster": "rediss"}
# Seconds of rest before each further try.  Then a failover or a move is over, or the store is away.
_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
PATIENCE: Final = 5.0  # seconds after which there is no further try: who waits is a device
LOOK_S: Final = 0.5  # seconds between two looks at a server that is away
_PROBE_S: Final = 1.0  # seconds in which it must answer such a look
_KEYLESS: Final = frozenset(
    ("ACL", "CLUSTER", "CONFIG", "DBSIZE", "FUNCTION", "INFO", "PING", "SCAN", "TIME")
)
_SECOND: Final = frozenset(("MEMORY", "OBJECT", "XGROUP", "XINFO"))  # a subcommand comes first
_SCRIPTS: Final = frozenset(("EVAL", "FCALL", "FCALL_RO"))


def is_cluster(url: str) -> bool:
    """Return whether *url* names a cluster."""
    return url.partition("://")[0] in SCHEMES


class ClusterConnection(Connection):
    """Commands to the primaries of a cluster."""

    def __init__(self, scheme: str, user: str, seeds: Sequence[str]) -> None:
        """Find the cluster through any of *seeds*, each ``host:port``; *user* ends in ``@``."""
        self._scheme, self._user = scheme, user
        self._seeds = tuple(seeds)
        self._open: dict[str, _Server] = {}
        self._slots: dict[int, str] = {}  # address of the primary of each slot
        self._is_stale = True  # whether the map of slots is to be read before it is used

    @classmethod
    def open(cls, url: str) -> ClusterConnection:
        """Return a connection to the cluster at ``redis-cluster://[user:password@]host:port,…``.

        Raises: ConfigError: *url* is no such address.
        """
        # by hand: some Pythons refuse a list in which not each place has brackets
        scheme, _, rest = url.partition("://")
        user, at, hosts = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")
        connection = cls(SCHEMES.get(scheme, ""), user + at, hosts.split(","))
        for seed in connection._seeds:
            if not hosts or ":" not in seed:
                raise ConfigError("REDIS_URL", "***", "must list host:port, comma, host:port …")
            connection._node(seed)
        return connection

    def nodes(self) -> Sequence[Connection]:
        """Return a connection to each primary, by the newest map of slots."""
        self._learn()
        return [self._node(address) for address in dict.fromkeys(self._slots.values())]

    def holder_of(self, key: str) -> str:
        """Return the address of the primary, by the last map of slots."""
        return self._slots.get(key_slot(key.encode()), "")

    def replies(self, commands: Sequence[Command], proof: Proof = NO_PROOF) -> list[Any]:
        """Send *commands*, one round trip a primary; follow slots that move, within a time."""
        replies: list[Any] = [None] * len(commands)
        places = list(range(len(commands)))
        last = time.monotonic() + PATIENCE
        for pause in (*_PAUSES, None):
            places = self._send_round(commands, places, replies, proof)
            if not places or pause is None or time.monotonic() > last:
                break
            time.sleep(pause)
        return replies

    def close(self) -> None:
        """Close the sockets."""
        for node in [*self._open.values()]:
            node.close()

    def _send_round(
        self, commands: Sequence[Command], waiting: Sequence[int], replies: list[Any], proof: Proof
    ) -> list[int]:
        """Send the commands *waiting* once and return those to be sent again."""
        again: list[int] = []
        for address, places in self._by_primary(commands, waiting).items():
            try:
                got = self._node(address).replies([commands[place] for place in places], proof)
            except (RedisError, OSError) as error:  # our writes are idempotent: send them again
                self._is_stale |= not isinstance(error, CollectorError)
                got = [error] * len(places)
            for place, reply in zip(places, got, strict=True):
                replies[place] = self._followed(commands[place], address, reply, proof)
                if _is_passing(replies[place]):
                    again.append(place)
        return again

    def _by_primary(
        self, commands: Sequence[Command], places: Sequence[int]
    ) -> dict[str, list[int]]:
        """Return the *places* of the commands that go to each address."""
        if self._is_stale:
            self._learn()
        by_address: dict[str, list[int]] = {}
        slots = self._slots  # another thread may put a new map in its place
        for place in places:
            address = slots.get(_slot_of(commands[place]), self._seeds[0])
            by_address.setdefault(address, []).append(place)
        return by_address

    def _followed(self, command: Command, address: str, reply: Any, proof: Proof) -> Any:
        """Return *reply*, or what the server answers to which a redirection points."""
        if isinstance(reply, MovedError):
            self._slots[reply.slot_id] = _address(reply.host or _host(address), reply.port)
        elif isinstance(reply, AskError):
            target = self._node(_address(reply.host or _host(address), reply.port))
            try:
                return target.replies([("ASKING",), command], proof)[1]
            except (RedisError, OSError) as error:
                return error
        return reply

    def _learn(self) -> None:
        """Read the map of slots from the first server that answers.

        Raises: StorageUnavailableError: none does.
        """
        failure: Exception | None = None
        for address in dict.fromkeys((*self._seeds, *self._open)):
            try:
                with translated():
                    reply = self._node(address).call("CLUSTER", "SLOTS")
            except StorageUnavailableError as error:
                failure = error
                continue
            self._slots = {
                slot: _address(primary[0].decode() or _host(address), primary[1])
                for first, last, primary, *_ in reply
                for slot in range(first, last + 1)
            }
            self._is_stale = False
            return
        raise StorageUnavailableError("store: no server of the cluster answers") from failure

    def _learned(self, address: str) -> bool:
        """Read the map of slots anew, and return whether the server at *address* holds any."""
        self._learn()
        return address in self._slots.values()

    def _node(self, address: str) -> _Server:
        if address not in self._open:
            url = f"{self._scheme}://{self._user}{address}/0"
            self._open.setdefault(address, _Server(url, partial(self._learned, address)))
        return self._open[address]


class _Server(Connection):
    """Commands to one server of a cluster, refused at once while it is away."""

    def __init__(self, url: str, learned: Callable[[], bool]) -> None:
        """Ask the server at *url*; *learned* reads anew whether it holds anything."""
        super().__init__(client_of(url))
        self._probe = Connection(client_of(url, _PROBE_S))
        self._learned = learned
        self._failure = ""  # why it is asked no more; "" if it is
        self._turn = threading.Lock()
        self._closed = threading.Event()

    def replies(self, commands: Sequence[Command], proof: Proof = NO_PROOF) -> list[Any]:
        """Send *commands*.  Raises StorageUnavailableError: the server has failed just before."""
        if self._failure:
            raise StorageUnavailableError(self._failure)
        try:
            return super().replies(commands, proof)
        except CollectorError:  # it answers, but no replica does
            raise
        except (RedisError, OSError) as error:
            self._leave(f"store: {error}")
            raise

    def close(self) -> None:
        """Close the sockets, and look no more."""
        self._closed.set()
        self._probe.close()
        super().close()

    def _leave(self, failure: str) -> None:
        """Stop sending to the server until it answers a check."""
        with self._turn:
            if not self._failure:
                self._failure = failure
                threading.Thread(target=self._look, name="away", daemon=True).start()

    def _look(self) -> None:
        while not self._closed.wait(LOOK_S):
            with suppress(CollectorError):
                self._probe.call("PING")
                break
            with suppress(CollectorError):
                if not self._learned():
                    break  # another has what it held
        self._failure = ""


def _slot_of(command: Command) -> int:
    """Return the slot of a command's first key, -1 of one without keys."""
    name = str(command[0])
    if name in _KEYLESS or (name in _SCRIPTS and command[2] == 0):
        return -1
    place = 3 if name in _SCRIPTS else 2 if name in _SECOND else 1
    key = command[place]
    return key_slot(key if isinstance(key, bytes) else str(key).encode())


def _is_passing(reply: Any) -> bool:
    """Return whether *reply* is an error that another try may not get."""
    if isinstance(reply, (AskError, TryAgainError, ClusterDownError)):  # a move is an ask for good
        return True
    if is_elsewhere(reply):
        return True
    is_final = isinstance(reply, (ResponseError, CollectorError))
    return isinstance(reply, (RedisError, OSError)) and not is_final


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
