"""The device secret: one file, whole or not there, that nothing outlives."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from client_sdk.core.errors import StoreError
from client_sdk.core.limits import SECRET_SIZE
from client_sdk.storage.secret import DEVICE_SIZE, SECRET_FILE, device_key
from client_sdk.storage.store import Store


def secret_of(store: Store) -> bytes:
    with store.transaction() as tx:
        return store.secret.get(tx)


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_secret_is_made_once(tmp_path: Path, in_memory: bool) -> None:
    store = Store(None if in_memory else tmp_path)

    secrets = {secret_of(store) for _ in range(3)}

    (secret,) = secrets
    assert len(secret) == SECRET_SIZE
    store.close()


def test_a_secret_outlives_its_process_and_is_for_its_user_only(tmp_path: Path) -> None:
    secret = secret_of(Store(tmp_path))

    again = secret_of(Store(tmp_path))

    assert again == secret == (tmp_path / SECRET_FILE).read_bytes()
    assert stat.S_IMODE((tmp_path / SECRET_FILE).stat().st_mode) == 0o600
    assert not (tmp_path / f"{SECRET_FILE}.new").exists()


def test_stores_that_share_a_folder_agree_on_one_secret(tmp_path: Path) -> None:
    """Whoever comes first makes it; the lock of the database lets no second one do so."""
    secret_of(warm := Store(tmp_path))
    (tmp_path / SECRET_FILE).unlink()
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(secret_of(Store(tmp_path)))) for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(found), len(set(found))) == (8, 1)
    warm.close()


@pytest.mark.parametrize("damage", [b"", b"short", bytes(SECRET_SIZE), b"x" * 33])
def test_a_damaged_secret_is_replaced(tmp_path: Path, damage: bytes) -> None:
    """Its values look new then, and are charged again."""
    secret = secret_of(Store(tmp_path))
    (tmp_path / SECRET_FILE).write_bytes(damage)

    again = secret_of(Store(tmp_path))

    assert again not in (secret, damage)
    assert len(again) == SECRET_SIZE


def test_a_deleted_secret_is_gone_from_the_file_that_held_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    secret = secret_of(store)
    held = (tmp_path / SECRET_FILE).open("rb")  # its bytes stay readable while it is open

    with store.transaction() as tx:
        store.secret.delete(tx)
        store.secret.delete(tx)

    assert held.read() == bytes(SECRET_SIZE)
    assert not (tmp_path / SECRET_FILE).exists()
    assert secret_of(store) != secret
    held.close()
    store.close()


def test_a_secret_that_cannot_be_read_is_a_store_error(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.transaction():
        (tmp_path / SECRET_FILE).mkdir()

    with pytest.raises(StoreError, match=f"{SECRET_FILE}: "):
        secret_of(store)

    store.close()


def test_keys_of_devices_differ_by_secret_and_name_and_hold_neither() -> None:
    first, other = bytes(range(32)), bytes(32)

    keys = {device_key(secret, name) for secret in (first, other) for name in ("pump 1", "pump 2")}

    assert len(keys) == 4
    assert all(len(key) == DEVICE_SIZE and b"pump" not in key for key in keys)
