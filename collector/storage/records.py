"""Small records of processes and people in the store, each in a hash of its own.

*Activity*: counts of processes, a hash a UTC day, each process writing only its own fields.  A
process writes sums, not steps, so a write that is repeated changes nothing.

*Credentials*: keys and tokens, a hash of records, and one a day of what keys have used.

*Suspicions*: what the checks of closed epochs found, a field a metric.  A worker writes all of a
metric in place of what was there before, so two that look at the same time change nothing.

*Watches*: what people want to be told of: one ledger that changes in single steps, and a field a
watch with what it said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, Self

import msgspec

from client_sdk.core.epoch import DAY

from ..core.config import Config
from .connect import open_connection
from .connection import Connection, Part
from .keys import Keys

_DAYS: Final = 2  # days after which a day's counts are forgotten
_SEEN: Final = "seen"  # the field that holds the Unix time of the last write
_FIELD: Final = re.compile(r"([a-z]+):([0-9a-f]+):([a-z0-9_.-]+)")
NOTHING: Final[Mapping[bytes, int]] = MappingProxyType({})  # counted by who only asks
_DIGEST: Final = re.compile(rb"[0-9a-f]{64}")


class Usage(NamedTuple):
    """What is counted of the use of keys, day by day."""

    name: str
    days: int  # after which the counts of a day are forgotten


REPORTS_SENT: Final = Usage("usage", 2)  # of keys with a quota
UPLOADS_SENT: Final = Usage("uploads", 26)  # of any key; ids are remembered for up to 22 days
BYTES_BEGUN: Final = Usage("usage:growth", 26)  # of tallies that write keys began
QUESTIONS_ASKED: Final = Usage("usage:asked", 90)  # by whom, of what; only if it is wished


class _Records:
    """Records under the prefix of a deployment."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        """Use *connection* for the records under *prefix*.  Raises ConfigError."""
        self._connection, self._prefix = connection, Keys(prefix, 1).prefix

    @classmethod
    def of(cls, config: Config) -> Self:
        """Return those of *config*'s store.  Nothing is sent before their first use."""
        return cls(open_connection(config.redis_url), config.prefix)


@dataclass(frozen=True)
class ActivityRecord:
    """What one process has counted on a day, and the Unix time at which it said so."""

    role: str
    process: str
    counts: Mapping[str, int]
    seen: int


class ActivityStore(Protocol):
    """What processes say of themselves.

    Raises, both methods: StorageUnavailableError, StorageFullError.  Each may be repeated.
    """

    def put(self, day: int, record: ActivityRecord) -> None:
        """Write the sums of one process on epoch day *day*, in place of older ones.

        A sum that *record* leaves out stays as it was.
        """

    def records(self, day: int) -> list[ActivityRecord]:
        """Return the last record of every process on epoch day *day*."""


class RedisActivity(_Records):
    """The ActivityStore protocol on Redis or Valkey."""

    def put(self, day: int, record: ActivityRecord) -> None:
        """Write one field a count."""
        own = f"{record.role}:{record.process}"
        pairs: list[Part] = [f"{own}:{_SEEN}", record.seen]
        for name, n in record.counts.items():
            pairs += f"{own}:{name}", n
        key = self._key(day)
        forgotten = ("EXPIREAT", key, (day + _DAYS) * DAY)
        self._connection.call_many([("HSET", key, *pairs), forgotten])

    def records(self, day: int) -> list[ActivityRecord]:
        """Read the whole hash: a few dozen fields a process."""
        flat = self._connection.call("HGETALL", self._key(day))
        entries: dict[tuple[str, str], dict[str, int]] = {}
        for name, text in zip(flat[::2], flat[1::2], strict=True):
            parts = _FIELD.fullmatch(name.decode(errors="replace"))
            if parts and text.isdigit():
                entries.setdefault((parts[1], parts[2]), {})[parts[3]] = int(text)
        return [
            ActivityRecord(role, process, counts, counts.pop(_SEEN, 0))
            for (role, process), counts in entries.items()
        ]

    def _key(self, day: int) -> str:
        return f"{self._prefix}:activity:{day}"


class CredentialStore(Protocol):
    """Records by digest, and the use that several processes make of them.

    Raises, all methods: StorageUnavailableError, StorageFullError.  Each may be repeated.
    """

    def records(self) -> dict[bytes, bytes]:
        """Return every stored record by the digest of its secret."""

    def put(self, digest: bytes, record: str) -> None:
        """Store the *record* of one credential, in place of an older one."""

    def replace(self, digest: bytes, read: bytes, record: str) -> bool:
        """Store *record* in place of the one that was *read*; a full store does so, too.

        Returns whether it was still there: read again if it was not.
        Raises: NotPreparedError.
        """

    def share(
        self, usage: Usage, day: int, process: str = "", used: Mapping[bytes, int] = NOTHING
    ) -> dict[bytes, int]:
        """Say what *process* counted of each digest on epoch *day*; return the sums of all."""


