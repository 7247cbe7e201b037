"""Exclusions: what an operator has taken out of all answers, by whom and why.  Pure.

An exclusion names a source (a key, or a version that devices declare), metrics, and days.  It takes
out whole epochs, never a part of one.  Answers leave the tallies out while the exclusion is in
force, and rest on them again once it is taken back.  Where an operator deletes the tallies of a
key, the record says so, and is never taken back.  No record is ever deleted, so that
everybody can see what was left out when, by whom and why.

Nothing but an operator's command makes an exclusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Final, Literal

import msgspec
from msgspec import Struct

from client_sdk.core.epoch import DAY, ONCE, day_of_date, epoch_of, epoch_start
from client_sdk.registry.metric import Metric

from .errors import ExclusionError, StorageUnavailableError

KEY: Final = "key"
VERSION: Final = "version"  # also the name of the dimension by which devices declare it
MOST: Final = 1_000  # exclusions of a store, those that were taken back among them
MAX_REASON: Final = 200  # characters
MAX_AUTHOR: Final = 64  # characters


class Inclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """By whom, when and why an exclusion was taken back."""

    author: str
    because: str
    at: int  # Unix time by the store's clock


class Exclusion(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is left out of answers: reports of a source on some metrics, in whole epochs.

    ``metrics`` are apps and names; without any it is of all.  Without days it is of the metrics
    that are reported once, of all their reports.
    """

    id: str
    by: Literal["key", "version"]
    name: str  # of the key or version
    metrics: tuple[str, ...] = ()
    first: str = ""  # days, as dates
    last: str = ""
    author: str
    because: str
    at: int  # Unix time by the store's clock
    included: Inclusion | None = None
    deleted: bool = False  # the tallies are gone for good, so it is never taken back

    @property
    def source(self) -> str:
        """Which source it takes out, in words."""
        return f"{self.by} {self.name}"

    def covers(self, metric: Metric) -> bool:
        """Return whether it is of *metric*, in some epoch."""
        return self.included is None and self.is_meant(metric)

    def is_meant(self, metric: Metric) -> bool:
        """Return whether it is or was of *metric*."""
        is_once = metric.every == ONCE
        is_named = not self.metrics or self.address_of(metric) in self.metrics
        return is_once != bool(self.first) and is_named

    @staticmethod
    def address_of(metric: Metric) -> str:
        """Return app and name of *metric*, which stay when another app gets such a metric."""
        return f"{metric.app}/{metric.name}"

    def epochs(self, metric: Metric) -> range:
        """Return the whole epochs of *metric* of which a day is among its days."""
        if metric.every == ONCE:
            return range(1)
        first, last = date.fromisoformat(self.first), date.fromisoformat(self.last)
        begin, end = day_of_date(first) * DAY, (day_of_date(last) + 1) * DAY
        return range(epoch_of(metric.every, begin), epoch_of(metric.every, end - 1) + 1)

    def stretch(self, metric: Metric) -> str:
        """Return all days of these epochs in words: of an epoch of a week, its seven days.

        "" for what is reported once.
        """
        if metric.every == ONCE:
            return ""
        epochs = self.epochs(metric)
        ends = epoch_start(metric.every, epochs.start), epoch_start(metric.every, epochs.stop) - 1
        days = (datetime.fromtimestamp(end, UTC).date().isoformat() for end in ends)
        return " to ".join(dict.fromkeys(days))


def checked_words(name: str, text: str, most: int) -> str:
    """Return *text*, without spaces around it.  Raises ExclusionError: it says nothing, or much."""
    text = text.strip()
    if not text or len(text) > most or not text.isprintable():
        raise ExclusionError(f"{name}: must be 1 to {most} printable characters")
    return text


def read_all(records: Mapping[str, bytes]) -> list[Exclusion]:
    """Return the exclusions in stored *records*, in the order in which they were made.

    Raises: StorageUnavailableError: one cannot be read; no answer may rest on what it leaves out.
    """
    try:
        read = [msgspec.json.decode(record, type=Exclusion) for record in records.values()]
        for exclusion in read:
            if exclusion.first:
                _ = date.fromisoformat(exclusion.first), date.fromisoformat(exclusion.last)
    except (msgspec.DecodeError, ValueError):
        rule = "an exclusion cannot be read; perhaps a newer release wrote it: start that release"
        raise StorageUnavailableError(f"store: {rule}") from None
    return in_order(read)


def to_json(exclusion: Exclusion) -> bytes:
    """Return the record as it is stored."""
    return msgspec.json.encode(exclusion)


def latest(known: Exclusion | None, other: Exclusion) -> Exclusion:
    """Return of two copies of a record the later one: it never changes but to be taken back."""
    return other if known is None or known.included is None else known


def in_order(exclusions: Iterable[Exclusion]) -> list[Exclusion]:
    """Return *exclusions* in the order in which they were made."""
    return sorted(exclusions, key=lambda exclusion: (exclusion.at, exclusion.id))
