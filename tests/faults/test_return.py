"""How a fleet comes back after an outage, by the SDK's own schedule on a virtual clock."""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from typing import Any

import pytest

from client_sdk.core.epoch import DAY, HOUR
from client_sdk.upload.schedule import UPLOAD_EVERY, Schedule
from tests.faults.conftest import Tell
from tests.support.enumeration.seeded import SeededRandomness

DEVICES = 6_000
MINUTE = 60  # seconds
OUTAGE = 30 * MINUTE
START = 20_000 * DAY  # Unix time of the outage; every device has run for a day
USUAL = DEVICES * MINUTE / UPLOAD_EVERY  # passes a minute
MOST = 2  # times the usual, in any minute; all who wait at once would be 30 times


class Device:
    """The schedule of one device, with its own small database."""

    def __init__(self, number: int) -> None:
        self._tx: Any = sqlite3.connect(":memory:")  # all of a transaction that a schedule uses
        self._tx.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value)")
        self._schedule = Schedule(SeededRandomness(f"device {number}".encode()))
        self._schedule.plan(self._tx, START - DAY)

    def next(self, now: float) -> float:
        """Return when the next pass is due, after *now*."""
        return now + max(0.001, self._schedule.wait(now))

    def send(self, now: float, answered: bool) -> None:
        """Make a pass, as an uploader does."""
        if self._schedule.may_depart(now):
            self._schedule.plan(self._tx, now)
        self._schedule.claim(self._tx, now, b"upload")
        if answered:
            self._schedule.release(self._tx)
        else:
            self._schedule.postpone(self._tx, now, 0.0)

    def close(self) -> None:
        self._tx.close()


@pytest.mark.faults
def test_a_fleet_does_not_come_back_all_at_once(tell: Tell) -> None:
    """Each waits a random part of a time that grows with the outage, so the return is spread."""
    devices = [Device(number) for number in range(DEVICES)]
    due = [(device.next(START - DAY), number) for number, device in enumerate(devices)]
    heapq.heapify(due)
    passes: Counter[int] = Counter()  # by minutes after the outage
    while due[0][0] < START + OUTAGE + HOUR:
        now, number = heapq.heappop(due)
        passes[int((now - START - OUTAGE) // MINUTE)] += 1
        devices[number].send(now, answered=not START <= now < START + OUTAGE)
        heapq.heappush(due, (devices[number].next(now), number))
    for device in devices:
        device.close()

    after = [passes[minute] / USUAL for minute in range(60)]
    tell(
        f"return of {DEVICES:,} devices after 30 minutes: {max(after):.1f} x the usual passes "
        f"in the busiest minute, {sum(after[:10]) / 10:.1f} x in the first ten"
    )
    assert max(after) < MOST
