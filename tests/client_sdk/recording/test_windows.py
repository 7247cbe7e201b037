"""Windows of aggregation: what becomes of the values of an epoch, and what no one learns."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from client_sdk.client import Client
from client_sdk.core.epoch import DAY
from client_sdk.core.errors import EntropyError
from client_sdk.core.limits import MAX_REPORT_AGE
from client_sdk.privacy.caps import Caps
from client_sdk.recording.aggregation import NONCE_SIZE, TAG_SIZE, Key, Today, Windows, mask, unmask
from client_sdk.registry import Registry
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.secret import SECRET_FILE, Secret
from client_sdk.storage.store import Store
from client_sdk.testing import MemoryClient
from tests.support.device.clock import NOON, FakeClock
from tests.support.device.device import (
    alter,
    bytes_on_disk,
    changed,
    make_client,
    registry_of,
    rows,
)
from tests.support.device.device_transport import NoEntropy, ScriptedTransport
from tests.support.device.windows import REGISTRY, SCHEDULED, boolean, items, number, open_windows
from tests.support.enumeration.seeded import SeededRandomness


def told(client: Client) -> list[tuple[str, int, str]]:
    return [(each.metric, each.epoch, each.truth) for each in client.history()]


def test_the_values_of_an_epoch_make_one_report_when_it_is_over(tmp_path: Path) -> None:
    """Law: a count a day costs one report a day, of the day on which it was counted."""
    clock = FakeClock()
    client = make_client(tmp_path, registry=REGISTRY, clock=clock, remember=True)
    for value in (1, 0.25, 40):
        client.record("edits", value)
        client.record("peak", value)
    for item in ("b", "a", "b"):
        client.record("tool", item)
        client.record("mode", item)
    during = changed(client), rows(tmp_path, "SELECT count(*) FROM charges")

    clock.advance(days=7)
    client.flush()

    assert during == ({"aggregated": 12, "window_opened": 4}, [(0,)])
    assert sorted(told(client)) == [
        ("edits", 20_000, "41.25 files"),
        ("mode", 20_000, "b"),
        ("peak", 480_012, "40 files"),
        ("tool", 2_857, "b"),
    ]
    assert changed(client) == during[0] | {"recorded": 4, "window_closed": 4, "uploaded": 4}
    client.close()


def test_the_background_thread_closes_windows_and_opens_scheduled_ones(tmp_path: Path) -> None:
    """Law: a client that is never given a value reports all the same, from its thread."""
    clock = FakeClock()
    make_client(tmp_path, registry=SCHEDULED, clock=clock).watch()
    clock.advance(days=1)

    client = make_client(tmp_path, registry=SCHEDULED, clock=clock, mode="background")
    client.watch()
    client.close()

    assert changed(client) == {"recorded": 1, "window_opened": 1, "window_closed": 1}
    assert open_windows(tmp_path) == 2


def test_a_report_of_a_window_ages_with_its_epoch(tmp_path: Path) -> None:
    """Law: its report waits no longer than the collector takes it, however late it was made."""
    clock = FakeClock()
    down = ScriptedTransport([503] * 9)
    make_client(tmp_path, registry=REGISTRY, clock=clock).record("edits", 1)
    clock.advance(days=MAX_REPORT_AGE)
    make_client(tmp_path, registry=REGISTRY, clock=clock, transport=down)
    clock.advance(days=1)

    with make_client(tmp_path, registry=REGISTRY, clock=clock, transport=down) as client:
        client.flush()

    assert changed(client) == {"too_old": 1}
    assert down.sent == []


def test_a_budget_that_is_spent_refuses_the_report_and_the_window_is_over(tmp_path: Path) -> None:
    """Law: a window that cannot be reported is not kept until it can."""
    clock = FakeClock()
    client = make_client(tmp_path, registry=REGISTRY, clock=clock, caps=Caps(report="0.001"))
    client.record("edits", 1)
    clock.advance(days=1)

    client.flush()

    counts = {"aggregated": 1, "window_opened": 1, "window_closed": 1, "budget": 1}
    assert changed(client) == counts
    assert open_windows(tmp_path) == 0
    client.close()


def test_windows_of_another_registry_stay_until_they_are_old(tmp_path: Path) -> None:
    """Law: of two versions of an application side by side, none drops what the other adds up."""
    clock, other = FakeClock(), registry_of(number("edits", "max"))
    make_client(tmp_path, registry=REGISTRY, clock=clock).record("edits", 1)
    clock.advance(days=MAX_REPORT_AGE)

    with make_client(tmp_path, registry=other, clock=clock) as client:
        young = open_windows(tmp_path), changed(client)
        clock.advance(days=1)
        client.flush()

        assert (young, changed(client)) == ((1, {}), {"window_dropped": 1})


def test_a_scheduled_metric_that_expired_opens_no_more_windows(tmp_path: Path) -> None:
    """Law: the window of its last day is still reported, and none is opened after it."""
    clock = FakeClock()
    last = "2024-10-04"  # the day of the clock
    registry = registry_of(number("crashes", "sum", "otherwise = 0", expires=last))
    client = make_client(tmp_path, registry=registry, clock=clock)
    client.watch()

    for _ in range(3):
        clock.advance(days=1)
        client.flush()

    counts = {"window_opened": 1, "window_closed": 1, "recorded": 1, "uploaded": 1}
    assert changed(client) == counts
    client.close()


def test_permanent_responses_are_of_the_aggregate(tmp_path: Path) -> None:
    """Law: the same most common item gives the same payload, charged once."""
    text = items("tool", "most_common").replace('"fresh"', '"permanent"')
    clock = FakeClock()
    client = make_client(tmp_path, registry=registry_of(text), clock=clock)
    for values in ("aab", "bcaa"):
        for value in values:
            client.record("tool", value)
        clock.advance(days=1)
    client.flush()

    nanos = [nano for (nano,) in rows(tmp_path, "SELECT nano FROM costs ORDER BY first")]
    assert nanos[0] > 0 == nanos[1]
    assert len(set(rows(tmp_path, "SELECT payload FROM sent"))) == 1
    client.close()


def _add_ones(folder: Path, times: int) -> int:
    """Record in a process of its own; return how many values were not taken."""
    client = make_client(folder, registry=REGISTRY)
    for _ in range(times):
        client.record("edits", 1)
    client._engine.close_store()
    return times - client.stats()["aggregated"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_sixteen_processes_add_to_one_window(tmp_path: Path) -> None:
    """Law: no value of any process is lost, and the window is reported once."""
    children = []
    for _ in range(16):
        child = os.fork()
        if child == 0:
            os._exit(_add_ones(tmp_path, 5))
        children.append(child)
    lost = sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    clock = FakeClock(NOON + DAY)

    clients = [
        make_client(tmp_path, registry=REGISTRY, clock=clock, remember=True) for _ in range(2)
    ]

    assert lost == 0
    assert [told(client) for client in clients] == [[("edits", 20_000, "80 files")], []]
    for client in clients:
        client.close()


def test_without_entropy_a_value_changes_no_window(tmp_path: Path) -> None:
    """Law: a group is added whole or not at all."""
    make_client(tmp_path, registry=REGISTRY).record("edits", 1)
    before = rows(tmp_path, "SELECT * FROM windows")
    client = make_client(tmp_path, registry=REGISTRY, randomness=NoEntropy())

    client.record("edits", 2)

    assert changed(client) == {"entropy": 1}
    assert rows(tmp_path, "SELECT * FROM windows") == before
    client.close()


def test_without_entropy_a_window_stays_until_there_is_some(tmp_path: Path) -> None:
    """Law: what could not be reported is not lost, nor charged."""
    clock = FakeClock()
    make_client(tmp_path, registry=REGISTRY, clock=clock).record("edits", 1)
    clock.advance(days=1)

    dry = make_client(tmp_path, registry=REGISTRY, clock=clock, randomness=NoEntropy())
    client = make_client(tmp_path, registry=REGISTRY, clock=clock, remember=True)

    assert changed(dry) == {"entropy": 1}
    assert told(client) == [("edits", 20_000, "1 files")]
    for each in (dry, client):
        each._engine.close_store()


def test_a_memory_client_tells_what_was_added_up() -> None:
    """Law: a test of an application sees each value that was taken, and the report it made."""
    client = MemoryClient(REGISTRY)
    client.record("edits", 1)
    client.record("edits", 2)
    client.clock.advance(days=1)
    client.record("edits", "no number")
    client.flush()

    assert client.recorded == [("edits", 1), ("edits", 2)]
    assert told(client) == [("edits", 20_000, "3 files")]
    assert client.mistakes == {"invalid_value": 1}


def test_more_windows_than_one_transaction_closes_are_all_closed(tmp_path: Path) -> None:
    """Law: a gateway's many devices are worked off in portions, and the rest is not forgotten."""
    from client_sdk.gateway import Gateway
    from client_sdk.privacy.consent import NoOptOuts

    clock, transport = FakeClock(), ScriptedTransport()
    registry = registry_of(boolean("used", "otherwise = false"))
    gateway = Gateway(
        *("https://collector.example", "key", registry),
        consent="granted", data_dir=tmp_path, transport=transport, opt_outs=NoOptOuts(),
        clock=clock, uptime=clock.uptime,
    )  # fmt: skip
    gateway.watch(f"machine {i}" for i in range(2_100))
    gateway.record("machine 7", "used", True)
    gateway.record("machine without attendance", "used", True)
    clock.advance(days=1)

    gateway.upload()

    counts = gateway.stats()
    assert counts["window_opened"] == counts["window_closed"] == counts["recorded"] == 2_101
    assert rows(tmp_path, "SELECT count(DISTINCT device), min(length(device)) FROM charges") == [
        (2_101, 16)
    ]
    assert open_windows(tmp_path) == 0  # none of the gateway itself, and of no device unasked
    gateway.close()


