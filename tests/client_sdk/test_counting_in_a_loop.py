"""However fast values come, none is lost: they add up in memory, and count in their epoch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from client_sdk.client import Client
from client_sdk.consent import Consent
from client_sdk.domains import Encoded
from client_sdk.epoch import DAY, epoch_of
from client_sdk.inbox import MAX_SLOTS
from client_sdk.testing import NOON
from client_sdk.window_mask import Key
from tests.support.clock import FakeClock
from tests.support.device import changed, make_client, many_metrics, metric_text, registry_of, rows
from tests.support.windows import boolean, items, number

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
    recorder = client._engine._parts.recorder
    metric = recorder.registry.metric(name)
    with recorder.store.transaction() as tx:
        return recorder.windows.look(tx, Key(b"", metric.digest, epoch_of(metric.every, clock())))


def held_back(client: Client, action: Callable[[], None]) -> None:
    """Run *action* while the thread of *client* can write nothing."""
    assert client._engine._own is not None
    with client._engine._own().background._turn:
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

    assert client._engine._own is not None
    assert len(client._engine._own().inbox) == 0
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
