"""Append and fold uploads without HTTP, by the collector's own steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from collector.core.catalog import Catalog
from collector.core.cells import FACTS
from collector.core.entry import encode
from collector.intake.validation import judge
from collector.intake.wire import JSON, decode
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.worker import Pace, Worker

from .reports import REGISTRY

_CATALOG: Final = Catalog([REGISTRY])
_AT_ONCE: Final = 100  # uploads a round trip


def sealed_of(body: bytes) -> SealedUpload:
    """Return what the intake appends for *body*, all of whose reports it must accept.

    Its id, which is chance, decides how it is said to have come: a repeat says the same.
    """
    upload = decode(body, JSON)
    source = frozenset(fact for bit, fact in enumerate(FACTS) if upload.id[-1] >> bit & 1)
    verdict = judge(upload, _CATALOG, upload.sealed, source=source)
    assert not verdict.rejected
    return SealedUpload(upload.id, upload.sealed, encode(verdict.accepted), verdict.reports)


def append(storage: RedisStorage, bodies: Iterable[bytes]) -> int:
    """Append *bodies*; return how many of them were seen for the first time."""
    sealed = [sealed_of(body) for body in bodies]
    groups = [sealed[first : first + _AT_ONCE] for first in range(0, len(sealed), _AT_ONCE)]
    return sum(sum(storage.append_many(group)) for group in groups)


def worker(storage: RedisStorage, min_idle_ms: int = 0) -> Worker:
    """Return a worker that takes what others hold after *min_idle_ms*: at once, if 0."""
    mechanisms = {digest: metric.mechanism for digest, metric in REGISTRY.by_digest.items()}
    every = {digest: metric.every for digest, metric in REGISTRY.by_digest.items()}
    pace = Pace(min_idle_ms=min_idle_ms, most_entries=16)
    return Worker(storage, mechanisms, every, pace=pace)


def fold(storage: RedisStorage) -> None:
    """Fold all that is there, whoever claimed it."""
    folder = worker(storage)
    while folder.step():
        pass
