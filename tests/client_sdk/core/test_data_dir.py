"""Paths: the data folder stays where it was made, and its files are its user's alone."""

from __future__ import annotations

import os
import py_compile
import sys
import zipfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from client_sdk.client import Client
from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.paths import absolute, module_names
from client_sdk.gateway import Gateway
from client_sdk.mechanisms import items
from client_sdk.privacy.consent import OptOuts, set_user_opt_out
from client_sdk.privacy.opt_outs import USER_FILE
from client_sdk.storage.rollback import GENERATION_FILE
from client_sdk.storage.schema import FILE_NAME, RESERVE_FILE
from client_sdk.storage.secret import DAMAGED_SUFFIX, NAMES_FILE, SECRET_FILE
from tests.client_sdk.test_gateway import make_gateway
from tests.support.device.device import (
    ENDPOINT,
    KEY,
    REGISTRY,
    changed,
    make_client,
    metric_text,
    registry_of,
)
from tests.support.device.device_transport import ScriptedTransport

HERE = "data/telemetry"


@pytest.fixture
def two_folders(tmp_path: Path) -> tuple[Path, Path]:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    return first, second


def _client_here() -> Client:
    return make_client(Path(HERE))


def _gateway_here() -> Gateway:
    return Gateway(
        *(ENDPOINT, KEY, REGISTRY),
        consent="granted",
        data_dir=HERE,
        transport=ScriptedTransport(),
    )


@pytest.mark.parametrize("make", [_client_here, _gateway_here])
def test_a_change_of_folder_moves_no_ledger(
    two_folders: tuple[Path, Path], make: Callable[[], Client | Gateway]
) -> None:
    """Law: what was spent counts wherever the application goes, also of each device."""
    names = ("a", "dark_mode") if make is _gateway_here else ("dark_mode",)
    with chdir(two_folders[0]):
        client: Any = make()
        client.record(*names, True)

        with chdir(two_folders[1]):
            client.record(*names, True)
            client.close()

    counts = client.stats()
    assert (counts["recorded"], counts["already_reported"]) == (1, 1)
    assert list(two_folders[1].iterdir()) == []


def test_a_change_of_folder_hides_no_opt_out(two_folders: tuple[Path, Path]) -> None:
    """Law: the user's no is looked for where the user can say it."""
    with chdir(two_folders[0]):
        client = Client(
            *(ENDPOINT, KEY, REGISTRY),
            consent="granted",
            data_dir=HERE,
            mode="manual",
            transport=ScriptedTransport(),
        )
    set_user_opt_out(two_folders[0] / HERE, off=True)

    with chdir(two_folders[1]):
        said = client.consent

    client.close()
    assert (said, USER_FILE in os.listdir(two_folders[0] / HERE)) == ("denied", True)


@pytest.mark.parametrize("data_dir", ["", b"bytes", 5, "a\0b", object()])
@pytest.mark.parametrize("make", [Client, Gateway])
def test_what_is_no_path_is_refused(make: Callable[..., Any], data_dir: object) -> None:
    """Law: an empty name would mean whatever folder the application is in."""
    with pytest.raises(InvalidParameterError, match=r"^data_dir="):
        make(ENDPOINT, KEY, REGISTRY, consent="granted", data_dir=data_dir)


def test_a_tilde_is_the_home_of_the_user() -> None:
    """Law: no folder is ever called by that sign."""
    assert absolute("~/app") == os.path.join(os.path.expanduser("~"), "app")


def test_no_folder_stays_none() -> None:
    """Law: None is memory."""
    assert absolute(None) is None


def test_a_given_opt_out_place_is_left_alone(tmp_path: Path) -> None:
    """Law: who names the places himself is obeyed."""
    set_user_opt_out(tmp_path, off=True)
    client = make_client(opt_outs=OptOuts(tmp_path, {}, tmp_path / "none.toml"))

    assert client.consent == "denied"


def test_a_home_that_there_is_none_of_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    """Law: no folder is ever called ~, as in a container whose user has neither HOME nor entry."""
    with chdir(tmp_path), pytest.raises(InvalidParameterError, match="has no home that ~ could"):
        make_client(Path("~nobody-has-this-name/x"))

    assert list(tmp_path.iterdir()) == []


def test_the_modules_of_a_folder_are_those_that_pkgutil_finds() -> None:
    """The folder of mechanisms, read without loading what pkgutil loads."""
    folders = items.__path__

    assert module_names(folders) == {module.name for module in iter_modules(folders)}


def test_the_modules_of_an_archive_are_found(tmp_path: Path) -> None:
    """A program may carry the SDK in a zip file."""
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("package/__init__.py", "")
        archive.writestr("package/grr.py", "")

    assert module_names([str(tmp_path / "app.zip" / "package")]) == {"grr"}


def test_modules_that_are_compiled_only_are_found(tmp_path: Path) -> None:
    """A program may carry no sources."""
    (tmp_path / "grr.py").write_text("")
    py_compile.compile(str(tmp_path / "grr.py"), cfile=str(tmp_path / "grr.pyc"))
    (tmp_path / "grr.py").unlink()
    sys.path_importer_cache.pop(str(tmp_path), None)

    assert module_names([str(tmp_path)]) == {"grr"}


OTHERS = b"a file of somebody else"
PERMANENT = registry_of(metric_text("m").replace('"fresh"', '"permanent"'))
linked = pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system has no such links")


def record(folder: Path, consent: str = "granted") -> dict[str, int]:
    client = make_client(folder, registry=PERMANENT, consent=consent)
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
    make_client(data, registry=PERMANENT, consent="denied").close()

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

    make_client(data, registry=PERMANENT, consent="denied").close()

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
    gateway = make_gateway(home / "share" / "gateway", registry=PERMANENT)
    gateway.record("machine", "m", True)
    gateway.close()

    paths = sorted(home.rglob("*"))
    names = {path.name for path in paths}
    assert {FILE_NAME, SECRET_FILE, RESERVE_FILE, GENERATION_FILE, USER_FILE, NAMES_FILE} <= names
    assert {(path.stat().st_uid, path.stat().st_gid) for path in paths} == {(12_345, 23_456)}
    assert {path.stat().st_mode & 0o077 for path in paths if path.is_file()} == {0}
