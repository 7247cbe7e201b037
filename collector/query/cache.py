"""What was worked out, kept in the memory of a process: bounded in bytes, and never stale.

Bodies of answers that cannot change any more are kept by what was asked.  Of what can change, pages
keep answers by the tallies that they rest on, and charts by the rows that they show: ``reader``
and the pages say how.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from fractions import Fraction
from threading import Lock
from typing import Any, Final, Generic, TypeVar

import msgspec

from client_sdk import __version__
from client_sdk.core.dataclass import as_dict
from client_sdk.registry.metric import Metric, Sample

from ..core.config import RelayTerms
from .plan import Plan

T = TypeVar("T")
MOST_BYTES: Final = 32 * 1024 * 1024  # of all that one cache keeps
_PARTS: Final = 8  # entries that fill it; what is longer is computed each time
LARGEST: Final = MOST_BYTES // _PARTS

_encoder = msgspec.json.Encoder(order="sorted")


def key_of(plan: Plan, form: str, contents: str, relay: RelayTerms) -> bytes | None:
    """Return what an answer is kept under, None if it could still change.

    The epochs are in it, not the words that were asked with: "30d" means others tomorrow.  So is
    all of a metric that an answer tells, and our own version: a browser keeps the key for longer
    than this process runs.

    Args: form: the name of the answer's form.  contents: what the store's tallies are known by,
          so that nothing is answered from before they were lost or restored; "" if that is unknown.
          relay: what is declared of it now.
    """
    if not plan.is_settled or not contents:
        return None
    windows = [
        (
            reading.epochs[0],
            reading.epochs[-1],
            reading.earlier and (reading.earlier[0], reading.earlier[-1]),
            len(reading.epochs),
            reading.version,
            *map(_published, reading.definitions),
        )
        for reading in plan.readings
    ]
    question = msgspec.structs.replace(plan.query, date_range="")
    declared = relay.operator, str(relay.colluding)
    parts = [__version__, contents, question, windows, form, plan.notes, declared, plan.excluded]
    return hashlib.sha256(_encoder.encode(parts)).digest()


def _published(metric: Metric) -> tuple[Any, ...]:
    """Return what an answer depends on beside the store; the digest stands for most of it."""
    words = metric.address, metric.title, metric.question, metric.segments
    limits = (
        metric.min_reports,
        metric.expected_devices,
        str(metric.need),
        metric.shape,
        metric.sample,
    )
    return metric.digest.hex(), *words, *limits


def _plain(value: Any) -> object:
    """Return *value* as what can be packed.  Raises TypeError of what is no data."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, range):
        return value.start, value.stop, value.step
    if isinstance(value, Sample):
        return as_dict(value)
    raise TypeError(type(value))


_packer = msgspec.msgpack.Encoder(enc_hook=_plain, order="sorted")  # every float exactly


def packed(value: object) -> bytes | None:
    """Return *value* in bytes that only what is equal has; None if it holds what cannot be told.

    That is a function, an integer of more than 64 bits, or text that is no text.
    """
    try:
        return _packer.encode(value)
    except (OverflowError, TypeError, ValueError):
        return None


class Cache(Generic[T]):
    """Values by key, the least recently used forgotten first.  Safe among threads."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        """Keep *most* bytes, and no entry of more than an eighth of them."""
        self._entries: OrderedDict[bytes, tuple[T, int]] = OrderedDict()
        self._most, self._size = most, 0
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Bytes of all that is kept."""
        return self._size

    def get(self, key: bytes | None) -> T | None:
        """Return the value kept under *key*, or None."""
        with self._lock:
            if key is None or key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: bytes | None, value: T, size: int) -> None:
        """Keep *value*, of *size* bytes, under *key*; not where it is None or the value is long."""
        if key is None or size > self._most // _PARTS:
            return
        with self._lock:
            _, before = self._entries.pop(key, (None, 0))
            self._size += size - before
            self._entries[key] = value, size
            while self._size > self._most:
                _, (_, forgotten) = self._entries.popitem(last=False)
                self._size -= forgotten