def test_a_registry_without_aggregates_is_never_due() -> None:
    """Law: devices that aggregate nothing pay nothing for it."""
    plain = Registry("demo", {}, {})
    client = make_client(registry=plain)

    assert not client._engine.recorder.is_due(NOON)
    assert client._engine.recorder.wait(NOON) == float("inf")
    client.close()


def test_a_client_that_is_only_made_starts_and_writes_nothing(tmp_path: Path) -> None:
    """Law: also with metrics that report silence, a server may fork right after making a client."""
    before = threading.active_count()

    client = make_client(tmp_path, registry=SCHEDULED, mode="background")

    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []
    client.watch()
    assert threading.active_count() > before
    client.close()


@pytest.mark.parametrize("end", ["close", "exit"])
def test_a_process_that_records_nothing_reports_its_silence_at_its_end(
    tmp_path: Path, end: str
) -> None:
    """Law: a device on which nothing happens is not a device that is not there."""
    clock = FakeClock()
    client = make_client(tmp_path, registry=SCHEDULED, clock=clock, mode="background")

    client.close() if end == "close" else client._engine.exit()

    assert changed(client) == {"window_opened": 2}
    assert open_windows(tmp_path) == 2


def test_a_denial_wipes_windows_and_a_new_consent_opens_scheduled_ones(tmp_path: Path) -> None:
    """Law: a no leaves nothing of what was true, in no file."""
    client = make_client(tmp_path, registry=SCHEDULED)
    client.record("crashes", 3)

    client.set_consent("denied")

    assert changed(client) == {"aggregated": 1, "window_opened": 2, "window_dropped": 2}
    assert (open_windows(tmp_path), (tmp_path / SECRET_FILE).exists()) == (0, False)
    client.set_consent("granted")
    assert open_windows(tmp_path) == 2
    client.close()


