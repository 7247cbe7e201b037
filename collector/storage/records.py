"""Small records of processes and people in hashes of a store, of Redis or in memory.

*Activity*: counts of processes, a hash a UTC day, each process writing only its own fields.  A
process writes sums, not steps, so a write that is repeated changes nothing.

*Credentials*: keys and tokens, a hash of records, and one a day of what keys have used.

*Suspicions*: what the checks of closed epochs found, a field a metric.  A worker writes all of a
metric in place of what was there before, so two that look at the same time change nothing.

*Watches*: alarms that people asked for: one ledger that changes in single steps, and a field for
each watch with its verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

import msgspec

from client_sdk.core.epoch import DAY

from .hashes import Hashes, HashStore, Records

_DAYS: Final = 2  # days after which a day's counts are forgotten
_SEEN: Final = "seen"  # the field that holds the Unix time of the last write
_FIELD: Final = re.compile(r"([a-z]+):([0-9a-f]+):([a-z0-9_.-]+)")
_CREDENTIALS: Final = "credentials"  # hashes
_WATCH: Final = "watch"
_LEDGER: Final = "*"  # field of that, and no name of a watch
R = TypeVar("R")
NOTHING: Final[Mapping[bytes, int]] = MappingProxyType({})  # counted by who only asks
_DIGEST: Final = re.compile(r"(?:[0-9a-f]{2})+")


class Usage(NamedTuple):
    """What is counted of the use of keys, day by day."""

    name: str
    days: int  # after which the counts of a day are forgotten


REPORTS_SENT: Final = Usage("usage", 2)  # of keys with a quota
UPLOADS_SENT: Final = Usage("uploads", 26)  # of any key; ids are remembered for up to 22 days
BYTES_BEGUN: Final = Usage("usage:growth", 26)  # of tallies that write keys began
QUESTIONS_ASKED: Final = Usage("usage:asked", 90)  # by whom, of what; only if it is wished


@dataclass(frozen=True)
class ActivityRecord:
    """What one process has counted on a day, and the Unix time at which it said so."""

    role: str
    process: str
    counts: Mapping[str, int]
    seen: int


class ActivityStore(HashStore):
    """What processes say of themselves."""

    def put(self, day: int, record: ActivityRecord) -> None:
        """Write the sums of one process on epoch day *day*, in place of older ones.

        A sum that *record* leaves out stays as it was.
        """
        own = f"{record.role}:{record.process}"
        fields = {f"{own}:{name}": n for name, n in record.counts.items()}
        fields[f"{own}:{_SEEN}"] = record.seen
        self._hashes.put(f"activity:{day}", fields, (day + _DAYS) * DAY)

    def records(self, day: int) -> list[ActivityRecord]:
        """Return the last record of every process on epoch day *day*: a few dozen fields each."""
        entries: dict[tuple[str, str], dict[str, int]] = {}
        for name, text in self._hashes.read(f"activity:{day}").items():
            parts = _FIELD.fullmatch(name)
            if parts and text.isdigit():
                entries.setdefault((parts[1], parts[2]), {})[parts[3]] = int(text)
        return [
            ActivityRecord(role, process, counts, counts.pop(_SEEN, 0))
            for (role, process), counts in entries.items()
        ]


class CredentialStore(HashStore):
    """Records of keys and tokens by digest, and the use that several processes make of them."""

    def records(self) -> dict[bytes, bytes]:
        """Return every stored record by the digest of its secret: people make them, so few."""
        return _by_digest(self._hashes.read(_CREDENTIALS))

    def put(self, digest: bytes, record: str) -> None:
        """Store the *record* of one credential, in place of an older one."""
        self._hashes.put(_CREDENTIALS, {digest.hex(): record})

    def replace(self, digest: bytes, read: bytes, record: str) -> bool:
        """Store *record* in place of the one that was *read*; a full store does so, too.

        Returns whether it is there: read again if it is not.
        Raises: NotPreparedError.
        """
        return self._hashes.replace(_CREDENTIALS, digest.hex(), read, record.encode())

    def share(
        self, usage: Usage, day: int, process: str = "", used: Mapping[bytes, int] = NOTHING
    ) -> dict[bytes, int]:
        """Say what *process* counted of each digest on epoch *day*; return the sums of all.

        A process writes its own sums, which a repeated command cannot add twice.
        """
        key = f"{usage.name}:{day}"
        if used:
            fields = {f"{digest.hex()}:{process}": count for digest, count in used.items()}
            self._hashes.put(key, fields, (day + usage.days) * DAY)
        sums: dict[bytes, int] = {}
        for name, text in self._hashes.read(key).items():
            digest = bytes.fromhex(name.partition(":")[0])
            sums[digest] = sums.get(digest, 0) + int(text)
        return sums


def _by_digest(records: Mapping[str, R]) -> dict[bytes, R]:
    return {bytes.fromhex(name): r for name, r in records.items() if _DIGEST.fullmatch(name)}


class WatchRecord(msgspec.Struct, frozen=True):
    """What the checks found when they last looked at the closed epochs of one metric."""

    at: int  # Unix time
    latest: int  # epoch
    looked: int  # epochs with enough reports to be judged
    sentences: dict[str, list[str]] = msgspec.field(name="found")  # by the label of an epoch


class SuspicionStore(HashStore):
    """What the checks found, by the digest of a metric."""

    def __init__(self, hashes: Hashes) -> None:
        """Keep it in *hashes*."""
        super().__init__(hashes)
        self._records = Records(hashes, "suspicions", WatchRecord)

    def put(self, metric: bytes, record: WatchRecord) -> None:
        """Replace the findings of a metric."""
        self._records.put(metric.hex(), record)

    def records(self) -> dict[bytes, WatchRecord]:
        """Return what was found of each metric; what is not ours is passed over."""
        return _by_digest(self._records.all())


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
    """How far a watch is, its last state and since when, and the last state that was sent."""

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


class WatchStore(HashStore):
    """The ledger of watches, and in another hash the series of verdicts of each watch.

    Law: a ledger replaces only the one that its writer has read, so no step is taken twice.
    """

    def __init__(self, hashes: Hashes) -> None:
        """Keep both in *hashes*."""
        super().__init__(hashes)
        self._ledgers = Records(hashes, _WATCH, WatchLedger)
        self._series = Records(hashes, _WATCH, WatchSeries)

    def now(self) -> int:
        """Return the Unix time of the store's own clock."""
        return self._hashes.now()

    def ledger(self) -> tuple[bytes, WatchLedger]:
        """Return the ledger as it is stored, and what it says; b"" and an empty one at first."""
        text, ledger = self._ledgers.get(_LEDGER)
        return text or b"", ledger or WatchLedger()

    def replace(self, read: bytes, ledger: WatchLedger) -> bytes | None:
        """Store *ledger* in place of the one that was *read*; return it as stored.

        None: another is there; nothing was changed.
        """
        return self._ledgers.replace(_LEDGER, read or None, ledger)

    def series(self) -> dict[str, WatchSeries]:
        """Return what each watch said, by its name; what is not ours is passed over."""
        return self._series.all()

    def state(self) -> WatchState:
        """Return the ledger and all series."""
        return WatchState(self.ledger()[1], self.series())

    def put(self, series: WatchSeries) -> None:
        """Write what a watch said, in place of what was there."""
        self._series.put(series.name, series)

    def forget(self, names: Sequence[str]) -> None:
        """Delete the series of watches that are no more."""
        self._series.forget(names)
