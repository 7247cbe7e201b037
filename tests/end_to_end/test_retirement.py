"""A metric is retired: the commands, a real ``hearsay serve``, and a device that hears of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

import pytest

from client_sdk.client import Client
from client_sdk.privacy.consent import NoOptOuts
from tests.support.crowds.uploads import WRITE_KEY
from tests.support.device.device import metric_text, rows
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.cluster import free_port
from tests.support.store.processes import until_ended
from tests.support.store.servers import needs_real, real_server

pytestmark = [pytest.mark.real, needs_real]

HEARSAY: Final = (sys.executable, "-m", "collector")
METRICS: Final = metric_text("first", every="1h") + metric_text("second", every="1h")


def is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/readyz")
        with connection.getresponse() as response:
            return response.status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_a_device_stops_what_a_list_of_its_developer_names(tmp_path: Path) -> None:
    """Law: key, list and collector are those of people; the second metric goes on."""
    metrics, output = tmp_path / "metrics.toml", tmp_path / "retired.json"
    metrics.write_text(f'schema = 1\napp = "demo"\n{METRICS}')
    port = free_port()
    environment = {name: text for name, text in os.environ.items() if "HEARSAY" not in name} | {
        "HEARSAY_REGISTRY": str(metrics),
        "HEARSAY_WRITE_KEY": WRITE_KEY,
        "HEARSAY_RETIRED": str(output),
        "HEARSAY_PORT": str(port),
    }

    def run(*arguments: str) -> str:
        command = [*HEARSAY, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    sign = ("--sign", str(tmp_path / "retire.key"), "-o", str(output))
    public = run("registry", "retire", str(metrics), "--new-key", *sign).split('"')[1]
    head = f'schema = 1\napp = {{ name = "demo", retire_key = "{public}" }}\n'
    metrics.write_text(head + METRICS)
    assert "1 retired in all" in run("registry", "retire", str(metrics), "first", *sign)

    with real_server() as store, (tmp_path / "log").open("wb") as log:
        environment["REDIS_URL"] = store.url
        run("init")
        server = subprocess.Popen([*HEARSAY, "serve"], env=environment, stdout=log, stderr=log)
        with until_ended(server):
            wait_for(lambda: is_ready(port), (tmp_path / "log").read_text, running=(server,))
            now = [time.time()]
            client = Client(
                *(f"http://127.0.0.1:{port}", WRITE_KEY, metrics),
                consent="granted",
                data_dir=tmp_path / "data",
                mode="manual",
                opt_outs=NoOptOuts(),
                clock=lambda: now[0],
            )
            client.record("first", True)
            assert client.flush().complete
            now[0] += 3_600
            client.record("first", True)
            client.record("second", True)
            counts = {reason: count for reason, count in client.stats().items() if count}
            client.close()
            doctor = run("doctor")

    assert counts == {"recorded": 2, "uploaded": 1, "retired": 1}
    assert rows(tmp_path / "data", "SELECT count(*) FROM charges") == [(2,)]
    assert "good     retired: 1 metric, by a list of" in doctor
