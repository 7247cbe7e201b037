"""Answers that cannot change any more, kept in the memory of a process."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Any, Final

import msgspec

from client_sdk import __version__
from client_sdk.registry.metric import Metric

from ..core.config import RelayTerms
from .plan import Plan

MOST_BYTES: Final = 32 * 1024 * 1024  # of all answers together
LARGEST: Final = MOST_BYTES // 8  # of one; a longer one is computed each time

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
    parts = [__version__, contents, question, windows, form, plan.notes, declared]
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


class Cache:
    """Bodies by key, the least recently used forgotten first.  Safe among threads."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, key: bytes | None) -> bytes | None:
        """Return the body kept under *key*, or None."""
        with self._lock:
            if key is None or key not in self._bodies:
                return None
            self._bodies.move_to_end(key)
            return self._bodies[key]

    def put(self, key: bytes | None, body: bytes) -> None:
        """Keep *body* under *key*; nothing where it is None or the body is long."""
        if key is None or len(body) > LARGEST:
            return
        with self._lock:
            self._size += len(body) - len(self._bodies.pop(key, b""))
            self._bodies[key] = body
            while self._size > MOST_BYTES:
                _, forgotten = self._bodies.popitem(last=False)
                self._size -= len(forgotten)
