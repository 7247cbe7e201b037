"""Devices that go on until everything they sealed is acknowledged, and log each byte of it."""

from __future__ import annotations

import http.client
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeAlias

from client_sdk.registry import Registry
from tests.support.crowds.uploads import WRITE_KEY, bearer
from tests.support.patience import PATIENCE, wait_for

from .reports import REGISTRY, upload_of

NO_ANSWER: Final = 0  # in place of a status
TRANSIENT: Final = (NO_ANSWER, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
TIMEOUT: Final = 15.0  # seconds; the collector itself gives the store up before
_HEADERS: Final = {**bearer(WRITE_KEY), "Content-Type": "application/json", "Connection": "close"}


@dataclass
class Log:
    """What the devices enqueued, and what they were told."""

    enqueued: dict[bytes, bytes] = field(default_factory=dict)  # bodies by upload id
    acknowledged: set[bytes] = field(default_factory=set)
    duplicates: int = 0  # acknowledgements that named an upload known
    answers: Counter[int] = field(default_factory=Counter)  # tries, by status
    slowest: float = 0.0  # seconds of a try
    gap: float = 0.0  # the longest time in seconds between two acknowledgements
    last: float = 0.0  # when there was one, on the monotonic clock

    @property
    def final(self) -> dict[int, int]:
        """Answers that are neither an acknowledgement nor mean: send again."""
        kept = (HTTPStatus.ACCEPTED, *TRANSIENT)
        return {status: n for status, n in self.answers.items() if status not in kept}


def post(port: int, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Send *body* over a connection of its own; return status and answer, or NO_ANSWER."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("POST", "/v1/reports", body, headers or _HEADERS)
        with connection.getresponse() as response:
            return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return NO_ANSWER, b""
    finally:
        connection.close()


Send: TypeAlias = Callable[[int, bytes], tuple[int, bytes]]  # to a port: status and answer


class Fleet:
    """So many devices, each a thread that seals *rate* uploads a second and sends them in order."""

    def __init__(
        self,
        ports: Callable[[], Sequence[int]],
        seed: int,
        *,
        devices: int = 20,
        rate: float = 4.0,
        most: int = 1_000_000,
        registry: Registry = REGISTRY,
        send: Send = post,
    ) -> None:
        """Send to any of *ports* by *send*; seal *most* uploads in all."""
        self.log, self._post = Log(), send
        self._ports, self._seed, self._devices = ports, seed, devices
        self._pause, self._most, self._registry = 1 / rate, most, registry
        self._serial, self._lock = itertools.count(), threading.Lock()
        self._enough = threading.Event()
        self._deadline = float("inf")

    @contextmanager
    def sending(self) -> Iterator[Log]:
        """Seal and send while the block runs; afterwards send until all is acknowledged."""
        threads = [
            threading.Thread(target=self._live, args=(number,), daemon=True)
            for number in range(self._devices)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self.log
        except BaseException:
            self._deadline = 0.0
            raise
        finally:
            self._deadline = min(self._deadline, time.monotonic() + 5 * PATIENCE)
            self._enough.set()
            for thread in threads:
                thread.join(6 * PATIENCE + 2 * TIMEOUT)
        assert self.log.enqueued.keys() == self.log.acknowledged, self.log.answers

    def wait_for(self, acknowledged: int) -> None:
        """Return when so many uploads are acknowledged."""
        wait_for(lambda: len(self.log.acknowledged) >= acknowledged, lambda: self.log.answers)

    def _live(self, number: int) -> None:
        chance = random.Random(f"{self._seed} device {number}")
        waiting: list[bytes] = []
        while not self._enough.is_set():
            self._seal(chance, waiting)
            self._send(chance, waiting)
            self._enough.wait(self._pause * (0.5 + chance.random()))
        while waiting and time.monotonic() < self._deadline:
            self._send(chance, waiting)

    def _seal(self, chance: random.Random, waiting: list[bytes]) -> None:
        with self._lock:
            serial = next(self._serial)
            if serial >= self._most:
                return
            upload_id, body = upload_of(serial, chance, self._registry)
            self.log.enqueued[upload_id] = body
        waiting.append(upload_id)

    def _send(self, chance: random.Random, waiting: list[bytes]) -> None:
        """Send what waits, the oldest first, up to the first that must be sent again."""
        while waiting:
            began = time.monotonic()
            status, answer = self._post(chance.choice(self._ports()), self.log.enqueued[waiting[0]])
            self._note(status, answer, waiting[0], began)
            if status != HTTPStatus.ACCEPTED:
                time.sleep(0.05 + 0.2 * chance.random())
                return
            waiting.pop(0)

    def _note(self, status: int, answer: bytes, upload_id: bytes, began: float) -> None:
        log, now = self.log, time.monotonic()
        with self._lock:
            log.answers[status] += 1
            log.slowest = max(log.slowest, now - began)
            if status == HTTPStatus.ACCEPTED:
                log.acknowledged.add(upload_id)
                log.duplicates += b'"duplicate":true' in answer
                log.gap = max(log.gap, now - (log.last or now))
                log.last = now