def test_an_unknown_consent_opens_and_reports_nothing(tmp_path: Path) -> None:
    """Law: until the user was asked, nothing happens to what is there."""
    clock = FakeClock()
    make_client(tmp_path, registry=SCHEDULED, clock=clock).watch()
    clock.advance(days=9)

    with make_client(tmp_path, registry=SCHEDULED, clock=clock, consent="unknown") as client:
        client.flush()

    assert changed(client) == {}
    assert open_windows(tmp_path) == 2


def test_without_scheduled_metrics_a_start_opens_no_database(tmp_path: Path) -> None:
    """Law: an application in which nothing is recorded leaves nothing on the disk."""
    with make_client(tmp_path / "data", registry=REGISTRY):
        pass

    assert not (tmp_path / "data").exists()


def test_a_lost_secret_loses_the_window_and_nothing_else(tmp_path: Path) -> None:
    """Law: what cannot be read is dropped and counted, and recording goes on."""
    clock = FakeClock()
    client = make_client(tmp_path, registry=REGISTRY, clock=clock, remember=True)
    client.record("edits", 1)
    (tmp_path / SECRET_FILE).unlink()

    client.record("edits", 2)
    clock.advance(days=1)
    client.flush()

    assert told(client) == [("edits", 20_000, "2 files")]
    counts = client.stats()
    assert (counts["window_opened"], counts["window_dropped"], counts["window_closed"]) == (2, 1, 1)
    client.close()


