"""The device in TypeScript on a real collector: what it records arrives, and estimates hold it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import requests

from client_sdk.registry import Registry
from collector.planning.compilation import compiled
from collector.planning.typescript import MISSING_TYPES
from tests.support.crowds.uploads import COMMON, READ_TOKEN, WRITE_KEY, bearer
from tests.support.device.every_type import VALUES as OF_EVERY_TYPE
from tests.support.device.every_type import registry_text
from tests.support.device.loopback import running
from tests.support.enumeration.coverage import fits_rate
from tests.support.faults.proxy import Proxy, Weather
from tests.support.node import Node
from tests.support.patience import PATIENCE
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

# Of a row of 400 reports a false alarm is less likely than 2e-11, by Chernoff's bound for the
# narrowest channel; of the 40 rows together less than 1e-9.
STANDARD_ERRORS: Final = 8.0
SEED: Final = 5  # of the weather
DEVICES: Final = 400
MANY: Final = 1_700  # of a day
DAYS: Final = 3  # what is older counts as late
VALUES: Final = {
    name: ("light", "light", "light", "dark") if name == "category" else values
    for name, values in OF_EVERY_TYPE.items()
    if name not in MISSING_TYPES
}
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

    def rows(self, metric: str, day: date | None = None) -> dict[str, dict[str, Any]]:
        """Return the rows of the estimate of *metric* by their item, of one day if it is given."""
        url = f"{self.site.url}/v1/metrics/{metric}/estimate"
        window = {} if day is None else {"from": day.isoformat(), "to": day.isoformat()}
        answer = requests.get(url, headers=bearer(READ_TOKEN), params=window, timeout=PATIENCE)
        answer.raise_for_status()
        return {row["dimensions"]["item"]: row for row in answer.json()["rows"]}


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    text, path = registry_text(without=MISSING_TYPES) + HOURLY, tmp_path / "metrics.toml"
    path.write_text(text, "utf-8")
    (tmp_path / "metrics.json").write_text(compiled(Registry.from_text(text)), "utf-8")
    with running_site(tmp_path / "store", path, WRITE_KEY, READ_TOKEN) as site:
        yield Collector(site, tmp_path / "metrics.json")


def fleet(
    node: Node, collector: Collector, devices: int, planted: str | None = None, days: int = 1
) -> dict[str, int]:
    """Let so many devices record a value of every metric and send it; return their counts.

    Args: days: over which they are spread, the last of which is today.
    """
    question = {
        "endpoint": collector.site.url,
        "writeKey": WRITE_KEY,
        "registry": str(collector.registry),
        "devices": devices,
        "days": days,
        "values": VALUES,
        "segment": SEGMENT,
        "planted": planted,
    }
    done = node.run(
        "build/tests/programs/fleet.js", stdin=json.dumps(question), timeout=15 * PATIENCE
    )
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


def test_every_type_arrives_and_estimates_hold_the_truth(node: Node, collector: Collector) -> None:
    counts = fleet(node, collector, DEVICES)
    collector.site.wait_until_folded()

    assert counts == {"recorded": DEVICES * len(VALUES), "uploaded": DEVICES * len(VALUES)}
    assert misses(collector, DEVICES) == []
    assert collector.site.reports("number") == DEVICES


@pytest.mark.slow
def test_intervals_of_many_devices_cover_at_the_stated_rate(
    node: Node, collector: Collector
) -> None:
    """Each day and metric is a trial of its own, of the first item whose share is known.

    So few trials tell a rate below one half only; how far a row may lie is told for all of them.
    """
    today = datetime.now(UTC).date()
    truths = {metric: next(iter(shares.items())) for metric, shares in SHARES.items()}
    truths["mean"] = ("mean", MEANS["mean"]["mean"])

    fleet(node, collector, MANY * DAYS, days=DAYS)
    collector.site.wait_until_folded()

    trials = hits = 0
    for back in range(DAYS):
        for metric, (item, truth) in truths.items():
            row = collector.rows(metric, today - timedelta(days=back))[item]
            assert row["n"] == MANY
            trials += 1
            hits += row["ci_low"] <= truth <= row["ci_high"]
    assert fits_rate(hits, trials, 0.95), f"{hits} of {trials}"
    assert not fits_rate(trials // 4, trials, 0.95)
    assert misses(collector, MANY * DAYS) == []


def test_a_flipped_comparison_is_seen(node: Node, collector: Collector) -> None:
    fleet(node, collector, DEVICES, "grr")
    collector.site.wait_until_folded()

    assert "category light" in misses(collector, DEVICES)


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