class RedisCredentials(_Records):
    """The CredentialStore protocol on Redis or Valkey."""

    @property
    def _credentials(self) -> str:
        return f"{self._prefix}:credentials"

    def records(self) -> dict[bytes, bytes]:
        """Read the whole hash: credentials are made by people, so there are few."""
        entries = _pairs(self._connection.call("HGETALL", self._credentials))
        return {bytes.fromhex(n.decode()): r for n, r in entries.items() if _DIGEST.fullmatch(n)}

    def put(self, digest: bytes, record: str) -> None:
        """Write one field of the hash."""
        self._connection.call("HSET", self._credentials, digest.hex(), record)

    def replace(self, digest: bytes, read: bytes, record: str) -> bool:
        """Write one field of the hash by a function that compares it, and needs no room."""
        function = "FCALL", "hearsay_replace", 1, self._credentials
        return bool(self._connection.call(*function, digest.hex(), read, record))

    def share(
        self, usage: Usage, day: int, process: str = "", used: Mapping[bytes, int] = NOTHING
    ) -> dict[bytes, int]:
        """Write our own sums, which a repeated command cannot add twice, and read all."""
        key = f"{self._prefix}:{usage.name}:{day}"
        if used:
            pairs: list[Part] = []
            for digest, count in used.items():
                pairs += f"{digest.hex()}:{process}", count
            forgotten = (day + usage.days) * DAY
            self._connection.call_many([("HSET", key, *pairs), ("EXPIREAT", key, forgotten)])
        sums: dict[bytes, int] = {}
        for name, text in _pairs(self._connection.call("HGETALL", key)).items():
            digest = bytes.fromhex(name.partition(b":")[0].decode())
            sums[digest] = sums.get(digest, 0) + int(text)
        return sums


def _pairs(reply: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(reply[::2], reply[1::2], strict=True))


class WatchRecord(msgspec.Struct, frozen=True):
    """What the checks found when they last looked at the closed epochs of one metric."""

    at: int  # Unix time
    latest: int  # epoch
    looked: int  # epochs with enough reports to be judged
    sentences: dict[str, list[str]] = msgspec.field(name="found")  # by the label of an epoch


class SuspicionStore(Protocol):
    """What the checks found.

    Raises, both methods: StorageUnavailableError, StorageFullError.  Each may be repeated.
    """

    def put(self, metric: bytes, record: WatchRecord) -> None:
        """Write what was found of a metric, in place of what was found before."""

    def records(self) -> Mapping[bytes, WatchRecord]:
        """Return what was found of each metric, by digest."""


class RedisSuspicions(_Records):
    """The SuspicionStore protocol on Redis or Valkey."""

    @property
    def _key(self) -> str:
        return f"{self._prefix}:suspicions"

    def put(self, metric: bytes, record: WatchRecord) -> None:
        """Write one field."""
        self._connection.call("HSET", self._key, metric.hex(), msgspec.json.encode(record))

    def records(self) -> dict[bytes, WatchRecord]:
        """Read the whole hash; what is not ours is passed over."""
        flat = self._connection.call("HGETALL", self._key)
        entries = {}
        for name, text in zip(flat[::2], flat[1::2], strict=True):
            try:
                digest = bytes.fromhex(name.decode())
                entries[digest] = msgspec.json.decode(text, type=WatchRecord)
            except (ValueError, msgspec.MsgspecError):
                continue
        return entries


QUIET: Final = "quiet"  # what a watch can say
FIRING: Final = "firing"
UNKNOWN: Final = "unknown"  # not enough reports
UNABLE: Final = "unable"  # it cannot be computed


class Verdict(msgspec.Struct, frozen=True):
    """What a watch said of one period, and the number that it said it of."""

    first: str  # days with which the window and its last period begin
    last: str
    state: str
    text: str
    at: int  # Unix time
    value: float | None = None
    low: float | None = None  # limits that are wrong with the rate of the watch
    high: float | None = None
    unit: str = ""
    n: int = 0


class WatchSeries(msgspec.Struct, frozen=True):
    """What a watch is, and what it said of the last periods, newest first."""

    name: str
    metric: str
    title: str  # the question in words
    definition: str
    rate: float  # chance of a false alarm of one evaluation
    verdicts: tuple[Verdict, ...] = ()