@pytest.mark.parametrize("events", [0, 1, 4])
def test_silence_looks_like_events(tmp_path: Path, events: int) -> None:
    """Law: scheduled metrics make as many reports, rows and bytes whether anything happened."""
    clock, transport = FakeClock(), ScriptedTransport()
    client = make_client(tmp_path, registry=SCHEDULED, clock=clock, transport=transport)
    shapes = set()
    for _ in range(15):
        for event in range(events):
            client.record("crashes", 1 / (1 + event))
            client.record("used", True)
        client.flush()
        shapes.update(rows(tmp_path, "SELECT count(*), sum(length(sealed)) FROM windows"))
        clock.advance(days=1)

    counts = client.stats()
    # 14 days after a Friday: two Mondays
    assert (counts["recorded"], counts["window_closed"], counts["uploaded"]) == (16, 16, 16)
    assert [len(body) for body in transport.sent] == [1_024] * 14
    assert len(shapes) == 1
    client.close()


def test_a_metric_without_otherwise_is_silent_when_nothing_happens() -> None:
    """Law: the test above would see a report that only events make."""
    clock = FakeClock()
    with make_client(registry=REGISTRY, clock=clock) as client:
        clock.advance(days=3)
        client.flush()

        assert changed(client) == {}


def test_no_true_value_is_in_any_file(tmp_path: Path) -> None:
    """Law: neither while a window is open nor after it was reported, in database or log."""
    canary = 12.345678901234567
    metric = REGISTRY.metric("edits")
    bare = metric.domain.encoding.dump(metric.encode(canary)).lstrip(b"\0")[:7]
    clock = FakeClock()
    client = make_client(tmp_path, registry=REGISTRY, clock=clock)
    client.record("edits", canary)
    open_files = bytes_on_disk(tmp_path)
    clock.advance(days=1)
    client.flush()

    assert len(bare) == 7
    assert bare not in open_files + bytes_on_disk(tmp_path)
    assert str(canary).encode() not in open_files
    client.close()
    alter(tmp_path, f"INSERT INTO windows VALUES (x'', x'00', 1, x'{bare.hex()}')")  # noqa: S608 - a test's own
    assert bare in bytes_on_disk(tmp_path)  # so an unmasked window would be seen


def test_a_closed_window_is_overwritten(tmp_path: Path) -> None:
    """Law: once reported, not even the secret brings back what was true."""
    clock = FakeClock()
    client = make_client(tmp_path, registry=REGISTRY, clock=clock)
    client.record("edits", 7)
    ((sealed,),) = rows(tmp_path, "SELECT sealed FROM windows")
    before = sealed in bytes_on_disk(tmp_path)
    clock.advance(days=1)

    client.flush()

    assert before
    assert sealed not in bytes_on_disk(tmp_path)
    client.close()


