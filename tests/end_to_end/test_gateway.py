"""A gateway before a real collector: every report of every machine is counted once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.gateway import Gateway
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.registry import Registry
from client_sdk.upload.transport import MESSAGEPACK, Answer, RequestsTransport, Transport
from collector.core.config import STANDARD
from collector.intake.wire import MSGPACK
from collector.storage.connect import open_storage
from tests.support.crowds.fleet import stored_tallies, tallies_of
from tests.support.crowds.uploads import GATEWAY_KEY, READ_TOKEN, WRITE_KEY
from tests.support.device.clock import FakeClock
from tests.support.patience import PATIENCE
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

EXAMPLES = Path(__file__).parents[2] / "examples"
REGISTRY = EXAMPLES / "gateway_metrics.toml"
MACHINES = 1_500
SHARDS = 4  # the default of ``hearsay serve``
UNDECIDED = {n: t for n, t in os.environ.items() if n not in ("DO_NOT_TRACK", "HEARSAY_TELEMETRY")}


class Copying:
    """Passes uploads on and keeps what they said."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.bodies: list[bytes] = []

    def send(self, body: bytes, timeout: float) -> Answer:
        self.bodies.append(body)
        return self._inner.send(body, timeout)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with running_site(folder, REGISTRY, WRITE_KEY, READ_TOKEN, GATEWAY_KEY) as running:
        yield running


def test_the_example_reports_for_each_machine_once_a_day(site: Site, tmp_path: Path) -> None:
    """Law: as its first lines say; a second reading of the same day is refused by the ledger."""
    drinks = ("latte", "tea", "espresso")
    lines = [
        json.dumps({"machine": f"floor {i % MACHINES}", "metric": "drink", "value": drinks[i % 3]})
        for i in range(MACHINES + 200)
    ]
    options = [f"--endpoint={site.url}", f"--gateway-key={GATEWAY_KEY}", f"--data-dir={tmp_path}"]
    before = site.reports("drink")

    done = subprocess.run(
        [sys.executable, EXAMPLES / "gateway.py", *options, "--site=office", "--send-now"],
        input="\n".join([*lines, "no reading"]), env=UNDECIDED, text=True,
        capture_output=True, timeout=PATIENCE, check=True,
    )  # fmt: skip

    counts = {"recorded": MACHINES, "already_reported": 200, "uploaded": MACHINES}
    assert done.stdout == f"{counts}\n"
    assert done.stderr == "skipped a line that is no reading\n"
    site.wait_until_folded()
    assert site.reports("drink") == before + MACHINES


def test_after_a_week_offline_all_is_counted_to_the_integer(site: Site, tmp_path: Path) -> None:
    """Law: what waited for the collector is folded exactly as it was drawn, in large columns."""
    start = time.time() - 7 * DAY
    weeks = {epoch_of("7d", start + day * DAY) for day in range(7)}
    registry, clock = Registry.from_file(REGISTRY), FakeClock(start)
    transport = Copying(RequestsTransport(site.url, GATEWAY_KEY, content_type=MESSAGEPACK))
    with Gateway(
        "http://127.0.0.1", "", registry, consent="granted", data_dir=tmp_path,
        segment={"site": "school"}, transport=transport, opt_outs=NoOptOuts(),
        clock=clock, uptime=clock.uptime,
    ) as gateway:  # fmt: skip
        for _ in range(7):
            gateway.record_many((f"m{i}", "drink", "tea") for i in range(300))
            gateway.record_many((f"m{i}", "needs_descaling", i % 2 == 0) for i in range(300))
            clock.advance(days=1)
        gateway.flush()
        stats = gateway.stats()
    site.wait_until_folded()

    bodies, storage = transport.bodies, open_storage(site.redis_url, "hearsay", SHARDS, STANDARD)
    # one a day, and one in each of the weeks: all within the caps
    assert stats["uploaded"] == stats["recorded"] == (7 + len(weeks)) * 300
    assert len(bodies) == 2  # one a segment
    sent = tallies_of(bodies, registry, MSGPACK)
    assert stored_tallies(storage, registry, bodies, MSGPACK) == sent
