"""However fast values come, none is lost: they add up in memory, and count in their epoch."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from client_sdk.client import Client
from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.core.stats import Reason, Stats
from client_sdk.privacy.consent import Consent, ConsentSwitch
from client_sdk.recording.aggregation import Key
from client_sdk.recording.inbox import MAX_SLOTS, Inbox, Pending
from client_sdk.recording.inbox import __file__ as inbox_file
from client_sdk.registry.encodings import Encoded
from client_sdk.testing import NOON
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    changed,
    make_client,
    many_metrics,
    metric_text,
    registry_of,
    rows,
)
from tests.support.device.windows import boolean, items, number

MILLION: Final = 1_000_000
RUNS: Final = metric_text(
    "runs",
    f'type = "count"\nmin = 0\nmax = {8 * MILLION}\nstep = 1\nunit = "runs"\naggregate = "sum"',
    epsilon="0.01",
)


def counting_client(*metrics: str, clock: FakeClock, folder: Path | None = None) -> Client:
    return make_client(
        folder, mode="background", registry=registry_of(*metrics), clock=clock, remember=True
    )


def added_up(client: Client, name: str, clock: FakeClock) -> Encoded | None:
    """Return what the mechanism of the metric called *name* would be handed now."""
    recorder = client._engine.recorder
    metric = recorder.registry.metric(name)
    with recorder.store.transaction() as tx:
        return recorder.windows.value_so_far(
            tx, Key(b"", metric.digest, epoch_of(metric.every, clock()))
        )


def held_back(client: Client, action: Callable[[], None]) -> None:
    """Run *action* while the thread of *client* can write nothing."""
    with client._engine._state().background._turn:
        action()


def test_a_million_values_in_a_row_make_their_exact_sum() -> None:
    """Law: counting in a loop is what sums are for."""
    clock = FakeClock()
    client = counting_client(RUNS, clock=clock)

    for _ in range(MILLION):
        client.record("runs", 1)

    client.flush()
    assert added_up(client, "runs", clock) == MILLION
    assert changed(client) == {"aggregated": MILLION, "window_opened": 1}
    client.close()


def test_threads_that_count_at_once_lose_nothing() -> None:
    """Law: between threads that record and the one that writes, each value counts once."""
    clock = FakeClock()
    metrics = RUNS, number("peak", "max"), boolean("used"), items("tool", "most_common")
    client = counting_client(*metrics, clock=clock)

    def work(first: int) -> None:
        for i in range(5_000):
            client.record("runs", i % 3)
            client.record("peak", first + i % 10)
            client.record("used", i == 4_000)
            client.record("tool", "b" if i % 5 else "a")

    threads = [threading.Thread(target=work, args=(10 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.flush()

    assert client.stats()["aggregated"] == 4 * 4 * 5_000
    assert added_up(client, "runs", clock) == 4 * sum(i % 3 for i in range(5_000))
    assert [added_up(client, name, clock) for name in ("peak", "used", "tool")] == [39, 1, 1]
    client.close()


def test_the_first_second_of_a_server_loses_nothing(tmp_path: Path) -> None:
    """Law: what comes while the database is being opened waits, however much it is."""
    client = make_client(tmp_path, mode="background", registry=many_metrics(5), clock=FakeClock())

    def serve() -> None:
        for _ in range(800):
            for i in range(5):
                client.record(f"m{i}", True)

    held_back(client, serve)
    client.close()

    assert changed(client) == {"recorded": 5, "already_reported": 3_995}
    assert rows(tmp_path, "SELECT count(*) FROM reports") == [(5,)]


def test_what_is_known_to_be_reported_takes_no_room_and_no_writing(tmp_path: Path) -> None:
    """Law: a fact that is recorded again and again costs the disk nothing."""
    clock = FakeClock()
    client = make_client(tmp_path, mode="background", registry=many_metrics(2), clock=clock)
    client.record("m0", True)
    client.flush()

    for _ in range(2 * MAX_SLOTS):
        client.record("m0", False)

    assert len(client._engine._state().inbox) == 0
    assert client.stats()["already_reported"] == 2 * MAX_SLOTS
    client.record("m0", "no boolean")
    clock.advance(days=1)
    client.record("m0", True)
    client.close()
    assert (client.stats()["recorded"], client.stats()["invalid_value"]) == (2, 1)


def test_a_value_belongs_to_the_epoch_in_which_it_was_recorded(tmp_path: Path) -> None:
    """Law: midnight between recording and writing changes neither its day nor its sum."""
    clock = FakeClock()
    client = counting_client(RUNS, clock=clock, folder=tmp_path)

    def record() -> None:
        for _ in range(300):
            client.record("runs", 2)
        clock.advance(days=1)
        for _ in range(300):
            client.record("runs", 5)

    held_back(client, record)
    client.flush()

    assert [(told.epoch, told.truth) for told in client.history()] == [(NOON // DAY, "600 runs")]
    assert added_up(client, "runs", clock) == 1_500
    client.close()


def test_a_denial_forgets_what_was_added_up_in_memory(tmp_path: Path) -> None:
    """Law: of values that wait when the user says no nothing is left, and each is counted."""
    clock = FakeClock()
    client = counting_client(RUNS, clock=clock, folder=tmp_path)

    def record() -> None:
        for _ in range(1_000):
            client.record("runs", 1)
        client.set_consent(Consent.DENIED)
        client.set_consent(Consent.GRANTED)
        client.record("runs", 7)

    held_back(client, record)
    client.flush()

    assert added_up(client, "runs", clock) == 7
    assert (client.stats()["consent"], client.stats()["aggregated"]) == (1_000, 1)
    client.close()


def interrupted(inbox: Inbox, moment: int, handler: Callable[[], None]) -> list[Pending]:
    """Take all from *inbox*, and run *handler* as a signal does: before the line at *moment*."""
    left = moment

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        nonlocal left
        if frame.f_code.co_filename != inbox_file:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                handler()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return inbox.take(MAX_SLOTS)
    finally:
        sys.settrace(before)


def test_a_denial_in_a_signal_handler_forgets_only_what_came_before_it() -> None:
    """Law: before whichever line a signal says no and then yes, what it records then is kept."""
    clock, names = FakeClock(), ("runs", "peak", "low")
    client = counting_client(RUNS, number("peak", "max"), number("low", "last"), clock=clock)
    while_adding = moment = 0
    happened = True
    while happened:
        moment, happened, forgotten, adding = moment + 1, False, 0, False
        stats = Stats()
        inbox = Inbox(client._engine.recorder.slot, ConsentSwitch(Consent.GRANTED), stats)
        inbox.put("runs", 1, clock())
        assert len(inbox.take(MAX_SLOTS)) == 1  # is not forgotten, nor counted, any more
        for name in names * 2:
            inbox.put(name, 1, clock())

        def handler(inbox: Inbox = inbox) -> None:
            nonlocal happened, forgotten, adding
            happened, adding = True, inbox._holder == threading.get_ident()
            forgotten = inbox.clear()
            for name in names:
                inbox.put(name, 1, clock())

        taken = interrupted(inbox, moment, handler) + inbox.take(MAX_SLOTS)
        counts = Counter({name: 0 for name in names})
        for pending in taken:
            counts[pending.metric.name] += pending.count
        forgotten += stats.counts()[Reason.CONSENT]
        if happened:
            assert sum(counts.values()) + forgotten == 3 * len(names), moment
            assert min(counts.values()) >= 1, moment
        if adding:
            while_adding += 1
            assert set(counts.values()) == {1}, moment
    assert while_adding > 10
    client.close()
