"""The device in TypeScript on a real collector: what it records arrives, and estimates hold it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import requests

from client_sdk.registry import Registry
from collector.planning.compilation import compiled
from tests.support.crowds.uploads import COMMON, READ_TOKEN, WRITE_KEY, bearer
from tests.support.device.every_type import VALUES as OF_EVERY_TYPE
from tests.support.device.every_type import registry_text
from tests.support.device.loopback import running
from tests.support.faults.proxy import Proxy, Weather
from tests.support.node import Node
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

# Of a row of 400 reports a false alarm is less likely than 2e-11, by Chernoff's bound for the
# narrowest channel; of the 40 rows together less than 1e-9.
STANDARD_ERRORS: Final = 8.0
SEED: Final = 5  # of the weather
VALUES: Final = {**OF_EVERY_TYPE, "category": ("light", "light", "light", "dark")}
HOURLY: Final = (
    '[metrics.hourly]\ntitle = "Of an hour"\nquestion = "Did it start?"\nevery = "1h"\n'
    'type = "boolean"\nmechanism = "grr"\n'
    + COMMON.format(epsilon="1.0", min_reports=100, expires="2027-12-31")
)
SEGMENT: Final = {"platform": "linux", "arm": "new", "version": "2"}
MEANS: Final = {"mean": {"mean": 5.5}, "key_value": {"mean of a": 2.5, "mean of b": 5.0}}
SHARES: Final[dict[str, dict[str, float]]] = {  # rows of other items are 0
    "category": {"light": 0.75, "dark": 0.25},
    "boolean": {"true": 0.5},
    "set": {"git": 1.0, "lint": 0.5},
    "funnel": {"opened": 1 / 3, "saved": 1 / 3, "shared": 1 / 3},
    "retention": {"100": 0.5, "110": 0.5},
    "pair": {"f | -40": 0.5, "m | 41-": 0.5},
    "key_value": {"a": 1.0, "b": 0.5},
}


@dataclass(frozen=True)
class Collector:
    """A running collector, and the compiled registry of its devices."""

    site: Site
    registry: Path

    def rows(self, metric: str) -> dict[str, dict[str, Any]]:
        """Return the rows of the estimate of *metric* by their item."""
        url = f"{self.site.url}/v1/metrics/{metric}/estimate"
        answer = requests.get(url, headers=bearer(READ_TOKEN), timeout=10)
        answer.raise_for_status()
        return {row["dimensions"]["item"]: row for row in answer.json()["rows"]}


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    text, path = registry_text() + HOURLY, tmp_path / "metrics.toml"
    path.write_text(text, "utf-8")
    (tmp_path / "metrics.json").write_text(compiled(Registry.from_text(text)), "utf-8")
    with running_site(tmp_path / "store", path, WRITE_KEY, READ_TOKEN) as site:
        yield Collector(site, tmp_path / "metrics.json")


def fleet(node: Node, collector: Collector, devices: int, planted: str | None) -> dict[str, int]:
    """Let so many devices record a value of every metric and send it; return their counts."""
    question = {
        "endpoint": collector.site.url,
        "writeKey": WRITE_KEY,
        "registry": str(collector.registry),
        "devices": devices,
        "values": VALUES,
        "segment": SEGMENT,
        "planted": planted,
    }
    done = node.run("build/tests/programs/fleet.js", stdin=json.dumps(question), timeout=900)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def misses(collector: Collector, devices: int) -> list[str]:
    """Return the rows that are further from the truth than chance can take them."""
    missed = []
    for metric in (*SHARES, "mean"):
        truth = {**SHARES.get(metric, {}), **MEANS.get(metric, {})}
        for item, row in collector.rows(metric).items():
            assert row["n"] == devices
            if abs(row["value"] - truth.get(item, 0.0)) > STANDARD_ERRORS * row["std_error"]:
                missed.append(f"{metric} {item}")
    return missed


@pytest.mark.parametrize("devices", [400, pytest.param(5_000, marks=pytest.mark.slow)])
def test_every_type_arrives_and_estimates_hold_the_truth(
    node: Node, collector: Collector, devices: int
) -> None:
    counts = fleet(node, collector, devices, None)
    collector.site.wait_until_folded()

    assert counts == {"recorded": devices * len(VALUES), "uploaded": devices * len(VALUES)}
    assert misses(collector, devices) == []
    assert collector.site.reports("number") == devices


def test_a_flipped_comparison_is_seen(node: Node, collector: Collector) -> None:
    fleet(node, collector, 400, "grr")
    collector.site.wait_until_folded()

    assert "category light" in misses(collector, 400)


def test_a_network_that_loses_and_repeats_counts_every_report_once(
    node: Node, collector: Collector
) -> None:
    """Law: what is repeated is the same bytes; each report is in the tally, and once."""
    weather = Weather(lose_request=0.2, lose_answer=0.25, repeat=0.2, hold=0.1, held_s=0.2)
    port = urlsplit(collector.site.url).port
    assert port is not None
    with running(Proxy(port, weather, SEED)) as proxy:
        words = (f"http://127.0.0.1:{proxy.port}", WRITE_KEY, str(collector.registry), "hourly")

        done = node.run("build/tests/programs/lossy.js", *words)

    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    stats = told["stats"]
    assert told["waiting"] == 0
    assert set(told["bodies"]) == {1}
    assert stats["network"] > 0
    assert stats["uploaded"] == stats["recorded"] == 40
    assert collector.site.wait_for_reports("hourly", 40) == 40
