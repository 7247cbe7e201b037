"""Processes: fit before they listen, a heartbeat while they live, and stopped after a time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collector.core.config import Config
from collector.core.errors import ConfigError
from collector.demo.embedded import EmbeddedStore
from collector.operations.processes import STALE_AFTER, Heartbeat, address_of, is_fresh, serve
from collector.storage.connect import connect
from tests.support.crowds.uploads import WRITE_KEY, registry_text
from tests.support.patience import PATIENCE
from tests.support.store.processes import until_ended
from tests.support.store.servers import needs_real, own_keys


def config(tmp_path: Path, **settings: str) -> Config:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    return Config.from_env({"HEARSAY_REGISTRY": str(path), **settings})


def test_a_port_that_somebody_listens_on_is_not_shared(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        settings = config(tmp_path, HEARSAY_PORT=port, HEARSAY_WRITE_KEY=WRITE_KEY)

        with pytest.raises(ConfigError, match=f"^HEARSAY_PORT={port}: cannot be listened on"):
            serve(settings, workers=1)


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:8123"), ("::1", "http://[::1]:8123")],
)
def test_the_address_that_a_start_logs_can_be_opened(
    host: str, address: str, tmp_path: Path
) -> None:
    assert address_of(config(tmp_path, HEARSAY_HOST=host, HEARSAY_PORT="8123")) == address


@pytest.mark.real
@needs_real
def test_a_server_to_which_nobody_could_report_does_not_start(
    tmp_path: Path, real_store: EmbeddedStore
) -> None:
    keys = own_keys()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])  # free again; another test may listen on the default
    settings = config(
        tmp_path, REDIS_URL=real_store.url, HEARSAY_PREFIX=keys.prefix, HEARSAY_PORT=port
    )

    with pytest.raises(ConfigError, match=r"^HEARSAY_WRITE_KEY=: must be set"):
        serve(settings, workers=1)

    connect(settings).destroy()


def test_a_beat_goes_stale_and_the_next_renews_it(tmp_path: Path) -> None:
    path = tmp_path / "beat"
    heart = Heartbeat(path)
    heart.beat()
    old = time.time() - STALE_AFTER - 1
    os.utime(path, (old, old))

    before = is_fresh(path)
    heart.beat()

    assert not before
    assert is_fresh(path)


PROGRAM = """
import os, signal, sys, threading
from collector.serving.stopping import on_stop

asked = threading.Event()
stop = on_stop({ask}, lambda: os._exit(7), grace={grace})
print("ready", flush=True)
{rest}
"""


def run(ask: str, grace: float, rest: str, *numbers: int) -> tuple[int, str]:
    """Run a program until it is ready, send it signals, and return its status and output."""
    source = PROGRAM.format(ask=ask, grace=grace, rest=rest)
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with until_ended(process, signal.SIGKILL):
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for number in numbers:
            process.send_signal(number)
        output = process.stdout.read()
        return process.wait(timeout=PATIENCE), output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_obeys_ends_by_itself(number: int) -> None:
    """Its own status is kept; nobody gives up on it."""
    status, _ = run("asked.set", 60, "asked.wait(); sys.exit(3)", number)

    assert status == 3


def test_a_process_that_does_not_end_is_given_up_on() -> None:
    """A store that hangs must not hold a container until it is killed."""
    status, _ = run("asked.set", 0.1, "while True: signal.pause()", signal.SIGTERM)

    assert status == 7


def test_a_process_is_asked_once_however_often_it_is_told() -> None:
    """An impatient Ctrl-C does not begin the stopping anew."""
    rest = "asked.wait(); stop(); stop()"
    status, output = run("lambda: (print('asked', flush=True), asked.set())", 60, rest, 15)

    assert (status, output) == (0, "asked\n")
