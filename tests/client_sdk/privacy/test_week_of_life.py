"""The cap of a week is of what is asked about any seven days, whenever the reports are made."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

import pytest

from client_sdk.core.epoch import DAY, HOUR
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from client_sdk.testing import FrozenClock, MemoryClient, MemoryTransport
from tests.support.device.device import dearest_span, metric_text, registry_of

NANO: Final = 10**9
MONDAY: Final = 20_003 * DAY + DAY // 2  # Unix time
ANY: Final = 'type = "boolean"\naggregate = "any"'


def test_what_closes_later_spends_no_second_week_of_the_days_that_it_is_about() -> None:
    """Law: with the default caps, four metrics of ε 4 a week tell 8 of any seven days, not 16."""
    registry = registry_of(
        *(metric_text(name, epsilon="4.0", every="7d") for name in ("first", "second")),
        *(metric_text(name, ANY, epsilon="4.0", every="7d") for name in ("third", "fourth")),
    )
    client = MemoryClient(registry, clock=FrozenClock(MONDAY))
    for _ in range(10):
        for name in registry.metrics:
            client.record(name, True)
        client.clock.advance(days=7)
    client.flush()

    assert dearest_span(client, 7) == Caps().week == 8 * NANO
    assert client.stats()["budget"] == client.stats()["recorded"] == 20
    assert "any seven days it is at most ε 8" in " ".join(client.notice().split())


def test_however_late_windows_close_no_seven_days_are_told_more_of_than_the_cap() -> None:
    """Law: by the epochs of the reports themselves, over 400 days on which a device runs or not."""
    registry = registry_of(
        *(metric_text(f"m{i}", epsilon="0.2") for i in range(4)),
        *(metric_text(f"a{i}", ANY, epsilon="0.2") for i in range(4)),
    )
    chance, told = random.Random(5), 0

    for caps in (Caps(week="2"), Caps(week="2", metric_week="0.6")):
        transport, clock = MemoryTransport(), FrozenClock(MONDAY)
        client = MemoryClient(registry, caps=caps, transport=transport, clock=clock)
        for _ in range(100):
            for name in registry.metrics:
                if chance.random() < 0.7:
                    client.record(name, True)
            client.clock.advance(days=chance.choice((1, 1, 1, 1, 2, 9)))
            client.flush()
        days = Counter(report.epoch for report in transport.reports())
        week = max(sum(days[day + i] for i in range(7)) for day in range(min(days), max(days)))
        assert week <= 10  # reports of ε 0.2
        told += week

    assert told == 20  # each cap was reached: in the first case by all metrics together


def test_the_registry_alone_bounds_a_week_of_aggregates() -> None:
    """Law: two windows of a week touch seven days at most, so the notice says 2, and is right."""
    registry = Registry.from_text(
        'schema = 1\napp = "demo"\n' + metric_text("used", ANY, every="7d")
    )
    client = MemoryClient(registry, caps=Caps(week="100"), clock=FrozenClock(MONDAY))
    chance = random.Random(6)

    for _ in range(60):
        client.record("used", True)
        client.clock.advance(days=chance.choice((1, 1, 2, 5)))

    assert dearest_span(client, 7) == 2 * NANO


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_window_that_is_seen_to_late_is_about_no_day_after_its_epoch(*, scheduled: bool) -> None:
    """Law: of one recorded on Sunday, and closed on Saturday, only the Sunday counts."""
    text = ANY + ("\notherwise = false" if scheduled else "")
    registry = registry_of(metric_text("used", text, every="7d"))
    client = MemoryClient(registry, caps=Caps(week="100"), clock=FrozenClock(MONDAY + 6 * DAY))

    for days in (6, 2, 6, 1, 7):
        client.record("used", True)
        client.clock.advance(days=days)
    client.flush()

    assert client.stats()["recorded"] == 4
    assert dearest_span(client, 7) == 2 * NANO
    assert dearest_span(client, 1) == NANO


@pytest.mark.parametrize("lost", [1, 7, 12, 23])
def test_seven_dates_of_an_honest_clock_are_within_the_cap_however_much_time_off_was_lost(
    lost: int,
) -> None:
    """Law: were trusted days to begin at the hour that was lost, the last report would pass."""
    registry = registry_of(*(metric_text(f"m{i}", epsilon="1") for i in range(3)))
    midnight = float(MONDAY // DAY * DAY)
    client = MemoryClient(registry, caps=Caps(week="1"), clock=FrozenClock(midnight))
    client.record("m0", True)
    client.clock.turn_off(seconds=lost * HOUR)
    client.clock.advance(days=8)
    client.record("m0", True)  # the clocks are read as often as not

    client.clock.advance(days=8, seconds=-HOUR / 2)
    client.record("m1", True)
    first = client.clock.now // DAY
    client.clock.advance(days=6, seconds=HOUR)
    client.record("m2", True)

    assert client.clock.now // DAY == first + 6
    assert (client.stats()["recorded"], client.stats()["budget"]) == (3, 1)


def test_a_value_counts_for_the_day_on_which_it_was_added_to_a_window_that_a_clock_keeps_open() -> (
    None
):
    """A clock that is set back keeps the epoch open while days pass."""
    registry = registry_of(metric_text("used", ANY, every="7d"))
    client = MemoryClient(registry, clock=FrozenClock(MONDAY))
    for _ in range(6):
        client.record("used", True)
        client.clock.advance(days=5)
        client.flush()  # the clocks are read
        client.clock.now -= 5 * DAY
    client.clock.advance(days=7)
    client.record("used", True)

    with client._engine.store.transaction() as tx:
        rows = tx.execute("SELECT first, last FROM costs").fetchall()
    first = int(MONDAY // DAY)
    assert rows == [(first, first + 25)]