def test_a_copied_database_does_not_repeat_a_window(tmp_path: Path) -> None:
    """Law: of two copies of a device, one reports what was added up."""
    clock = FakeClock()
    make_client(tmp_path / "a", registry=REGISTRY, clock=clock).record("edits", 1)
    (tmp_path / "b").mkdir()
    for name in (FILE_NAME, f"{FILE_NAME}-wal", SECRET_FILE):
        (tmp_path / "b" / name).write_bytes((tmp_path / "a" / name).read_bytes())
    clock.advance(days=1)

    with make_client(tmp_path / "b", registry=REGISTRY, clock=clock) as client:
        client.flush()

    assert changed(client) == {"store": 1}


def test_a_window_can_be_looked_at_by_its_own_device_only() -> None:
    """Law: what is true so far needs the secret, and a metric that is known."""
    store, randomness = Store(None), SeededRandomness(b"windows")
    windows = Windows(REGISTRY, store.secret, randomness)
    key = Key(b"", REGISTRY.metric("edits").digest, 20_000)
    with store.transaction() as tx:
        edits = windows.aggregate(REGISTRY.metric("edits"))
        windows.add(tx, {key: [(edits.fold(None, [3]), 1)]}, Today(20_000, 20_000))

        mine = windows.value_so_far(tx, key)
        others = Windows(REGISTRY, Secret(None), randomness).value_so_far(tx, key)
        unknown = Windows(registry_of(boolean("used")), store.secret, randomness).value_so_far(
            tx, key
        )

    assert (mine, others, unknown) == (3, None, None)


SECRET, OTHER = bytes(range(32)), bytes(32)
PLACE = Key(b"", b"digest", 7).place
CONTENT = b"what only this device may know"


def masked() -> bytes:
    return mask(SECRET, PLACE, CONTENT, SeededRandomness(b"nonce"))


def test_what_is_masked_comes_back() -> None:
    assert unmask(SECRET, PLACE, masked()) == CONTENT


def test_the_layout_is_nonce_stream_and_tag() -> None:
    """Law: the mask is the SHAKE-256 stream of secret, place and nonce, worked out here again."""
    found = masked()
    at = SECRET + PLACE + found[:NONCE_SIZE]
    stream = hashlib.shake_256(b"hearsay window 1 stream\0" + at).digest(len(CONTENT))
    tag = hashlib.shake_256(b"hearsay window 1 tag\0" + at + CONTENT).digest(TAG_SIZE)

    body = bytes(a ^ b for a, b in zip(CONTENT, stream, strict=True))

    assert found[NONCE_SIZE:] == body + tag


def test_each_write_looks_like_no_other() -> None:
    """Law: the same content twice has no part in common."""
    randomness = SeededRandomness(b"nonce")

    first, second = (mask(SECRET, PLACE, CONTENT, randomness) for _ in range(2))

    assert all(a != b for a, b in ((first[i:][:8], second[i:][:8]) for i in range(0, 56, 8)))


@pytest.mark.parametrize(
    ("secret", "place", "damage"),
    [
        (OTHER, PLACE, b""),
        (SECRET, Key(b"", b"digest", 8).place, b""),
        (SECRET, Key(b"d", b"digest", 7).place, b""),
        (SECRET, Key(b"", b"others", 7).place, b""),
        (SECRET, PLACE, b"\1"),
    ],
)
def test_nothing_is_read_with_another_secret_or_for_another_window_or_damaged(
    secret: bytes, place: bytes, damage: bytes
) -> None:
    assert unmask(secret, place, masked() + damage) is None


def test_what_is_too_short_is_not_read() -> None:
    assert unmask(SECRET, PLACE, b"c0ffee") is None


def test_no_place_is_the_beginning_of_another() -> None:
    keys = [
        Key(device, digest, epoch)
        for device in (b"", b"d" * 6, b"d" * 16)
        for digest in (b"d" * 6, b"\0" * 6)
        for epoch in (-1, 0, 1 << 40)
    ]
    places = [key.place for key in keys]

    assert not any(a != b and b.startswith(a) for a in places for b in places)


def test_without_entropy_nothing_is_masked() -> None:
    with pytest.raises(EntropyError):
        mask(SECRET, PLACE, CONTENT, NoEntropy())
