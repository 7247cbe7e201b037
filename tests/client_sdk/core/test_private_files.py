"""The files of a device are its user's: made through no link, and never root's by accident."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from client_sdk.privacy.consent import set_user_opt_out
from client_sdk.privacy.opt_outs import USER_FILE
from client_sdk.storage.rollback import GENERATION_FILE
from client_sdk.storage.schema import FILE_NAME, RESERVE_FILE
from client_sdk.storage.secret import DAMAGED_SUFFIX, NAMES_FILE, SECRET_FILE
from tests.client_sdk.test_gateway import make_gateway
from tests.support.device.device import changed, make_client, metric_text, registry_of

OTHERS = b"a file of somebody else"
REGISTRY = registry_of(metric_text("m").replace('"fresh"', '"permanent"'))
linked = pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system has no such links")


def record(folder: Path, consent: str = "granted") -> dict[str, int]:
    client = make_client(folder, registry=REGISTRY, consent=consent)
    client.record("m", True)
    client.close()
    return changed(client)


@linked
@pytest.mark.parametrize(
    "name", [SECRET_FILE + ".new", RESERVE_FILE, GENERATION_FILE, FILE_NAME + DAMAGED_SUFFIX]
)
@pytest.mark.parametrize("dangling", [False, True])
def test_no_file_is_written_through_a_link(tmp_path: Path, name: str, *, dangling: bool) -> None:
    """Law: what a link in the folder leads to is neither changed nor made, by a denial either."""
    other, data = tmp_path / "other", tmp_path / "data"
    data.mkdir()
    if not dangling:
        other.write_bytes(OTHERS)
    (data / name).symlink_to(other)

    counts = record(data)
    make_client(data, registry=REGISTRY, consent="denied").close()

    assert counts.get("recorded", 0) + counts.get("store", 0) == 1
    assert other.exists() != dangling
    assert dangling or other.read_bytes() == OTHERS


@linked
def test_a_secret_that_is_a_link_is_removed_and_its_target_left(tmp_path: Path) -> None:
    """Law: a denial takes the link away, and overwrites nothing behind it."""
    other, data = tmp_path / "other", tmp_path / "data"
    other.write_bytes(OTHERS)
    record(data)
    (data / SECRET_FILE).unlink()
    (data / SECRET_FILE).symlink_to(other)

    make_client(data, registry=REGISTRY, consent="denied").close()

    assert not (data / SECRET_FILE).is_symlink()
    assert other.read_bytes() == OTHERS


def test_a_secret_that_a_killed_process_left_half_made_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / (SECRET_FILE + ".new")).write_bytes(b"half")
    (tmp_path / FILE_NAME).touch()

    assert record(tmp_path)["recorded"] == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives away")
def test_what_root_makes_in_the_folder_of_another_user_is_that_users(tmp_path: Path) -> None:
    """Law: a first run by sudo does not lock the user out: every file and folder is theirs."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12_345, 23_456)

    assert record(home / "share" / "app")["recorded"] == 1
    set_user_opt_out(home / "share" / "app", off=True)
    gateway = make_gateway(home / "share" / "gateway", registry=REGISTRY)
    gateway.record("machine", "m", True)
    gateway.close()

    paths = sorted(home.rglob("*"))
    names = {path.name for path in paths}
    assert {FILE_NAME, SECRET_FILE, RESERVE_FILE, GENERATION_FILE, USER_FILE, NAMES_FILE} <= names
    assert {(path.stat().st_uid, path.stat().st_gid) for path in paths} == {(12_345, 23_456)}
    assert {path.stat().st_mode & 0o077 for path in paths if path.is_file()} == {0}
