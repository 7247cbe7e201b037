"""When the uploader tries again: never early, never all at once, never silenced for good."""

from __future__ import annotations

import pytest

from client_sdk.core.epoch import DAY
from client_sdk.core.errors import TransportError
from client_sdk.upload.schedule import FIRST_BACKOFF, FIRST_SPREAD, MAX_BACKOFF, MAX_RETRY_AFTER
from client_sdk.upload.transport import Answer
from tests.support.device.device_desk import Desk
from tests.support.device.device_transport import ScriptedTransport
from tests.support.enumeration.seeded import SeededRandomness

LOST = TransportError("lost")


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
    transport = ScriptedTransport([failure])
    desk = Desk(transport, Extreme(largest=True))
    desk.put(1)
    desk.flush()

    tries = [tries_after(desk, transport, seconds) for seconds in (FIRST_BACKOFF - 1, 1)]

    assert tries == [1, 2]


def test_nothing_is_sent_before_a_retry_after_is_over() -> None:
    transport = ScriptedTransport([Answer(503, retry_after=50_000)])
    desk = Desk(transport)
    desk.put(1)
    desk.flush()
    desk.clock.advance(seconds=49_999)
    desk.flush()
    early = len(transport.sent)

    desk.clock.advance(seconds=50_000 // 4 + 1)
    desk.flush()

    assert (early, len(transport.sent)) == (1, 2)


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
