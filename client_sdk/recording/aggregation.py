"""Aggregation: values add up on the device until their epoch is over, and then make one report.

A window is a row of the database, masked by the device secret, and of one length whatever was
recorded.  It is opened by the first value of its epoch or, for a metric with ``otherwise``, as soon
as a process sees to it in its epoch, so that a report is made whether or not anything happened.

Masked bytes say nothing without the device secret.  Each write draws a nonce, and so a keystream of
its own.  A tag finds damage, and a secret, a place or a layout other than those of the write.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hmac import compare_digest
from struct import Struct

from ..core.dataclass import dataclass
from ..core.epoch import day_of, day_of_date, epoch_of, epoch_start
from ..core.limits import MAX_REPORT_AGE
from ..core.randomness import Randomness, draw_bytes
from ..core.stats import Reason
from ..core.typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from ..registry.aggregates import Last, aggregate_of
from ..registry.contract import Registry
from ..registry.encodings import Encoded
from ..registry.metric import Metric
from ..storage.ledger import Days
from ..storage.secret import Secret
from .inbox import Pending

if TYPE_CHECKING:
    from ..storage.schema import Transaction

NONCE_SIZE: Final = 16  # bytes; one of 2^128 for each write
TAG_SIZE: Final = 16  # bytes

_STREAM: Final = b"hearsay window 1 stream\0"
_TAG: Final = b"hearsay window 1 tag\0"
_EPOCH: Final = 8  # bytes

_HEAD: Final = Struct(">iii")  # days: the last of the epoch; trusted, of the opening and that last
_EMPTY, _HELD = b"\0", b"\1"

_CountedState: TypeAlias = tuple[Any, int]  # a state, and the number of values that it is of

_FIND: Final = "SELECT sealed FROM windows WHERE device = ? AND digest = ? AND epoch = ?"
_DELETE: Final = "DELETE FROM windows WHERE device = ? AND digest = ? AND epoch = ?"


class Key(NamedTuple):
    """Which window: of a gateway's device or of none, a metric and an epoch."""

    device: bytes
    digest: bytes
    epoch: int

    @property
    def place(self) -> bytes:
        """The key as bytes, of which none are the beginning of another's."""
        epoch = self.epoch.to_bytes(_EPOCH, "big", signed=True)
        return bytes([len(self.device)]) + self.device + self.digest + epoch


@dataclass(frozen=True)
class Masker:
    """Masks and unmasks within one transaction; the secret is read, or made, when first needed."""

    tx: Transaction
    secret: Secret
    randomness: Randomness

    def mask(self, key: Key, content: bytes) -> bytes:
        """Return *content* masked for its window.  Raises StoreError, EntropyError."""
        return mask(self._secret, key.place, content, self.randomness)

    def unmask(self, key: Key, masked: bytes) -> bytes | None:
        """Return the content of a window; None if this device's secret did not mask it."""
        return unmask(self._secret, key.place, masked)

    @cached_property
    def _secret(self) -> bytes:
        return self.secret.get(self.tx)


def mask(secret: bytes, place: bytes, content: bytes, randomness: Randomness) -> bytes:
    """Return *content* masked under the *secret*.

    Args:   place: what the content belongs to; no place is the beginning of another.
    Raises: EntropyError: no nonce could be drawn.
    """
    nonce = draw_bytes(randomness, NONCE_SIZE)
    context = secret + place + nonce
    return nonce + _xor_keystream(context, content) + _tag(context, content)


def unmask(secret: bytes, place: bytes, masked: bytes) -> bytes | None:
    """Return the content of *masked*; None if this secret did not mask it for this place."""
    if len(masked) < NONCE_SIZE + TAG_SIZE:
        return None
    context = secret + place + masked[:NONCE_SIZE]
    content = _xor_keystream(context, masked[NONCE_SIZE:-TAG_SIZE])
    return content if compare_digest(_tag(context, content), masked[-TAG_SIZE:]) else None


def _xor_keystream(context: bytes, content: bytes) -> bytes:
    """Return *content* XOR the keystream of *context*; twice gives it back."""
    stream = hashlib.shake_256(_STREAM + context).digest(len(content))
    masked = int.from_bytes(content, "big") ^ int.from_bytes(stream, "big")
    return masked.to_bytes(len(content), "big")


def _tag(context: bytes, content: bytes) -> bytes:
    return hashlib.shake_256(_TAG + context + content).digest(TAG_SIZE)


