"""The schedule: chance times hours apart, kept across restarts; and tries after a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from client_sdk.core.epoch import DAY, HOUR
from client_sdk.core.errors import TransportError
from client_sdk.storage.store import Store
from client_sdk.upload.schedule import (
    FIRST_BACKOFF,
    FIRST_REST,
    FIRST_SPREAD,
    MAX_BACKOFF,
    MAX_RETRY_AFTER,
    UPLOAD_EVERY,
)
from client_sdk.upload.transport import Answer
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import ScriptedTransport
from tests.support.enumeration.seeded import SeededRandomness

LOST = TransportError("lost")
MANY = 300  # passes; of the quarter hours of a fair plan none is then missed, but once in 10^7


def restarted(desk: Desk, transport: ScriptedTransport, seed: bytes = b"again") -> Desk:
    """Return a desk of another process, over the same database and clock."""
    other = Desk(transport, SeededRandomness(seed), desk.store, desk.clock)
    return other


def test_without_a_database_nothing_is_due_and_none_is_made(tmp_path: Path) -> None:
    """Law: asking for the time touches no disk before there is a report."""
    desk = Desk(ScriptedTransport(), store=Store(tmp_path))

    assert desk.uploader.wait(desk.clock()) > 0
    assert list(tmp_path.iterdir()) == []


def test_the_first_pass_waits_for_hours_after_the_first_report() -> None:
    """Law: neither the installation nor the start of an application shows as an upload."""
    desk = Desk(transport := ScriptedTransport())
    desk.put(1)

    wait = desk.uploader.wait(desk.clock())
    desk.clock.advance(seconds=wait - 1)
    desk.uploader.run(60)
    early = len(transport.sent)
    desk.clock.advance(seconds=1)
    desk.uploader.run(60)

    assert UPLOAD_EVERY / 2 <= wait <= 1.5 * UPLOAD_EVERY
    assert (early, len(transport.sent)) == (0, 1)


def test_passes_are_planned_evenly_between_two_and_six_hours_ahead() -> None:
    """Law: after a pass the next one is due after U(2 h, 6 h), whatever was sent."""
    desk = Desk(ScriptedTransport())
    desk.put(1)

    waits = []
    for _ in range(MANY):
        desk.clock.advance(seconds=desk.uploader.wait(desk.clock()))
        desk.uploader.run(60)
        waits.append(desk.uploader.wait(desk.clock()))

    assert min(waits) >= 2 * HOUR
    assert max(waits) <= 6 * HOUR
    assert {int((wait - 2 * HOUR) // (HOUR / 4)) for wait in waits} >= set(range(16))


def test_a_restart_keeps_the_time_of_the_next_pass() -> None:
    """Law: the plan is in the database, so an app that is opened often uploads no oftener."""
    desk = Desk(transport := ScriptedTransport())
    desk.put(1)
    planned = desk.uploader.wait(desk.clock())

    other = restarted(desk, transport)

    assert other.uploader.wait(desk.clock()) == planned


def test_of_two_processes_one_makes_the_pass() -> None:
    """Law: a pass is claimed in the database before anything is sent."""
    desk = Desk(transport := ScriptedTransport())
    other = restarted(desk, transport)
    desk.put(1)
    wait = max(desk.uploader.wait(desk.clock()), other.uploader.wait(desk.clock()))
    desk.clock.advance(seconds=wait)
    assert other.uploader.wait(desk.clock()) == 0

    desk.uploader.run(60)
    desk.put(1)
    other.uploader.run(60)

    assert (len(transport.sent), desk.waiting()) == (1, 1)


def test_after_a_failure_the_next_try_comes_when_its_waiting_time_is_over() -> None:
    """Law: a failed pass is repeated after its backoff, not only at the next planned time."""
    desk = Desk(transport := ScriptedTransport([503, 503]))
    desk.put(1)
    desk.flush()

    desk.clock.advance(seconds=desk.uploader.wait(desk.clock()))
    desk.uploader.run(60)

    assert len(transport.sent) == 2


def test_a_flush_puts_the_next_pass_off() -> None:
    """Law: there are no two uploads where one does."""
    desk = Desk(ScriptedTransport())
    desk.put(1)
    desk.clock.advance(seconds=desk.uploader.wait(desk.clock()))
    assert desk.uploader.wait(desk.clock()) == 0

    desk.flush()

    assert desk.uploader.wait(desk.clock()) >= UPLOAD_EVERY / 2


@pytest.mark.parametrize("damage", [b"\xff\x00", "soon", -1, 1e300, float("inf"), None])
def test_a_plan_that_was_damaged_is_made_anew(damage: object) -> None:
    """Law: no content of the database can stop a device from sending, or make it raise."""
    desk = Desk(transport := ScriptedTransport())
    desk.put(1)
    with desk.store.transaction() as tx:
        for key in ("next_upload", "not_before", "failures"):
            tx.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, damage))

    desk.flush()

    assert len(transport.sent) == 1
    assert desk.uploader.wait(desk.clock()) >= UPLOAD_EVERY / 2


@pytest.mark.parametrize("days", [-4_000, 4_000])
def test_a_clock_that_was_set_ends_the_wait(days: int) -> None:
    """Law: a plan further ahead than any that is ever made does not hold a device back."""
    desk = Desk(transport := ScriptedTransport())
    desk.put(1)
    desk.uploader.wait(desk.clock())

    desk.clock.advance(seconds=days * DAY)
    wait = desk.uploader.wait(desk.clock())
    desk.clock.advance(seconds=wait)
    desk.uploader.run(60)

    assert wait <= FIRST_REST
    assert desk.counts() in ({"uploaded": 1}, {"too_old": 1})
    assert len(transport.sent) == (1 if days < 0 else 0)


class Extreme(SeededRandomness):
    """Draws the largest number for waiting times, or the smallest; upload ids are as ever."""

    def __init__(self, *, largest: bool) -> None:
        super().__init__(b"extreme")
        self._largest = largest

    def uniform(self, n: int) -> int:
        if n >= 1 << 64:
            return super().uniform(n)
        return n - 1 if self._largest else 0


def tries_after(desk: Desk, transport: ScriptedTransport, seconds: float) -> int:
    desk.clock.advance(seconds=seconds)
    desk.flush()
    return len(transport.sent)


@pytest.mark.parametrize("failure", [LOST, 503, 401, 302, RuntimeError("broken")])
def test_no_failure_is_met_again_before_its_waiting_time_is_over(failure: Exception | int) -> None:
    """Law: an application that is restarted in a loop does not hammer a collector that fails."""
    transport = ScriptedTransport([failure])
    desk = Desk(transport, Extreme(largest=True))
    desk.put(1)
    desk.flush()

    tries = [
        tries_after(restarted(desk, transport), transport, seconds)
        for seconds in (FIRST_BACKOFF - 1, 1)
    ]

    assert tries == [1, 2]


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        (0, 0, FIRST_BACKOFF),
        (1, 1, 1 + FIRST_BACKOFF),
        (50_000, 50_000, 62_500),
        (DAY, MAX_RETRY_AFTER, MAX_RETRY_AFTER * 5 // 4),
        (1e300, MAX_RETRY_AFTER, MAX_RETRY_AFTER * 5 // 4),
        (-1, 0, FIRST_BACKOFF),
        (float("nan"), 0, FIRST_BACKOFF),
    ],
)
def test_a_device_never_comes_back_to_the_second(asked: float, least: float, most: float) -> None:
    """Law: a wait that tells devices apart is blurred by chance, by a quarter of it or more."""
    waits = []
    for largest in (False, True):
        desk = Desk(ScriptedTransport([Answer(503, retry_after=asked)]), Extreme(largest=largest))
        desk.put(1)
        desk.flush()
        waits.append(desk.uploader.wait(desk.clock()))

    assert waits == [least, most]
    assert most <= DAY


def test_a_collector_cannot_silence_a_device_for_more_than_a_day() -> None:
    """Law: however often it asks for however long, no wait is longer than a day."""
    transport = ScriptedTransport([Answer(429, retry_after=1e300)] * 20)
    desk = Desk(transport, Extreme(largest=True))
    desk.put(1)
    desk.flush()

    waits = []
    for _ in range(15):
        waits.append(desk.uploader.wait(desk.clock()))
        tries_after(desk, transport, waits[-1])

    assert max(waits) == DAY
    assert min(waits) >= MAX_RETRY_AFTER


def test_the_longest_wait_doubles_with_every_failure_up_to_its_ceiling() -> None:
    transport = ScriptedTransport([LOST] * 20)
    desk = Desk(transport, Extreme(largest=True))
    desk.put(1)
    desk.flush()
    ceilings = [min(MAX_BACKOFF, FIRST_BACKOFF * 2**i) for i in range(15)]

    tries = [
        (tries_after(desk, transport, ceiling - 1), tries_after(desk, transport, 1))
        for ceiling in ceilings
    ]

    assert tries == [(i + 1, i + 2) for i in range(15)]
    assert ceilings[-1] == MAX_BACKOFF


def test_from_two_failures_on_the_schedule_spreads_over_hours_and_the_application_need_not() -> (
    None
):
    """Law: a fleet without a collector comes back over hours; who asks for a try gets one soon."""
    transport = ScriptedTransport([LOST] * 6)
    desk = Desk(transport, Extreme(largest=True))
    desk.put(1)

    waits = []
    for failures in range(1, 6):
        assert tries_after(desk, transport, FIRST_BACKOFF * 2 ** max(0, failures - 2)) == failures
        waits.append(desk.uploader.wait(desk.clock()))

    hours = [FIRST_SPREAD, 2 * FIRST_SPREAD, MAX_BACKOFF, MAX_BACKOFF]
    assert waits == [FIRST_BACKOFF, *hours]


def test_the_shortest_wait_is_none_so_that_devices_spread_out() -> None:
    transport = ScriptedTransport([LOST] * 3)
    desk = Desk(transport, Extreme(largest=False))
    desk.put(1)

    for _ in range(4):
        desk.flush()

    assert (len(transport.sent), desk.waiting()) == (4, 0)


def test_a_success_ends_the_doubling() -> None:
    transport = ScriptedTransport([LOST, LOST, LOST, 202, LOST])
    desk = Desk(transport, Extreme(largest=True))
    desk.put(1)
    for _ in range(4):
        tries_after(desk, transport, MAX_BACKOFF)
    desk.put(1)
    desk.flush()

    assert tries_after(desk, transport, FIRST_BACKOFF) == 6


def test_a_clock_that_was_set_back_does_not_prolong_a_wait() -> None:
    transport = ScriptedTransport([503])
    desk = Desk(transport)
    desk.put(1)
    desk.flush()

    tries = tries_after(desk, transport, -400 * DAY)

    assert tries == 2
