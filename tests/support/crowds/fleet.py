"""A fleet of real devices over real HTTP, and the exact tallies that what they sent must give."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from client_sdk.client import Client
from client_sdk.core.errors import TransportError
from client_sdk.mechanisms import FrequencyOracle
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.upload.schedule import MAX_BACKOFF
from client_sdk.upload.transport import Answer, RequestsTransport, Transport
from collector.core.cells import segment_text, split_source
from collector.intake.wire import JSON, decode
from collector.storage.protocols import TallyStore
from tests.support.device.clock import FakeClock
from tests.support.store.stored import tallies

# (metric, epoch, segment, index) to count, as stored: index 0 counts reports
Tallies: TypeAlias = dict[tuple[str, int, str, int], int]

MAX_TRIES = 50  # of an upload; with three of ten lost, fewer than 1 in 10^25 need more


class RecordingTransport:
    """Keeps each upload by its id; loses *lost_requests* and *lost_answers* of tries at random."""

    def __init__(
        self,
        inner: Transport,
        chance: random.Random,
        lost_requests: float = 0.0,
        lost_answers: float = 0.0,
    ) -> None:
        self._inner, self._chance = inner, chance
        self._lost_requests, self._lost_answers = lost_requests, lost_answers
        self.bodies: dict[bytes, set[bytes]] = {}
        self.duplicates = 0

    def send(self, body: bytes, timeout: float) -> Answer:
        self.bodies.setdefault(decode(body, JSON).id, set()).add(body)
        if self._chance.random() < self._lost_requests:
            raise TransportError("the request was lost")
        answer = self._inner.send(body, timeout)
        assert answer.status == 202, answer
        self.duplicates += b'"duplicate":true' in answer.body
        if self._chance.random() < self._lost_answers:
            raise TransportError("the answer was lost")
        return answer


def recording(
    url: str, write_key: str, lost_requests: float = 0.0, lost_answers: float = 0.0
) -> RecordingTransport:
    """Return a transport to *url* whose losses are the same in every run."""
    inner = RequestsTransport(url, write_key)
    return RecordingTransport(inner, random.Random(7), lost_requests, lost_answers)


def send_reports(
    people: range, registry: Registry, transport: Transport, now: float, folder: Path
) -> None:
    """Let a device of each of *people* record every metric and upload until all is acknowledged.

    Every tenth keeps its data in a file below *folder*, the others in memory.
    """
    for person in people:
        clock = FakeClock(now)
        platform: dict[str, str] = [{}, {"platform": "mac"}, {"platform": "linux"}][person % 3]
        with Client(
            "http://127.0.0.1",
            "",
            registry,
            consent="granted",
            data_dir=None if person % 10 else folder / str(person),
            segment=platform,
            transport=transport,
            clock=clock,
            mode="manual",
            opt_outs=NoOptOuts(),
        ) as client:
            for metric in registry:
                client.record(metric.name, _value(metric, person))
            for _ in range(MAX_TRIES):
                client.flush()
                clock.advance(seconds=MAX_BACKOFF + 1)
                if client.stats()["uploaded"] == len(registry.metrics):
                    break
            assert client.stats()["uploaded"] == len(registry.metrics), client.stats()


def tallies_of(bodies: Iterable[bytes], registry: Registry, content_type: str = JSON) -> Tallies:
    """Return the tallies of *bodies* by the slow, obvious way: one payload after another."""
    cells: Counter[tuple[str, int, str, int]] = Counter()
    for body in bodies:
        upload = decode(body, content_type)
        for column in upload.columns:
            metric = registry.by_digest[column.metric]
            text = segment_text(metric, upload.segment)
            for payload in metric.mechanism.split(column.payloads):
                for index, count in _cells_of(metric, payload):
                    cells[metric.name, column.epoch, text, index] += count
    return _nonzero(cells)


def stored_tallies(
    storage: TallyStore, registry: Registry, bodies: Iterable[bytes], content_type: str = JSON
) -> Tallies:
    """Return what *storage* holds of every metric in all epochs that occur in *bodies*.

    Sources are added up: a body does not say how it came.
    """
    epochs = {
        (column.metric, column.epoch)
        for body in bodies
        for column in decode(body, content_type).columns
    }
    cells: Counter[tuple[str, int, str, int]] = Counter()
    for metric in registry:
        wanted = sorted(epoch for digest, epoch in epochs if digest == metric.digest)
        for cell, vectors in tallies(storage, metric.digest, wanted).items():
            _, segment = split_source(cell.segment)
            for vector in vectors:
                for index, count in enumerate(_unpacked(vector)):
                    cells[metric.name, cell.epoch, segment, index] += count
    return _nonzero(cells)


def _cells_of(metric: Metric, payload: bytes) -> Sequence[tuple[int, int]]:
    """Return what one report adds, by index."""
    mechanism = metric.mechanism
    if isinstance(mechanism, FrequencyOracle):
        return [(0, 1), *((item + 1, 1) for item in mechanism.supports(payload))]
    assert isinstance(mechanism, DiscreteLaplace)
    position = int(mechanism.decode(payload))
    high, low = divmod(position * position, 1 << 32)
    return [(0, 1), (1, position), (2, low), (3, high)]


def _unpacked(vector: bytes) -> list[int]:
    return [int.from_bytes(vector[i : i + 8], "big", signed=True) for i in range(0, len(vector), 8)]


def _nonzero(cells: Counter[tuple[str, int, str, int]]) -> Tallies:
    return {cell: count for cell, count in cells.items() if count}


def _value(metric: Metric, person: int) -> object:
    if metric.type == "boolean":
        return person % 4 == 0
    labels = getattr(metric.domain, "labels", None)
    return labels[person % len(labels)] if labels else 20 + person % 60
