"""What windows keep from others: values, silence, and what a user has taken back."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from client_sdk.client import Client
from client_sdk.core.errors import EntropyError
from client_sdk.recording.aggregation import NONCE_SIZE, TAG_SIZE, Key, Today, Windows, mask, unmask
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.secret import SECRET_FILE, Secret
from client_sdk.storage.store import Store
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    alter,
    bytes_on_disk,
    changed,
    make_client,
    registry_of,
    rows,
)
from tests.support.device.device_transport import NoEntropy, ScriptedTransport
from tests.support.device.windows import REGISTRY, SCHEDULED, boolean, open_windows
from tests.support.enumeration.seeded import SeededRandomness


def told(client: Client) -> list[tuple[str, int, str]]:
    return [(each.metric, each.epoch, each.truth) for each in client.history()]


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