class Today(NamedTuple):
    """The present epoch day by both clocks."""

    trusted: int
    wall: int


class Windows:
    """The windows of the aggregated metrics of a registry."""

    def __init__(self, registry: Registry, secret: Secret, randomness: Randomness) -> None:
        """Mask by *secret*; *randomness* draws the nonces."""
        self._metrics = {metric.digest: metric for metric in registry.aggregated}
        self._aggregates = {m.digest: aggregate_of(m) for m in self._metrics.values()}
        self._secret, self._randomness = secret, randomness
        self._epochs_seen: object = None  # the epochs at which windows were last opened and closed

    @property
    def scheduled(self) -> bool:
        """Whether any metric reports of epochs in which nothing happened."""
        return any(metric.otherwise is not None for metric in self._metrics.values())

    def aggregate(self, metric: Metric) -> Last:
        """Return how the values of *metric* add up."""
        return self._aggregates[metric.digest]

    def add(
        self, tx: Transaction, additions: Mapping[Key, Sequence[_CountedState]], today: Today
    ) -> Counter[Reason]:
        """Add values to their windows, opened *today* unless reported or open.

        Args: additions: states of the aggregate, each with the number of values that it is of.
        """
        counts, masker = Counter[Reason](), self._masker(tx)
        for key, states in additions.items():
            values = sum(count for _, count in states)
            row = tx.execute(_FIND, key).fetchone()
            if row is None and _is_charged(tx, key):
                counts[Reason.ALREADY_REPORTED] += values
                continue
            content = None if row is None else masker.unmask(key, row[0])
            if content is None:
                counts[Reason.WINDOW_OPENED] += 1
                counts[Reason.WINDOW_DROPPED] += row is not None  # masked by another secret
            aggregate = self._aggregates[key.digest]
            state = None if content is None else self._state(aggregate, content)
            for later, _ in states:
                state = aggregate.merge(state, later)
            days = self._days(key, today) if content is None else _days_in(content)
            days = Days(days.first, max(days.last, today.trusted))  # a clock was set back
            self._write(masker, key, state, days)
            counts[Reason.AGGREGATED] += values
        return counts

    def value_so_far(self, tx: Transaction, key: Key) -> Encoded | None:
        """Return what would be reported if the window ended now, or None if that is not known."""
        row = tx.execute(_FIND, key).fetchone()
        if row is None or key.digest not in self._metrics:
            return None
        content = self._masker(tx).unmask(key, row[0])
        return None if content is None else self._result(key.digest, content)

    def is_due(self, now: float) -> bool:
        """Whether an epoch may have ended since the windows were last seen to; once an hour too."""
        return self._epochs(now) != self._epochs_seen

    def wait(self, now: float) -> float:
        """Return the seconds from Unix time *now* until the next epoch ends."""
        starts = (
            epoch_start(metric.every, epoch_of(metric.every, now) + 1)
            for metric in self._metrics.values()
        )
        return max(0.0, min(starts) - now)

    def seen_to(self, now: float) -> None:
        """Remember that there is nothing to do before another epoch ends."""
        self._epochs_seen = self._epochs(now)

    def forget(self) -> None:
        """See to the windows again: they may have been erased."""
        self._epochs_seen = None

    def take(self, tx: Transaction, now: float, day: int, most: int) -> tuple[list[Pending], int]:
        """Remove up to *most* of the windows that ended before Unix time *now*, a trusted *day*.

        Returns: those that are to be reported, and how many others were removed.
        """
        ended: list[Pending] = []
        taken, masker = 0, self._masker(tx)
        for metric in self._metrics.values():
            rows = tx.execute(
                "SELECT device, epoch, sealed FROM windows WHERE digest = ? AND epoch < ?"
                " ORDER BY epoch LIMIT ?",
                (metric.digest, epoch_of(metric.every, now), most - taken),
            ).fetchall()
            taken += len(rows)
            for device, epoch, sealed in rows:
                key = Key(device, metric.digest, epoch)
                tx.execute(_DELETE, key)
                content = masker.unmask(key, sealed)
                if content is not None and not _is_late(content, now):
                    first, last = _days_in(content)
                    pending = Pending(
                        metric=metric,
                        encoded=self._result(metric.digest, content),
                        epoch=epoch,
                        # it counts as recorded in the last second of its epoch, and ages with it
                        now=epoch_start(metric.every, epoch + 1) - 1,
                        device=device,
                        days=Days(min(first, day), min(last, day)),
                    )
                    ended.append(pending)
        if taken < most:
            taken += self._drop_foreign(masker, now)
        return ended, taken - len(ended)

    def open_scheduled(
        self,
        tx: Transaction,
        devices: Iterable[bytes],
        now: float,
        day: int,
        may_report: Callable[[Metric, int, bytes], bool],
    ) -> int:
        """Open a window of the present epoch for each of *devices* and each scheduled metric.

        Args: day: the trusted one at Unix time *now*.
              may_report: whether a metric may report of an epoch and device.

        Returns: how many were not open yet.
        """
        opened, masker = 0, self._masker(tx)
        running = [
            metric
            for metric in self._metrics.values()
            if metric.otherwise is not None and day_of(now) <= day_of_date(metric.expires)
        ]
        for device in devices:
            for metric in running:
                key = Key(device, metric.digest, epoch_of(metric.every, now))
                if not may_report(metric, key.epoch, device):
                    continue
                if tx.execute(_FIND, key).fetchone() is None and not _is_charged(tx, key):
                    self._write(masker, key, None, self._days(key, Today(day, day_of(now))))
                    opened += 1
        return opened

    def _drop_foreign(self, masker: Masker, now: float) -> int:
        """Remove old windows of metrics that this registry does not define, or not any more.

        Younger ones are left: another version of the application may be running beside this one.
        """
        dropped, tx = 0, masker.tx
        for (digest,) in tx.execute("SELECT DISTINCT digest FROM windows").fetchall():
            if digest in self._metrics:
                continue
            rows = tx.execute(
                "SELECT device, epoch, sealed FROM windows WHERE digest = ?", (digest,)
            ).fetchall()
            for device, epoch, sealed in rows:
                key = Key(device, digest, epoch)
                content = masker.unmask(key, sealed)
                if content is None or _is_late(content, now):
                    tx.execute(_DELETE, key)
                    dropped += 1
        return dropped

    def _masker(self, tx: Transaction) -> Masker:
        return Masker(tx, self._secret, self._randomness)

    def _days(self, key: Key, today: Today) -> Days:
        """Return the trusted days that a window opened *today* is about: to the end of its epoch.

        Trusted time is never faster than a clock that is not set back: it comes no further by then.
        """
        last = today.trusted + self._last_day(key) - today.wall
        return Days(min(today.trusted, last), last)

    def _last_day(self, key: Key) -> int:
        return day_of(epoch_start(self._metrics[key.digest].every, key.epoch + 1) - 1)

    def _write(self, masker: Masker, key: Key, state: Any, days: Days) -> None:
        aggregate = self._aggregates[key.digest]
        body = bytes(aggregate.size) if state is None else aggregate.dump(state)
        content = _HEAD.pack(self._last_day(key), *days) + (_EMPTY if state is None else _HELD)
        masker.tx.execute(
            "INSERT OR REPLACE INTO windows (device, digest, epoch, sealed) VALUES (?, ?, ?, ?)",
            (*key, masker.mask(key, content + body)),
        )

    def _result(self, digest: bytes, content: bytes) -> Encoded:
        aggregate, otherwise = self._aggregates[digest], self._metrics[digest].otherwise
        state = self._state(aggregate, content)
        if state is not None:
            return aggregate.result(state)
        assert otherwise is not None  # noqa: S101 - else no window is opened empty
        return otherwise

    @staticmethod
    def _state(aggregate: Last, content: bytes) -> Any:
        head = _HEAD.size
        held = content[head : head + 1] == _HELD
        return aggregate.load(content[head + 1 :]) if held else None

    def _epochs(self, now: float) -> object:
        lengths = {"1h", *(metric.every for metric in self._metrics.values())}
        return {every: epoch_of(every, now) for every in lengths}


def _is_charged(tx: Transaction, key: Key) -> bool:
    query = "SELECT 1 FROM charges WHERE device = ? AND digest = ? AND epoch = ?"
    return tx.execute(query, key).fetchone() is not None


def _is_late(content: bytes, now: float) -> bool:
    """Whether the collector would take no report of a window any more."""
    last: int = _HEAD.unpack_from(content)[0]
    return last < day_of(now) - MAX_REPORT_AGE


def _days_in(content: bytes) -> Days:
    _, first, last = _HEAD.unpack_from(content)
    return Days(first, last)