class WatchCursor(msgspec.Struct, frozen=True):
    """How far a watch is, what it said last and since when, and what was last told of it."""

    definition: str
    last: str  # the first day of the last period that it was asked about
    state: str
    since: str
    reported: str = QUIET


class WatchMessage(msgspec.Struct, frozen=True):
    """What is to be sent, and to which channels it still is: tries, and when the next is due."""

    id: str
    watch: str
    metric: str
    at: int  # Unix time
    note: str
    verdict: Verdict
    left: dict[str, tuple[int, int]]


class WatchLedger(msgspec.Struct, frozen=True):
    """What changes in one step: who evaluates, how far each watch is, and what is to be sent."""

    holder: str = ""  # the process that evaluates and sends, and until when no other does
    until: int = 0
    looked: int = 0  # Unix time of the last round
    false_alarms: float = 0.0  # of all watches in any 365 days
    cursors: dict[str, WatchCursor] = {}
    outbox: tuple[WatchMessage, ...] = ()  # in order
    sent: int = 0
    given_up: int = 0


class WatchState(NamedTuple):
    """The ledger, and what each watch said, by its name."""

    ledger: WatchLedger = WatchLedger()
    series: Mapping[str, WatchSeries] = MappingProxyType({})


class WatchStore(Protocol):
    """The ledger of watches, and beside it a series of verdicts a watch.

    Law: a ledger is replaced only by who has read the one before, so no step is taken twice.
    Raises, all methods: StorageUnavailableError, StorageFullError.
    """

    def now(self) -> int:
        """Return the Unix time of the store's own clock."""

    def ledger(self) -> tuple[bytes, WatchLedger]:
        """Return the ledger as it is stored, and what it says; b"" and an empty one at first."""

    def replace(self, read: bytes, ledger: WatchLedger) -> bytes | None:
        """Store *ledger* in place of the one that was *read*; return it as stored.

        None: another is there; nothing was changed.
        """

    def series(self) -> dict[str, WatchSeries]:
        """Return what each watch said, by its name."""

    def put(self, series: WatchSeries) -> None:
        """Write what a watch said, in place of what was there."""

    def forget(self, names: Sequence[str]) -> None:
        """Delete the series of watches that are no more."""


class RedisWatches(_Records):
    """The WatchStore protocol on Redis or Valkey: a hash, and in it the ledger under a name of its
    own.
    """

    _LEDGER: Final = "*"  # no name of a watch

    @property
    def _key(self) -> str:
        return f"{self._prefix}:watch"

    def now(self) -> int:
        """Ask the first server that there is."""
        return int(self._connection.nodes()[0].call("TIME")[0])

    def ledger(self) -> tuple[bytes, WatchLedger]:
        """Read one field; what is not ours is passed over."""
        text = self._connection.call("HGET", self._key, self._LEDGER) or b""
        try:
            return text, msgspec.json.decode(text, type=WatchLedger) if text else WatchLedger()
        except msgspec.MsgspecError:
            return text, WatchLedger()

    def replace(self, read: bytes, ledger: WatchLedger) -> bytes | None:
        """Write one field: the first by a command, others by the function that compares."""
        text = msgspec.json.encode(ledger)
        if not read:
            done = self._connection.call("HSETNX", self._key, self._LEDGER, text)
        else:
            function = "FCALL", "hearsay_replace", 1, self._key
            done = self._connection.call(*function, self._LEDGER, read, text)
        return text if done or self._is_stored(text) else None

    def _is_stored(self, text: bytes) -> bool:
        """Return whether *text* is there: a command whose answer was lost was sent once more."""
        return bool(self._connection.call("HGET", self._key, self._LEDGER) == text)

    def series(self) -> dict[str, WatchSeries]:
        """Read the whole hash; what is not ours is passed over."""
        series = {}
        for name, text in _pairs(self._connection.call("HGETALL", self._key)).items():
            try:
                series[name.decode()] = msgspec.json.decode(text, type=WatchSeries)
            except (ValueError, msgspec.MsgspecError):
                continue
        return series

    def state(self) -> WatchState:
        """Return the ledger and all series."""
        return WatchState(self.ledger()[1], self.series())

    def put(self, series: WatchSeries) -> None:
        """Write one field."""
        self._connection.call("HSET", self._key, series.name, msgspec.json.encode(series))

    def forget(self, names: Sequence[str]) -> None:
        """Delete fields."""
        if names:
            self._connection.call("HDEL", self._key, *names)
