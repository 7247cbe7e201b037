"""In programs whose threads are greenlets: gevent and eventlet, patched before or after our import.

There one thread of the system does everything, so whatever waits must let the others go on.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.patience import PATIENCE

from .hosted import CLIENT, REGISTRY, needs, reports, run, runs

IMPORT: Final = "from client_sdk import Client\n"
HOSTS: Final = {
    "gevent": "import gevent.monkey as m; m.patch_all()\nfrom gevent import sleep, spawn\n",
    "eventlet": "import eventlet; eventlet.monkey_patch()\nfrom eventlet import sleep, spawn\n",
}
VALUES: Final = 200
# The alarm ends a program that is frozen; nothing else would.
_LIMIT: Final = f"import os, signal, warnings; signal.alarm({int(PATIENCE)})\n"
_RECORDS: Final = f"""
beats = 0
def beat():
    global beats
    while True:
        sleep(0.005)
        beats += 1
spawn(beat)
for _ in range({VALUES}):
    client.record("runs", 1)
    sleep(0)
client.record("m0", True)
while not client.stats()["recorded"]:
    sleep(0.005)  # the value is written meanwhile
before = beats
left = client.flush(1.0)
print(beats > before, left.waiting)
client.record("m1", True)
"""


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a collector that takes connections and answers none."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("host", [pytest.param(host, marks=needs(host)) for host in HOSTS])
@pytest.mark.parametrize("patched", ["first", "after the import", "after the client"])
def test_a_program_of_greenlets_goes_on_and_loses_nothing(
    tmp_path: Path, silent: str, host: str, patched: str
) -> None:
    """Law: record, flush and the end of the process hold up no other greenlet."""
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    make = CLIENT.format(registry="metrics.toml", data="data", patience=PATIENCE).replace(
        "https://127.0.0.1:9", silent
    )
    patch = HOSTS[host]
    order = {
        "first": (patch, make),
        "after the import": (IMPORT, patch, make),
        "after the client": (make, patch),
    }
    program = "".join((_LIMIT, 'warnings.simplefilter("ignore")\n', *order[patched], _RECORDS))
    (tmp_path / "program.py").write_text(program)

    printed = run(tmp_path, sys.executable, "program.py")

    assert printed.split() == ["True", "1"]
    assert reports(tmp_path) == 1, "the last one; that of the flush is sealed"
    assert runs(tmp_path) == f"{VALUES} runs"
